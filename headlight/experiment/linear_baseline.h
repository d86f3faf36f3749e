// The baseline that shows what attention bought: logistic regression on words and bigrams
// (liblinear, Fan et al. 2008).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headlight {

// Token ids and class of each text; ids are those that the transformer sees.
struct LabelledTexts {
  std::span<const std::vector<int32_t>> ids;
  std::span<const int32_t> labels;
};

struct LinearBaseline {
  double train_accuracy = 0;
  double valid_accuracy = 0;
  int64_t features = 0;
  double seconds = 0;
};

// Features: presence of each word and of each pair of adjacent words (pairs seen in at least two
// training texts), each text scaled to length 1; L2-regularised logistic regression, one against
// the rest, C = 10. Deterministic. Throws kInput when a side is empty or the training texts have
// fewer than two classes.
LinearBaseline FitLinearBaseline(const LabelledTexts& train, const LabelledTexts& valid);

}  // namespace headlight
