#include "headlight/base/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace headlight {
namespace {

std::string ReadBack(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

TEST(Progress, LineHasBarValuesAndTimeLeft) {
  ProgressState state{"epoch 1/2", 50, 100, {{"loss", "0.50"}}};
  const std::string line = ProgressLine(state, 0, 30, 200);
  EXPECT_EQ(line, "epoch 1/2 [============            ]  50 %  loss 0.50  0:30 left");
}

TEST(Progress, TimeLeftCountsFromWhereAResumedJobStarted) {
  ProgressState state{"epoch 2/2", 60, 100, {}};
  // 10 of the 60 were made in these 20 seconds: 40 more take 80.
  EXPECT_NE(ProgressLine(state, 50, 20, 200).find("1:20 left"), std::string::npos);
}

TEST(Progress, TheBarShrinksBeforeAnythingIsCut) {
  ProgressState state{"epoch 1/2", 50, 100, {{"loss", "0.50"}}};
  EXPECT_EQ(ProgressLine(state, 0, 30, 50), "epoch 1/2 [=====     ]  50 %  loss 0.50  0:30 left");
  EXPECT_EQ(ProgressLine(state, 0, 30, 38), "epoch 1/2  50 %  loss 0.50  0:30 left");
}

TEST(Progress, LineIsCutToTheWidth) {
  ProgressState state{"epoch 1/2", 50, 100, {{"loss", "0.50"}}};
  EXPECT_EQ(ProgressLine(state, 0, 30, 9), "epoch 1/2");
}

TEST(Progress, AFileGetsMessagesOnly) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    TerminalProgress progress(file);
    progress.Update({"epoch 1/2", 1, 100, {{"loss", "0.5"}}});
    progress.Message("epoch 1/2: loss 0.5");
    progress.Update({"epoch 1/2", 2, 100, {{"loss", "0.5"}}});
    progress.Finish();
  }
  EXPECT_EQ(ReadBack(file), "epoch 1/2: loss 0.5\n");
  std::fclose(file);
}

TEST(Progress, Formats) {
  EXPECT_EQ(FormatDuration(65), "1:05");
  EXPECT_EQ(FormatDuration(7420), "2:03:40");
  EXPECT_EQ(FormatRate(950), "950");
  EXPECT_EQ(FormatRate(21340), "21.3k");
  EXPECT_EQ(FormatRate(1.239e6), "1.24M");
}

}  // namespace
}  // namespace headlight
