#include "headlight/report/terminal_heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "headlight/base/error.h"
#include "headlight/report/picture_test_support.h"
#include "headlight/report/width.h"

namespace headlight {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TerminalHeatMap, Shades) {
  AttentionPicture picture = MakePicture({"猫", "it"}, 1, 1);
  picture.weights[0][0] = {1.0f, 0.0f, 0.25f, 0.75f};
  EXPECT_EQ(TerminalHeatMap(picture, 0, 0, {}),
            "layer 0 · head 0 · neighbour · entropy 1.25 nats · mean distance 2.5\n"
            "        猫 it\n"
            "  1  猫 ██ ·\n"
            "  2  it ▒▒ ██\n"
            "\n"
            "weight  0.00 ·  0.12 ░░ 0.31 ▒▒ 0.56 ▓▓ 1.00 ██   rows look at columns\n");
}

// Every column of squares begins at one place, whatever the widths of the tokens beside it.
TEST(TerminalHeatMap, LinesAreAlignedForEveryWidthOfToken) {
  const AttentionPicture picture =
      MakePicture({"猫", "extraordinarily", "e\u0301", "😀", "\n"}, 1, 1);
  std::istringstream lines(TerminalHeatMap(picture, 0, 0, {}));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  for (const std::string& token : picture.tokens) {
    std::getline(lines, line);
    const size_t at = line.find(Printable(token));
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_EQ(DisplayWidth(line.substr(0, at + Printable(token).size())), 4 + 15) << line;
  }
}

TEST(TerminalHeatMap, NarrowTerminalsGetBlocks) {
  const AttentionPicture picture = MakePicture(std::vector<std::string>(40, "猫"), 1, 1);
  for (const int columns : {20, 60, 80, 200}) {
    std::istringstream lines(TerminalHeatMap(picture, 0, 0, {.colour = false, .columns = columns}));
    std::string line;
    std::getline(lines, line);  // the title
    int rows = 0;
    while (std::getline(lines, line) && !line.starts_with("weight")) {
      EXPECT_LE(DisplayWidth(line), columns) << line;
      rows += line.find("猫 ") != std::string::npos && line.find_first_not_of(' ') < 4;
    }
    EXPECT_EQ(rows % 40, 0);
    EXPECT_GE(rows, 40);
  }
}

TEST(TerminalHeatMap, EscapeCodesOnlyWhenAsked) {
  const AttentionPicture picture = MakePicture({"\x1b[2J", "b"}, 1, 1);
  EXPECT_THAT(TerminalHeatMap(picture, 0, 0, {}), Not(HasSubstr("\x1b")));
  const std::string coloured = TerminalHeatMap(picture, 0, 0, {.colour = true, .columns = 80});
  EXPECT_THAT(coloured, HasSubstr("\x1b[48;5;"));
  EXPECT_THAT(coloured, Not(HasSubstr("\x1b[2J")));
}

TEST(TerminalHeatMap, Refuses) {
  EXPECT_THROW(TerminalHeatMap(MakePicture({"a"}, 1, 1), 0, 1, {}), Error);
  EXPECT_THROW(TerminalHeatMap(MakePicture({}, 1, 1), 0, 0, {}), Error);
}

}  // namespace
}  // namespace headlight
