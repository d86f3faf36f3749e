#include "headlight/text/unicode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headlight {
namespace {

using testing::ElementsAre;

TEST(UnicodeTest, EveryCodePointGoesRoundTrip) {
  for (char32_t value = 0; value <= 0x10FFFF; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(value, &text);
    const CodePoint point = DecodeUtf8(text, 0);
    ASSERT_TRUE(point.valid) << static_cast<uint32_t>(value);
    ASSERT_EQ(point.value, value);
    ASSERT_EQ(point.length, static_cast<int>(text.size()));
  }
}

// The examples of the Unicode Standard 15.0, tables 3-8 to 3-11.
TEST(UnicodeTest, MaximalBrokenParts) {
  const std::string fffd = "\xEF\xBF\xBD";
  const auto replaced = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += fffd;
    return text;
  };
  EXPECT_EQ(RepairUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                       "A"),
            replaced(8) + "A");
  EXPECT_EQ(RepairUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                       "A"),
            replaced(8) + "A");
  EXPECT_EQ(RepairUtf8("\xF4\x91\x92\x93\xFF"
                       "A\x80\xBF"
                       "B"),
            replaced(5) + "A" + replaced(2) + "B");
  EXPECT_EQ(RepairUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                       "A"),
            replaced(4) + "A");
  EXPECT_EQ(RepairUtf8("\xE4\xBD"), fffd);
}

TEST(UnicodeTest, CheckCountsAndPlaces) {
  const Utf8Check check = CheckUtf8(
      "a\xFF"
      "b\xE4\xBD"
      "c\xEF\xBF\xBD\xFE",
      2);
  EXPECT_EQ(check.broken, 3);
  EXPECT_THAT(check.broken_places, ElementsAre(1, 3));
  EXPECT_EQ(check.replacement_characters, 1);
  EXPECT_TRUE(IsValidUtf8("价格"));
  EXPECT_FALSE(IsValidUtf8("\xB5"));
}

TEST(UnicodeTest, NfcAndLowerCase) {
  EXPECT_EQ(Nfc("e\xCC\x81"), "é");
  EXPECT_EQ(Nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "한");
  EXPECT_EQ(Nfc("plain"), "plain");
  EXPECT_EQ(Nfc("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(ToLower("ABC Ä ΟΔΟΣ"), "abc ä οδος");
  EXPECT_EQ(ToLower("PLAIN 5"), "plain 5");
}

TEST(UnicodeTest, WhiteSpace) {
  EXPECT_EQ(Trim("\xE3\x80\x80 a b\t\xC2\xA0"), "a b");
  EXPECT_TRUE(IsBlank(" \n\xE2\x80\x83"));
  EXPECT_TRUE(IsBlank(""));
  EXPECT_FALSE(IsBlank("\xE2\x80\x8B"));  // zero width space is no white space
  EXPECT_EQ(TextKey("  a \n\t b "), "a b");
  EXPECT_EQ(TextKey("cafe\xCC\x81"), TextKey("café"));
  EXPECT_NE(TextKey("A"), TextKey("a"));
}

TEST(UnicodeTest, Scripts) {
  std::vector<ScriptCount> counts;
  CountScripts("中文abc, 12 Ω", &counts);
  CountScripts("кот \xFF 文", &counts);
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts[0].script, "Cyrillic");
  EXPECT_EQ(counts[0].characters, 3);
  EXPECT_EQ(counts[1].script, "Greek");
  EXPECT_EQ(counts[2].script, "Han");
  EXPECT_EQ(counts[2].characters, 3);
  EXPECT_EQ(counts[3].script, "Latin");
  EXPECT_EQ(counts[3].characters, 3);
}

}  // namespace
}  // namespace headlight
