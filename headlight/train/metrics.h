// What a classifier's outputs are worth: loss, accuracy, macro-F1, confusion matrix.
#pragma once

#include <cstdint>
#include <vector>

namespace headlight {

struct ClassificationMetrics {
  int64_t count = 0;
  double loss = 0;      // mean cross entropy (natural log, no label smoothing)
  double accuracy = 0;  // share of texts whose largest probability is the label's
  double macro_f1 = 0;  // mean over the classes that occur as label or as prediction
  // confusion[label][predicted], counts.
  std::vector<std::vector<int64_t>> confusion;
};

// Adds up texts in the order in which they come; the order fixes the bits of the loss.
class MetricsSum {
 public:
  explicit MetricsSum(int64_t classes);

  // `loss`: of this text. Throws kInternal when a class is out of range.
  void Add(int32_t label, int32_t predicted, double loss);
  // With no text, all are 0.
  ClassificationMetrics Result() const;

 private:
  double loss_ = 0;
  int64_t count_ = 0;
  std::vector<std::vector<int64_t>> confusion_;
};

// Mean over classes c of 2 tp / (2 tp + fp + fn); classes that are neither a label nor predicted
// are left out, for they have no F1.
double MacroF1(const std::vector<std::vector<int64_t>>& confusion);

}  // namespace headlight
