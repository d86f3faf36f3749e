// Heads whose weights are set by hand, so that what they do is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "headlight/analysis/head_summary.h"
#include "headlight/analysis/relation_scores.h"
#include "headlight/analysis/roles.h"
#include "headlight/analysis/word_class.h"
#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::HasSubstr;

// Word i has embedding unit vector i; one layer, two heads, no positions. Head 0 looks from word 2
// ("it") at word 3 ("cat") and elsewhere evenly; head 1 always evenly.
constexpr int64_t kWords = 8;

Tensor& ValueOf(TextClassifier& model, const std::string& name) {
  for (Parameter* parameter : model.Parameters()) {
    if (parameter->name == name) return parameter->value;
  }
  throw Error(ErrorKind::kInternal, "no parameter {}", name);
}

TextClassifier HandMadeModel() {
  TextClassifierConfig config;
  config.vocabulary = kWords;
  config.classes = 2;
  config.max_len = 64;
  config.dim = kWords;
  config.layers = 1;
  config.heads = 2;
  config.positions = PositionKind::kNone;
  TextClassifier model(config, DType::kF32, 1);
  Tensor& embedding = ValueOf(model, "embedding.token.weight");
  Tensor& query = ValueOf(model, "encoder.0.attention.query.weight");
  Tensor& key = ValueOf(model, "encoder.0.attention.key.weight");
  for (Tensor* tensor : {&embedding, &query, &key}) tensor->FillZero();
  for (int64_t word = 0; word < kWords; ++word) embedding.view<float>()(word, word) = 1;
  query.view<float>()(0, 2) = 40;  // head 0, feature 0: word 2 asks ...
  key.view<float>()(0, 3) = 1;     // ... for word 3
  model.PrepareWeights();
  return model;
}

AnalysedText Text(const std::vector<int32_t>& ids) {
  static const std::vector<std::string> kNames = {"<pad>", "<unk>", "it",  "cat",
                                                  "sat",   ".",     "the", "mat"};
  AnalysedText text{ids, {}};
  for (int32_t id : ids) text.tokens.push_back(kNames[static_cast<size_t>(id)]);
  return text;
}

TEST(HeadSummary, UniformHeadHasTheFiguresOfOne) {
  const TextClassifier model = HandMadeModel();
  const std::vector<AnalysedText> texts = {Text({6, 3, 4, 5})};  // the cat sat .
  const std::vector<HeadSummary> heads = SummarizeHeads(model, texts);
  ASSERT_EQ(heads.size(), 2u);
  const HeadSummary& head = heads[1];
  EXPECT_EQ(head.queries, 4);
  EXPECT_NEAR(head.entropy, std::log(4.0), 1e-5);
  EXPECT_NEAR(head.relative_entropy, 1, 1e-5);
  EXPECT_NEAR(head.mean_distance, 1.25, 1e-5);  // 20 / 16
  EXPECT_NEAR(head.first, 0.25, 1e-5);
  EXPECT_NEAR(head.punctuation, 0.25, 1e-5);
  EXPECT_NEAR(head.previous, 0.75 * 0.25, 1e-5);
  EXPECT_NEAR(head.uniform_neighbour, 0.75 * 0.25, 1e-5);
  EXPECT_NEAR(head.query_dependence, 0, 1e-5);
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kUniform);
}

TEST(HeadSummary, LooksOnlyAtTextsWithTwoTokens) {
  const TextClassifier model = HandMadeModel();
  const std::vector<AnalysedText> one = {Text({6})};
  EXPECT_THROW(SummarizeHeads(model, one), Error);
}

// "it" at changing distances before and after "cat".
std::vector<GoldText> PronounTexts(int count) {
  std::vector<GoldText> texts;
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> ids(12, 6);
    const int32_t it = i % 12;
    const int32_t cat = (i * 5 + 3) % 12 == it ? (it + 1) % 12 : (i * 5 + 3) % 12;
    ids[static_cast<size_t>(it)] = 2;
    ids[static_cast<size_t>(cat)] = 3;
    texts.push_back({Text(ids), {{RelationKind::kPronoun, it, cat, cat + 1}}});
  }
  return texts;
}

const RelationScore& Find(const std::vector<RelationScore>& scores, int head,
                          RelationDirection direction) {
  return *std::find_if(scores.begin(), scores.end(), [&](const RelationScore& score) {
    return score.head == head && score.direction == direction;
  });
}

TEST(RelationScores, FindTheHeadThatFollowsTheRelation) {
  const TextClassifier model = HandMadeModel();
  const std::vector<GoldText> texts = PronounTexts(120);
  const std::vector<RelationScore> scores = ScoreRelations(model, texts);
  ASSERT_EQ(scores.size(), 4u);  // 2 heads x 2 directions
  const RelationScore& pronoun = Find(scores, 0, RelationDirection::kForward);
  EXPECT_EQ(pronoun.queries, 120);
  EXPECT_GT(pronoun.top1.share, 0.999);
  EXPECT_GT(pronoun.mass.share, 0.99);
  EXPECT_LT(pronoun.best_offset_top1.share, 0.5);
  EXPECT_TRUE(pronoun.above_baselines);
  EXPECT_FALSE(Find(scores, 0, RelationDirection::kBackward).above_baselines);
  EXPECT_FALSE(Find(scores, 1, RelationDirection::kForward).above_baselines);

  std::vector<AnalysedText> plain;
  for (const GoldText& text : texts) plain.push_back(text.text);
  const NamedRole role = NameRole(SummarizeHeads(model, plain)[0], scores, {});
  EXPECT_EQ(role.role, HeadRole::kPronoun) << role.reason;
}

TEST(RelationScores, ShuffledGoldLeavesNothing) {
  const TextClassifier model = HandMadeModel();
  std::vector<GoldText> texts = PronounTexts(120);
  ShuffleGold(texts, 7);
  for (const RelationScore& score : ScoreRelations(model, texts))
    EXPECT_FALSE(score.above_baselines);
}

TEST(RelationScores, ShuffledTargetsFallOnEveryTokenAlike) {
  std::vector<GoldText> texts(3000, {Text({6, 3, 4, 5}), {{RelationKind::kSubject, 1, 2, 4}}});
  ShuffleGold(texts, 1);
  std::vector<int> hits(4);
  for (const GoldText& text : texts) {
    int width = 0;
    for (const GoldRelation& relation : text.relations) {
      for (int32_t to = relation.to_begin; to < relation.to_end; ++to, ++width)
        ++hits[static_cast<size_t>(to)];
    }
    EXPECT_EQ(width, 2);
  }
  for (int hit : hits) EXPECT_NEAR(hit, 1500, 110);  // four standard deviations
}

// Every token of head 0 looks at "cat": that says nothing of "it", though "it" is always right.
TEST(RelationScores, AHeadThatLooksAtOneWordFromEverywhereFollowsNoRelation) {
  TextClassifier model = HandMadeModel();
  Tensor& query = ValueOf(model, "encoder.0.attention.query.weight");
  for (int64_t word = 0; word < kWords; ++word) query.view<float>()(0, word) = 40;
  model.PrepareWeights();
  const std::vector<RelationScore> scores = ScoreRelations(model, PronounTexts(120));
  const RelationScore& pronoun = Find(scores, 0, RelationDirection::kForward);
  EXPECT_GT(pronoun.top1.share, 0.999);
  EXPECT_GT(pronoun.other_queries_top1.share, 0.999);
  EXPECT_FALSE(pronoun.above_baselines);
}

// All tokens but one look at "cat". That 36 pronouns never are that one happens by chance (3 %),
// that 144 never are does not.
TEST(RelationScores, AFewTokensThatLookElsewhereAreMissedByChance) {
  TextClassifier model = HandMadeModel();
  Tensor& query = ValueOf(model, "encoder.0.attention.query.weight");
  for (int64_t word = 0; word < kWords; ++word) query.view<float>()(0, word) = word == 4 ? -40 : 40;
  model.PrepareWeights();
  for (const auto& [count, above] : {std::pair(36, false), std::pair(144, true)}) {
    std::vector<GoldText> texts = PronounTexts(count);
    for (GoldText& text : texts) *std::find(text.text.ids.begin(), text.text.ids.end(), 6) = 4;
    const std::vector<RelationScore> scores = ScoreRelations(model, texts);
    const RelationScore& pronoun = Find(scores, 0, RelationDirection::kForward);
    EXPECT_EQ(pronoun.top1.share, 1);
    EXPECT_EQ(pronoun.above_baselines, above) << count;
  }
}

TEST(RelationScores, OffsetBaselineFindsAFixedDistance) {
  const TextClassifier model = HandMadeModel();
  std::vector<GoldText> texts = PronounTexts(40);
  for (GoldText& text : texts) text.relations = {{RelationKind::kVerbObject, 4, 7, 8}};
  const std::vector<RelationScore> scores = ScoreRelations(model, texts);
  EXPECT_EQ(scores[0].best_offset, 3);
  EXPECT_EQ(scores[0].best_offset_top1.share, 1);
}

TEST(Roles, DegenerateHeadsAreSaidSo) {
  HeadSummary head;
  head.first = 0.95;
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kDegenerate);
  EXPECT_THAT(NameRole(head, {}, {}).reason, HasSubstr("first token"));
  head.first = 0.1;
  head.relative_entropy = 0.5;
  head.query_dependence = 0.001;
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kDegenerate);
  head.query_dependence = 0.4;
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kMixed);
  head.previous = 0.7;
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kNeighbour);
  head.punctuation = 0.6;
  head.uniform_punctuation = 0.4;
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kNeighbour);
  head.uniform_punctuation = 0.1;
  EXPECT_EQ(NameRole(head, {}, {}).role, HeadRole::kPunctuation);
}

TEST(WordClass, Punctuation) {
  for (const char* token : {".", ",", "，", "。", "！", "...", "$"})
    EXPECT_TRUE(IsPunctuationToken(token)) << token;
  for (const char* token : {"", "a", "猫", "3", "don't", "\xff"})
    EXPECT_FALSE(IsPunctuationToken(token)) << token;
}

}  // namespace
}  // namespace headlight
