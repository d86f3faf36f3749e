#include "headlight/experiment/linear_baseline.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/random.h"

namespace headlight {
namespace {

struct Texts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> labels;
  LabelledTexts view() const { return {ids, labels}; }
};

// Ten noise words, then what `tail` adds for the label.
template <typename Tail>
Texts Make(int count, uint64_t seed, int classes, const Tail& tail) {
  RandomStream random(seed, 0);
  Texts texts;
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> ids;
    for (int j = 0; j < 10; ++j) ids.push_back(static_cast<int32_t>(2 + random.Below(50)));
    const auto label = static_cast<int32_t>(random.Below(static_cast<uint64_t>(classes)));
    tail(ids, label);
    texts.ids.push_back(ids);
    texts.labels.push_back(label);
  }
  return texts;
}

TEST(LinearBaseline, LearnsWordsOfThreeClasses) {
  const auto tail = [](std::vector<int32_t>& ids, int32_t label) { ids.push_back(100 + label); };
  const Texts train = Make(300, 1, 3, tail), valid = Make(100, 2, 3, tail);
  EXPECT_GT(FitLinearBaseline(train.view(), valid.view()).valid_accuracy, 0.98);
}

TEST(LinearBaseline, LearnsBigramsThatWordsCannotTell) {
  // Both classes hold the words 100 and 101; their order is the label.
  const auto tail = [](std::vector<int32_t>& ids, int32_t label) {
    ids.push_back(100 + label);
    ids.push_back(101 - label);
  };
  const Texts train = Make(300, 1, 2, tail), valid = Make(100, 2, 2, tail);
  EXPECT_GT(FitLinearBaseline(train.view(), valid.view()).valid_accuracy, 0.98);
}

TEST(LinearBaseline, StaysAtChanceOnNoise) {
  const auto tail = [](std::vector<int32_t>&, int32_t) {};
  const Texts train = Make(400, 1, 2, tail), valid = Make(400, 2, 2, tail);
  // Four standard errors of 400 coin tosses.
  EXPECT_NEAR(FitLinearBaseline(train.view(), valid.view()).valid_accuracy, 0.5, 0.1);
}

TEST(LinearBaseline, RefusesOneClass) {
  const auto tail = [](std::vector<int32_t>&, int32_t) {};
  const Texts one = Make(10, 1, 1, tail);
  EXPECT_THROW(FitLinearBaseline(one.view(), one.view()), Error);
  EXPECT_THROW(FitLinearBaseline({}, one.view()), Error);
}

}  // namespace
}  // namespace headlight
