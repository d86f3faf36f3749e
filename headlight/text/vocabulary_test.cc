#include "headlight/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::ElementsAre;

TokenCounts Counts() {
  TokenCounts counts;
  counts.Add("b", 3);
  counts.Add("a", 3);
  counts.Add("中", 5);
  counts.Add("rare");
  counts.Add(std::vector<Token>{{"a", 0, 1}, {"once", 1, 2}});
  return counts;
}

TEST(VocabularyTest, ByFrequencyThenBytes) {
  const Vocabulary vocabulary = Vocabulary::Build(Counts(), {});
  EXPECT_THAT(vocabulary.tokens(), ElementsAre("<pad>", "<unk>", "中", "a", "b", "once", "rare"));
  EXPECT_EQ(vocabulary.Id("中"), 2);
  EXPECT_EQ(vocabulary.Id("rare"), 6);
  EXPECT_EQ(vocabulary.Id("never"), Vocabulary::kUnknown);
  EXPECT_EQ(vocabulary.Id("<pad>"), Vocabulary::kUnknown);
  EXPECT_EQ(vocabulary.Token(3), "a");
  EXPECT_THROW(vocabulary.Token(7), Error);
  EXPECT_THROW(vocabulary.Token(-1), Error);
}

TEST(VocabularyTest, SizeAndMinimumCount) {
  EXPECT_THAT(Vocabulary::Build(Counts(), {4, 1}).tokens(),
              ElementsAre("<pad>", "<unk>", "中", "a"));
  EXPECT_THAT(Vocabulary::Build(Counts(), {100, 4}).tokens(),
              ElementsAre("<pad>", "<unk>", "中", "a"));
  EXPECT_THROW(Vocabulary::Build(Counts(), {2, 1}), Error);
  EXPECT_THROW(Vocabulary::Build(Counts(), {100, 0}), Error);
}

TEST(VocabularyTest, MergeIsAddition) {
  TokenCounts twice = Counts();
  twice.Merge(Counts());
  EXPECT_EQ(twice.counts().at("a"), 8);
  EXPECT_EQ(twice.counts().at("rare"), 2);
}

TEST(VocabularyTest, ReservedNamesInTextGetNoId) {
  TokenCounts counts = Counts();
  counts.Add("<unk>", 100);
  EXPECT_EQ(Vocabulary::Build(counts, {}).tokens()[2], "中");
}

TEST(VocabularyTest, FromTokensChecks) {
  EXPECT_EQ(Vocabulary::FromTokens({"<pad>", "<unk>", "x"}).Id("x"), 2);
  EXPECT_THROW(Vocabulary::FromTokens({}), Error);
  EXPECT_THROW(Vocabulary::FromTokens({"<unk>", "<pad>"}), Error);
  EXPECT_THROW(Vocabulary::FromTokens({"<pad>", "<unk>", "x", "x"}), Error);
  EXPECT_THROW(Vocabulary::FromTokens({"<pad>", "<unk>", "<unk>"}), Error);
}

}  // namespace
}  // namespace headlight
