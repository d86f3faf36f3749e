#include "headlight/text/relations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::HasSubstr;

std::vector<RelationsExample> Make(RelationsLanguage language, int64_t count, uint64_t seed) {
  return MakeRelations({language, count, seed});
}

std::string Words(const RelationsExample& example, int32_t begin, int32_t end) {
  std::string words;
  for (int32_t token = begin; token < end; ++token) {
    words += example.tokens[static_cast<size_t>(token)];
  }
  return words;
}

class Relations : public testing::TestWithParam<RelationsLanguage> {
 protected:
  static bool Chinese() { return GetParam() == RelationsLanguage::kChinese; }
};

INSTANTIATE_TEST_SUITE_P(Languages, Relations,
                         testing::Values(RelationsLanguage::kChinese, RelationsLanguage::kEnglish),
                         [](const auto& language) {
                           return language.param == RelationsLanguage::kChinese ? "zh" : "en";
                         });

TEST_P(Relations, AnExampleDependsOnItsIndexNotOnTheCount) {
  const auto few = Make(GetParam(), 10, 3);
  const auto many = Make(GetParam(), 200, 3);
  ASSERT_EQ(few.size(), 10u);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  EXPECT_NE(many[0], Make(GetParam(), 1, 4)[0]);
}

TEST_P(Relations, LabelsAreBalancedInEveryBlockOfFour) {
  const auto examples = Make(GetParam(), 400, 5);
  for (size_t block = 0; block < examples.size(); block += 4) {
    std::set<std::string> labels;
    for (size_t index = block; index < block + 4; ++index) labels.insert(examples[index].label);
    EXPECT_EQ(labels, (std::set<std::string>{"age", "character", "mood", "size"}));
  }
}

TEST_P(Relations, TokensJoinToTheText) {
  for (const RelationsExample& example : Make(GetParam(), 500, 1)) {
    std::string joined;
    for (const std::string& token : example.tokens) {
      const bool mark = token == "." || token == "," || token == ";" || token == "!";
      if (!Chinese() && !joined.empty() && !mark) joined += ' ';
      joined += token;
      if (Chinese()) {
        EXPECT_EQ(token.size(), 3u) << token;
      } else {
        EXPECT_TRUE(mark || std::ranges::all_of(
                                token, [](char letter) { return letter >= 'a' && letter <= 'z'; }))
            << token;
      }
    }
    EXPECT_EQ(joined, example.text);
    EXPECT_LE(example.tokens.size(), 100u);
  }
}

TEST_P(Relations, EveryKindOfRelationPointsInsideTheText) {
  for (const RelationsExample& example : Make(GetParam(), 500, 2)) {
    std::array<int, kRelationKinds> found{};
    const auto tokens = static_cast<int32_t>(example.tokens.size());
    for (const GoldRelation& gold : example.relations) {
      ++found[static_cast<size_t>(gold.kind)];
      EXPECT_TRUE(0 <= gold.from && gold.from < tokens);
      EXPECT_TRUE(0 <= gold.to_begin && gold.to_begin < gold.to_end && gold.to_end <= tokens);
      EXPECT_TRUE(gold.from < gold.to_begin || gold.from >= gold.to_end);
    }
    EXPECT_THAT(found, testing::Each(testing::Ge(1))) << example.text;
  }
}

TEST_P(Relations, PunctuationEndsTheClauseOfEveryWord) {
  for (const RelationsExample& example : Make(GetParam(), 200, 2)) {
    std::set<int32_t> marks;
    std::map<int32_t, int32_t> mark_of;
    for (const GoldRelation& gold : example.relations) {
      if (gold.kind != RelationKind::kPunctuation) continue;
      EXPECT_EQ(gold.to_end, gold.to_begin + 1);
      marks.insert(gold.to_begin);
      mark_of[gold.from] = gold.to_begin;
    }
    EXPECT_EQ(*marks.rbegin(), static_cast<int32_t>(example.tokens.size()) - 1);
    for (int32_t token = 0; token < static_cast<int32_t>(example.tokens.size()); ++token) {
      if (marks.contains(token)) continue;
      EXPECT_EQ(mark_of.at(token), *marks.upper_bound(token));
    }
  }
}

// Nouns, verbs and adjectives as the relations name them.
struct Lexicon {
  std::map<std::string, std::set<std::string>> antecedents;  // pronoun -> nouns
  std::set<std::string> nouns;
  std::set<std::string> verbs;
  std::set<std::string> adjectives;
};

// A word's tokens stand in neighbouring relations with the same target.
Lexicon CollectWords(const std::vector<RelationsExample>& examples) {
  Lexicon lexicon;
  for (const RelationsExample& example : examples) {
    for (size_t index = 0; index < example.relations.size();) {
      const GoldRelation& gold = example.relations[index];
      int32_t end = gold.from;
      for (; index < example.relations.size(); ++index, ++end) {
        const GoldRelation& next = example.relations[index];
        if (next.kind != gold.kind || next.from != end || next.to_begin != gold.to_begin) break;
      }
      const std::string source = Words(example, gold.from, end);
      const std::string target = Words(example, gold.to_begin, gold.to_end);
      if (gold.kind == RelationKind::kPronoun) {
        lexicon.antecedents[source].insert(target);
        lexicon.nouns.insert(target);
      }
      if (gold.kind == RelationKind::kVerbObject) lexicon.verbs.insert(source);
      if (gold.kind == RelationKind::kAdjective) lexicon.adjectives.insert(source);
    }
  }
  return lexicon;
}

TEST_P(Relations, PronounsAgreeAndThereAreTensOfWords) {
  const Lexicon lexicon = CollectWords(Make(GetParam(), 4000, 1));
  EXPECT_GE(lexicon.nouns.size(), 30u);
  EXPECT_GE(lexicon.verbs.size(), 20u);
  EXPECT_GE(lexicon.adjectives.size(), 20u);
  const auto& by_pronoun = lexicon.antecedents;
  const std::vector<std::set<std::string>> classes =
      Chinese() ? std::vector<std::set<std::string>>{{"他"}, {"她"}, {"它"}, {"他们", "它们"}}
                : std::vector<std::set<std::string>>{
                      {"he", "him"}, {"she", "her"}, {"it"}, {"they", "them"}};
  std::map<std::string, size_t> class_of_noun;
  size_t pronouns = 0;
  for (size_t index = 0; index < classes.size(); ++index) {
    for (const std::string& pronoun : classes[index]) {
      ASSERT_TRUE(by_pronoun.contains(pronoun)) << pronoun;
      ++pronouns;
      for (const std::string& noun : by_pronoun.at(pronoun)) {
        EXPECT_EQ(class_of_noun.try_emplace(noun, index).first->second, index) << noun;
      }
    }
  }
  EXPECT_EQ(pronouns, by_pronoun.size());
  if (Chinese()) {
    EXPECT_TRUE(by_pronoun.at("他").contains("国王") && by_pronoun.at("她").contains("阿姨"));
    EXPECT_TRUE(by_pronoun.at("它").contains("猫") && by_pronoun.at("他们").contains("孩子们"));
    EXPECT_TRUE(by_pronoun.at("它们").contains("鸟儿们"));
    EXPECT_FALSE(by_pronoun.at("它们").contains("孩子们"));
  } else {
    EXPECT_TRUE(by_pronoun.at("he").contains("king") && by_pronoun.at("she").contains("queen"));
    EXPECT_TRUE(by_pronoun.at("it").contains("cat") && by_pronoun.at("them").contains("children"));
  }
}

const GoldRelation* Find(const RelationsExample& example, RelationKind kind, int32_t from) {
  for (const GoldRelation& gold : example.relations) {
    if (gold.kind == kind && gold.from == from) return &gold;
  }
  return nullptr;
}

// The adjective of a noun, from the gold relations.
std::string AdjectiveOf(const RelationsExample& example, int32_t noun_begin) {
  std::string adjective;
  for (const GoldRelation& gold : example.relations) {
    if (gold.kind == RelationKind::kAdjective && gold.to_begin == noun_begin) {
      adjective += Words(example, gold.from, gold.from + 1);
    }
  }
  return adjective;
}

// The label from the gold relations alone: pronoun -> its verb, pronoun -> its noun, that noun's
// adjective. Every verb is either always that of the one whom the label describes, or always that
// of another; and every adjective of the former gives one label.
TEST_P(Relations, TheLabelFollowsFromTheRelations) {
  const auto examples = Make(GetParam(), 4000, 7);
  std::map<std::string, std::map<std::string, int>> labels_of_adjective;
  struct Deeds {
    int of_label = 0;
    int in_all = 0;
  };
  std::map<std::string, Deeds> by_verb;
  std::map<std::string, std::string> category;  // of an adjective
  for (int pass = 0; pass < 2; ++pass) {
    for (const RelationsExample& example : examples) {
      std::map<int32_t, int32_t> verb_of_noun;  // token indices; a pronoun may have several tokens
      for (const GoldRelation& gold : example.relations) {
        if (gold.kind != RelationKind::kPronoun) continue;
        const GoldRelation* acts = Find(example, RelationKind::kSubject, gold.from);
        ASSERT_NE(acts, nullptr) << example.text;
        verb_of_noun[gold.to_begin] = acts->to_begin;
      }
      ASSERT_EQ(verb_of_noun.size(), 2u) << example.text;
      for (const auto& [noun, verb_begin] : verb_of_noun) {
        std::string verb;
        for (const GoldRelation& gold : example.relations) {
          if (gold.kind == RelationKind::kSubject && gold.to_begin == verb_begin) {
            verb = Words(example, gold.to_begin, gold.to_end);
          }
        }
        const std::string adjective = AdjectiveOf(example, noun);
        ASSERT_FALSE(adjective.empty()) << example.text;
        if (pass == 0) {
          ++labels_of_adjective[adjective][example.label];
        } else {
          ++by_verb[verb].in_all;
          by_verb[verb].of_label += category.at(adjective) == example.label ? 1 : 0;
        }
      }
    }
    // The category of an adjective is the label that it comes with most.
    for (const auto& [adjective, labels] : labels_of_adjective) {
      category[adjective] = std::ranges::max_element(labels, {}, [](const auto& entry) {
                              return entry.second;
                            })->first;
    }
  }
  EXPECT_GE(by_verb.size(), 20u);
  for (const auto& [verb, deeds] : by_verb) {
    EXPECT_TRUE(deeds.of_label == 0 || deeds.of_label == deeds.in_all)
        << verb << ": " << deeds.of_label << " of " << deeds.in_all;
  }
}

// The distances of every relation vary: no fixed offset fits more than 60 in 100 of them.
TEST_P(Relations, NoFixedOffsetFits) {
  std::map<RelationKind, std::map<int32_t, int>> hits;
  std::map<RelationKind, int> total;
  for (const RelationsExample& example : Make(GetParam(), 1000, 1)) {
    for (const GoldRelation& gold : example.relations) {
      ++total[gold.kind];
      for (int32_t to = gold.to_begin; to < gold.to_end; ++to) ++hits[gold.kind][to - gold.from];
    }
  }
  for (const auto& [kind, offsets] : hits) {
    int best = 0;
    for (const auto& [offset, count] : offsets) best = std::max(best, count);
    EXPECT_LT(best, 0.6 * total[kind]) << RelationName(kind);
  }
}

// Naive Bayes over the words and neighbouring pairs of a text.
class NaiveBayes {
 public:
  explicit NaiveBayes(const std::vector<RelationsExample>& train) {
    for (const RelationsExample& example : train) {
      const size_t label = LabelIndex(example.label);
      for (const std::string& feature : Features(example)) {
        counts_[feature][label] += 1.0;
        totals_[label] += 1.0;
      }
    }
  }

  double Accuracy(const std::vector<RelationsExample>& valid) const {
    int right = 0;
    for (const RelationsExample& example : valid) {
      std::array<double, 4> score{};
      for (const std::string& feature : Features(example)) {
        const auto found = counts_.find(feature);
        if (found == counts_.end()) continue;
        for (size_t label = 0; label < 4; ++label) {
          score[label] += std::log((found->second[label] + 1.0) / (totals_[label] + 1.0));
        }
      }
      const auto best = std::ranges::max_element(score) - score.begin();
      right += static_cast<size_t>(best) == LabelIndex(example.label);
    }
    return static_cast<double>(right) / static_cast<double>(valid.size());
  }

 private:
  static size_t LabelIndex(const std::string& label) {
    return label == "size" ? 0 : label == "age" ? 1 : label == "mood" ? 2 : 3;
  }

  static std::vector<std::string> Features(const RelationsExample& example) {
    std::vector<std::string> features = example.tokens;
    for (size_t token = 1; token < example.tokens.size(); ++token) {
      features.push_back(example.tokens[token - 1] + ' ' + example.tokens[token]);
    }
    return features;
  }

  std::unordered_map<std::string, std::array<double, 4>> counts_;
  std::array<double, 4> totals_{};
};

TEST_P(Relations, ABagOfWordsAndBigramsStaysAtChance) {
  const NaiveBayes bayes(Make(GetParam(), 8000, 1));
  const double accuracy = bayes.Accuracy(Make(GetParam(), 4000, 2));
  EXPECT_NEAR(accuracy, 0.25, 0.03);
}

TEST_P(Relations, SeedsShareNoPassages) {
  std::unordered_set<std::string> train;
  for (const RelationsExample& example : Make(GetParam(), 8000, 1)) train.insert(example.text);
  EXPECT_EQ(train.size(), 8000u);
  for (const RelationsExample& example : Make(GetParam(), 2000, 2)) {
    EXPECT_FALSE(train.contains(example.text)) << example.text;
  }
}

TEST_P(Relations, JsonLinesComeBackAsTheyWere) {
  const auto examples = Make(GetParam(), 20, 9);
  const std::string lines = FormatRelations(examples);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 20);
  EXPECT_EQ(ParseRelations(lines, "gold.jsonl"), examples);
}

TEST(RelationsOptions, RefusesANegativeCountAndUnknownNames) {
  EXPECT_THROW(Make(RelationsLanguage::kEnglish, -1, 0), Error);
  EXPECT_THROW(Make(RelationsLanguage::kEnglish, kMostPassages + 1, 0), Error);
  EXPECT_TRUE(Make(RelationsLanguage::kEnglish, 0, 0).empty());
  EXPECT_THROW(RelationsLanguageFromName("fr"), Error);
  EXPECT_THROW(RelationFromName("object"), Error);
  EXPECT_EQ(RelationFromName("verb-object"), RelationKind::kVerbObject);
}

TEST(ParseRelations, NamesTheFileTheLineAndTheFault) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "one JSON object"},
      {"[1]", "must be an object, found array"},
      {R"({"text":"a","label":"b","tokens":["a"]})", "the field 'relations' is missing"},
      {R"({"text":1,"label":"b","tokens":[],"relations":[]})", "'text' must be a string"},
      {R"({"text":"a","label":"b","tokens":[1],"relations":[]})", "a token must be a string"},
      {R"({"text":"a","label":"b","tokens":["a"],"relations":[{"relation":"x"}]})", "found 'x'"},
      {R"({"text":"a","label":"b","tokens":["a"],"relations":[{"relation":"subject","from":1,)"
       R"("to":[0,1]}]})",
       "'from' must be a token index up to 0, found 1"},
      {R"({"text":"a","label":"b","tokens":["a"],"relations":[{"relation":"subject","from":0,)"
       R"("to":[0,2]}]})",
       "'to' must be a token index up to 1, found 2"},
      {R"({"text":"a","label":"b","tokens":["a"],"relations":[{"relation":"subject","from":0,)"
       R"("to":[0,0]}]})",
       "must not be empty"},
      {R"({"text":"a","label":"b","tokens":["a"],"relations":[{"relation":"subject","from":0,)"
       R"("to":[0]}]})",
       "must be [begin, end]"},
  };
  for (const auto& [line, message] : cases) {
    try {
      ParseRelations("\n" + line + "\n", "gold.jsonl");
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_THAT(error.what(), testing::StartsWith("gold.jsonl:2: "));
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

}  // namespace
}  // namespace headlight
