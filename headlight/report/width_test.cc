#include "headlight/report/width.h"

#include <gtest/gtest.h>

namespace headlight {
namespace {

TEST(Width, KnownWidths) {
  struct Case {
    const char* text;
    int width;
  };
  const Case cases[] = {
      {"", 0},
      {"abc", 3},
      {"猫", 2},
      {"这只猫，", 8},
      {"ＡＢ", 4},                // fullwidth Latin
      {"ｱ", 1},                   // halfwidth katakana
      {"e\u0301", 1},             // combining acute
      {"한국", 4},                // Hangul syllables
      {"\u1112\u1161\u11AB", 2},  // the same syllable of three jamo
      {"😀", 2},
      {"👩\u200D💻", 2},     // joined
      {"👍\U0001F3FD", 2},  // with a skin colour
      {"░▒▓█─…·±", 8},
      {"\u200B", 0},    // zero-width space
      {"\n\t\x1b", 3},  // shown as pictures of themselves
      {"\xff", 1},      // broken UTF-8, shown as a replacement
      {"\xe7\x8c", 1},  // a character cut short
  };
  for (const Case& c : cases) EXPECT_EQ(DisplayWidth(c.text), c.width) << c.text;
}

TEST(Width, PrintableCannotMoveTheCursor) {
  EXPECT_EQ(Printable("a\nb"), "a␊b");
  EXPECT_EQ(Printable("\x1b[2J\x7f"), "␛[2J␡");
  EXPECT_EQ(Printable("\u009b2J"), "\uFFFD2J");  // C1 control sequence introducer
  EXPECT_EQ(Printable("\u202Eabc"),
            "\uFFFD"
            "abc");  // right-to-left override
  EXPECT_EQ(Printable("猫\xff"), "猫\uFFFD");
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "␀");
}

TEST(Width, TruncatesBetweenClusters) {
  EXPECT_EQ(TruncateToWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(TruncateToWidth("abcdef", 5), "abcd…");
  EXPECT_EQ(TruncateToWidth("这只猫", 6), "这只猫");
  EXPECT_EQ(TruncateToWidth("这只猫", 5), "这只…");
  EXPECT_EQ(TruncateToWidth("这只猫", 4), "这…");  // three columns, as no half character is shown
  EXPECT_EQ(TruncateToWidth("ae\u0301bc", 3), "ae\u0301…");
  EXPECT_EQ(TruncateToWidth("abc", 1), "…");
  EXPECT_EQ(TruncateToWidth("abc", 0), "");
}

TEST(Width, FitsExactly) {
  EXPECT_EQ(FitToWidth("猫", 5, Align::kLeft), "猫   ");
  EXPECT_EQ(FitToWidth("猫", 5, Align::kRight), "   猫");
  EXPECT_EQ(FitToWidth("猫", 5, Align::kCentre), " 猫  ");
  for (int width = 0; width < 12; ++width) {
    EXPECT_EQ(DisplayWidth(FitToWidth("a这只b猫", width, Align::kLeft)), width);
  }
}

}  // namespace
}  // namespace headlight
