#include "headlight/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/random.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Texts(const std::vector<Token>& tokens) {
  std::vector<std::string> texts;
  for (const Token& token : tokens) texts.push_back(token.text);
  return texts;
}

std::vector<std::string> Auto(std::string_view text) { return Texts(Tokenizer().Tokenize(text)); }

std::vector<std::string> Cut(TokenizerKind kind, std::string_view text) {
  return Texts(Tokenizer({kind, LetterCase::kKeep, HtmlHandling::kKeep}).Tokenize(text));
}

TEST(TokenizerTest, AutoTakesChinesePerCharacterAndLatinWhole) {
  EXPECT_THAT(
      Auto("这只猫很可爱，它正在喝牛奶"),
      ElementsAre("这", "只", "猫", "很", "可", "爱", "，", "它", "正", "在", "喝", "牛", "奶"));
  EXPECT_THAT(Auto("iPhone 12的价格是5,999.00元"),
              ElementsAre("iphone", "12", "的", "价", "格", "是", "5,999.00", "元"));
  EXPECT_THAT(Auto("床有2M宽"), ElementsAre("床", "有", "2m", "宽"));
  EXPECT_THAT(Auto("カレー𠮷々"), ElementsAre("カ", "レ", "ー", "𠮷", "々"));
  EXPECT_THAT(Auto("สวัสดี"), ElementsAre("ส", "วั", "ส", "ดี"));
  EXPECT_THAT(Auto("한국어 좋다"), ElementsAre("한국어", "좋다"));
}

TEST(TokenizerTest, AutoKeepsWordsTogether) {
  EXPECT_THAT(Auto("Don't stop... it's O’Neil_2's 3.14, ok.Go"),
              ElementsAre("don't", "stop", ".", ".", ".", "it's", "o’neil_2", "'", "s", "3.14", ",",
                          "ok", ".", "go"));
  EXPECT_THAT(Auto("'quoted' -5 a-b ! 5. x_"),
              ElementsAre("'", "quoted", "'", "-", "5", "a", "-", "b", "!", "5", ".", "x", "_"));
  EXPECT_THAT(Auto("nai\xCC\x88ve ÉCOLE"), ElementsAre("naïve", "école"));
  // A combining mark that has no composed form stays with its letter, within a word too.
  EXPECT_THAT(Auto("ax\xCC\x81"
                   "b c"),
              ElementsAre("ax\xCC\x81"
                          "b",
                          "c"));
  EXPECT_THAT(Auto("हिन्दी भाषा"), ElementsAre("हिन्दी", "भाषा"));
}

TEST(TokenizerTest, AutoSigns) {
  EXPECT_THAT(Auto("👍🏽👨‍👩‍👧!"),
              ElementsAre("👍🏽", "👨‍👩‍👧", "!"));
  EXPECT_THAT(Auto("a\xE2\x80\x8B"
                   "b \xE2\x80\x8B c"),
              ElementsAre("a\xE2\x80\x8B"
                          "b",
                          "c"));
  EXPECT_THAT(Auto(" \t\r\n\x01\xE3\x80\x80"), IsEmpty());
  EXPECT_THAT(Auto(""), IsEmpty());
  EXPECT_THAT(Auto("a\xFF"
                   "b"),
              ElementsAre("a", "\xEF\xBF\xBD", "b"));
}

TEST(TokenizerTest, HtmlIsCleaned) {
  EXPECT_THAT(Auto("Good.<br /><br />Bad <B>movie</b>&amp;tv &quot;x&quot; &#39;&#x27;"),
              ElementsAre("good", ".", "bad", "movie", "&", "tv", "\"", "x", "\"", "'", "'"));
  EXPECT_THAT(Auto("a<b and b > c <3 <brb> &bogus; &; &#; 1<2"),
              ElementsAre("a", "<", "b", "and", "b", ">", "c", "<", "3", "<", "brb", ">", "&",
                          "bogus", ";", "&", ";", "&", "#", ";", "1", "<", "2"));
  EXPECT_THAT(Auto("<a href=\"x\">link</a>"), ElementsAre("link"));
  EXPECT_THAT(Auto("<br <br>"), ElementsAre("<", "br"));
  EXPECT_THAT(Auto("&#xFFFFFF;&#0;x&#xD800;"), ElementsAre("\xEF\xBF\xBD", "x", "\xEF\xBF\xBD"));
  EXPECT_THAT(Cut(TokenizerKind::kAuto, "A<br>&amp;"),
              ElementsAre("A", "<", "br", ">", "&", "amp", ";"));
}

TEST(TokenizerTest, OffsetsPointIntoTheGivenText) {
  const std::string text = "<p>Cafe\xCC\x81 &amp; \xFFÜBER 中İ";
  std::vector<std::string> sources;
  std::vector<Token> tokens = Tokenizer().Tokenize(text);
  for (const Token& token : tokens) {
    sources.push_back(text.substr(static_cast<size_t>(token.begin),
                                  static_cast<size_t>(token.end - token.begin)));
  }
  EXPECT_THAT(sources, ElementsAre("Cafe\xCC\x81", "&amp;", "\xFF", "ÜBER", "中", "İ"));
  EXPECT_THAT(Texts(tokens), ElementsAre("café", "&", "\xEF\xBF\xBD", "über", "中", "i\xCC\x87"));
}

TEST(TokenizerTest, Characters) {
  EXPECT_THAT(Cut(TokenizerKind::kCharacters, "e\xCC\x81 中A"), ElementsAre("é", " ", "中", "A"));
}

TEST(TokenizerTest, Bytes) {
  const Tokenizer tokenizer({TokenizerKind::kBytes, LetterCase::kLower, HtmlHandling::kClean});
  const std::vector<Token> tokens = tokenizer.Tokenize("A<中\n");
  EXPECT_THAT(Texts(tokens), ElementsAre("A", "<", "<0xE4>", "<0xB8>", "<0xAD>", "<0x0A>"));
  EXPECT_EQ(tokens[2].begin, 2);
  EXPECT_EQ(tokens[2].end, 3);
}

TEST(TokenizerTest, Words) {
  EXPECT_THAT(Cut(TokenizerKind::kWords, "Don't stop, U.S.A. 3.14!"),
              ElementsAre("Don't", "stop", ",", "U.S.A", ".", "3.14", "!"));
  EXPECT_THAT(Cut(TokenizerKind::kWords, "我喜欢北京"), ElementsAre("我", "喜欢", "北京"));
  const Tokenizer lower({TokenizerKind::kWords, LetterCase::kLower, HtmlHandling::kClean});
  EXPECT_THAT(Texts(lower.Tokenize("ONE<br/>Two")), ElementsAre("one", "two"));
}

TEST(TokenizerTest, Names) {
  for (const char* name : {"words", "characters", "bytes", "auto"}) {
    EXPECT_STREQ(TokenizerKindName(ParseTokenizerKind(name)), name);
  }
  EXPECT_EQ(ParseTokenizerKind("chars"), TokenizerKind::kCharacters);
  EXPECT_THROW(ParseTokenizerKind("bpe"), Error);
}

// What holds for any bytes: tokens are in order, lie inside the text, and are never empty.
TEST(TokenizerTest, AnyBytes) {
  const std::string pieces[] = {"a",       "B",    " ",        "'",    ".",  "5",
                                "中",      "\xFF", "é",        "\xE4", "<",  "<br/>",
                                "&",       ";",    "&lt;",     "ー",   "한", "_",
                                "İ",       "\n",   "\xCC\x81", "Σ",    "👍",  "\xE2\x80\x8D",
                                "\xF0\x9F"};
  RandomStream random(7, 0);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const uint64_t length = random.Below(12);
    for (uint64_t i = 0; i < length; ++i) text += pieces[random.Below(std::size(pieces))];
    for (const TokenizerKind kind : {TokenizerKind::kWords, TokenizerKind::kCharacters,
                                     TokenizerKind::kBytes, TokenizerKind::kAuto}) {
      int32_t last = 0;
      for (const Token& token :
           Tokenizer({kind, LetterCase::kLower, HtmlHandling::kClean}).Tokenize(text)) {
        ASSERT_FALSE(token.text.empty());
        ASSERT_GE(token.begin, last) << text;
        ASSERT_GT(token.end, token.begin) << text;
        ASSERT_LE(token.end, static_cast<int32_t>(text.size())) << text;
        last = token.begin;
      }
    }
  }
}

}  // namespace
}  // namespace headlight
