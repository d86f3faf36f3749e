#include "headlight/text/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Dataset Train() {
  return {{{"A good good film", "pos", "f:1"},
           {"a bad film", "neg", "f:2"},
           {"", "neg", "f:3"},
           {"unlabelled words", "", "f:4"}},
          "csv"};
}

TextEncoder Encoder() {
  TextEncoderOptions options;
  options.max_len = 4;
  return TextEncoder::Build(Train(), options);
}

template <typename Function>
std::string MessageOf(const Function& function, ErrorKind kind = ErrorKind::kInput) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(TextEncoderTest, IdsFollowFrequency) {
  const TextEncoder encoder = Encoder();
  EXPECT_THAT(encoder.vocabulary().tokens(),
              ElementsAre("<pad>", "<unk>", "a", "film", "good", "bad"));
  EXPECT_THAT(encoder.labels(), ElementsAre("neg", "pos"));
  EXPECT_THAT(encoder.Encode("BAD new film"), ElementsAre(5, 1, 3));
  EXPECT_THAT(encoder.Encode("a a a a a a"), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(encoder.Encode(" "), IsEmpty());
  EXPECT_EQ(encoder.LabelId("pos"), 1);
  EXPECT_EQ(encoder.LabelId("other"), -1);
  const EncodedText encoded = encoder.EncodeWithTokens("good 猫");
  ASSERT_EQ(encoded.tokens.size(), 2u);
  EXPECT_EQ(encoded.tokens[1].text, "猫");
  EXPECT_EQ(encoded.tokens[1].begin, 5);
  EXPECT_EQ(encoded.tokens[1].end, 8);
}

TEST(TextEncoderTest, EncodeDataset) {
  Dataset dataset = Train();
  dataset.examples.push_back({"a a a a good", "pos", "f:5"});
  dataset.examples.push_back({"strange", "pos", "f:6"});
  const EncodedDataset encoded = Encoder().EncodeDataset(dataset);
  EXPECT_EQ(encoded.size(), 4);
  EXPECT_THAT(encoded.ids, ElementsAre(2, 4, 4, 3, 2, 5, 3, 2, 2, 2, 2, 1));
  EXPECT_THAT(encoded.offsets, ElementsAre(0, 4, 7, 11, 12));
  EXPECT_THAT(encoded.labels, ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(encoded.rows, ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(encoded.skipped, 2);
  EXPECT_EQ(encoded.cut, 1);
  EXPECT_EQ(encoded.unknown_tokens, 1);
  dataset.examples.push_back({"a", "new", "f:7"});
  EXPECT_THAT(MessageOf([&] { Encoder().EncodeDataset(dataset); }),
              HasSubstr("f:7: label 'new' does not occur in the training data"));
}

TEST(TextEncoderTest, ThreadsDoNotMatter) {
  Dataset dataset;
  for (int i = 0; i < 1000; ++i) {
    dataset.examples.push_back(
        {"word" + std::to_string(i * i % 97) + " and word" + std::to_string(i % 13),
         std::to_string(i % 3), "f"});
  }
  const int threads = NumThreads();
  std::vector<std::string> saved;
  std::vector<std::vector<int32_t>> ids;
  for (const int count : {1, 2, 3}) {
    SetNumThreads(count);
    const TextEncoder encoder = TextEncoder::Build(dataset, {});
    saved.push_back(encoder.ToJson());
    ids.push_back(encoder.EncodeDataset(dataset).ids);
  }
  SetNumThreads(threads);
  EXPECT_EQ(saved[0], saved[1]);
  EXPECT_EQ(saved[0], saved[2]);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
}

TEST(TextEncoderTest, SavedAndLoadedIsTheSame) {
  for (const TokenizerKind kind : {TokenizerKind::kWords, TokenizerKind::kCharacters,
                                   TokenizerKind::kBytes, TokenizerKind::kAuto}) {
    Dataset train = Train();
    train.examples.push_back({"quote \" back \\ 中 \xFF\x01", "1\"\n", "f"});
    TextEncoderOptions options;
    options.tokenizer = {kind, LetterCase::kKeep, HtmlHandling::kKeep};
    options.max_len = 7;
    const TextEncoder encoder = TextEncoder::Build(train, options);
    const TextEncoder loaded = TextEncoder::FromJson(encoder.ToJson(), "text.json");
    EXPECT_EQ(loaded.ToJson(), encoder.ToJson());
    EXPECT_EQ(loaded.Encode("A bad 中 \xFF"), encoder.Encode("A bad 中 \xFF"));
    EXPECT_EQ(loaded.max_len(), 7);
    EXPECT_EQ(loaded.icu_version(), IcuVersion());
    EXPECT_EQ(loaded.tokenizer().options().kind, kind);
    EXPECT_EQ(loaded.tokenizer().options().letter_case, LetterCase::kKeep);
    EXPECT_EQ(loaded.tokenizer().options().html, HtmlHandling::kKeep);
  }
}

TEST(TextEncoderTest, SaveWritesAFile) {
  const std::string path = testing::TempDir() + "headlight_text_encoder_test.json";
  Encoder().Save(path);
  EXPECT_EQ(TextEncoder::Load(path).ToJson(), Encoder().ToJson());
  std::remove(path.c_str());
}

// The ids of this text must never change; a change of the rules needs a new rules_version.
TEST(TextEncoderTest, TheSameIdsForEver) {
  const std::string text =
      "Café <br />“It’s” 3.14km, 你好，ＡＢＣ１２3! e-mail&amp;x_y ก็ Ωmega… \xFF";
  Dataset train{{{text, "a", "f:1"}, {text + " Café km", "b", "f:2"}}, "csv"};
  const TextEncoder encoder = TextEncoder::Build(train, {});
  EXPECT_THAT(encoder.vocabulary().tokens(),
              ElementsAre("<pad>", "<unk>", "café", "!", "&", ",", "-", "3.14km", "e", "it’s",
                          "mail", "x_y", "ωmega", "ก็", "“", "”", "…", "你", "好", "，",
                          "ａｂｃ１２3", "\xEF\xBF\xBD", "km"));
  EXPECT_THAT(encoder.Encode(text),
              ElementsAre(2, 14, 9, 15, 7, 5, 17, 18, 19, 20, 3, 8, 6, 10, 4, 11, 13, 12, 16, 21));
}

TEST(TextEncoderTest, BuildChecks) {
  Dataset train = Train();
  train.examples.erase(train.examples.begin());
  EXPECT_THAT(MessageOf([&] { TextEncoder::Build(train, {}); }),
              HasSubstr("at least two labels, found 1 ('neg')"));
  EXPECT_THAT(MessageOf([] { TextEncoder::Build({}, {}); }), HasSubstr("found 0"));
  const Dataset blank{{{"", "a", "f:1"}, {" ", "b", "f:2"}}, "csv"};
  EXPECT_THAT(MessageOf([&] { TextEncoder::Build(blank, {}); }), HasSubstr("no token"));
  TextEncoderOptions options;
  options.max_len = 0;
  MessageOf([&] { TextEncoder::Build(Train(), options); }, ErrorKind::kUsage);
}

TEST(TextEncoderTest, HostileJson) {
  const nlohmann::json good = nlohmann::json::parse(Encoder().ToJson());
  const auto message = [](const nlohmann::json& json) {
    return MessageOf([&] { TextEncoder::FromJson(json.dump(), "text.json"); });
  };
  ASSERT_EQ(message(good), "no error");
  for (const auto& [field, value] : good.items()) {
    nlohmann::json bad = good;
    bad.erase(field);
    EXPECT_THAT(message(bad), HasSubstr("text.json: field '" + field + "' is missing"));
    for (const char* other : {"null", "3.5", "[]", "[1]", "{}", "true", "\"x\"", "-1",
                              "18446744073709551615", "[\"a\",\"a\"]", "[\"\",\"a\"]"}) {
      bad[field] = nlohmann::json::parse(other);
      if (field == "icu_version" && bad[field].is_string()) continue;
      EXPECT_THAT(message(bad), HasSubstr("text.json: ")) << field << " " << other;
    }
  }
  nlohmann::json newer = good;
  newer["format_version"] = 2;
  EXPECT_THAT(message(newer), HasSubstr("field 'format_version' must be a whole number in [1, 1]"));
  newer = good;
  newer["tokenizer"]["rules_version"] = 2;
  EXPECT_THAT(message(newer), HasSubstr("rules_version"));
  for (const std::string& text : {std::string("{"), std::string(), std::string(100000, '['),
                                  std::string("[]"), std::string("{\"format\":\"\xFF\"}")}) {
    EXPECT_THAT(MessageOf([&] { TextEncoder::FromJson(text, "text.json"); }),
                HasSubstr("text encoder: text.json: "));
  }
}

}  // namespace
}  // namespace headlight
