#include "headlight/train/metrics.h"

#include <cstddef>

#include "headlight/base/error.h"

namespace headlight {

MetricsSum::MetricsSum(int64_t classes)
    : confusion_(static_cast<size_t>(classes),
                 std::vector<int64_t>(static_cast<size_t>(classes), 0)) {}

void MetricsSum::Add(int32_t label, int32_t predicted, double loss) {
  const auto row = static_cast<size_t>(label);
  const auto column = static_cast<size_t>(predicted);
  if (row >= confusion_.size() || column >= confusion_.size()) {
    throw Error(ErrorKind::kInternal, "metrics: classes must be below {}, found {} and {}",
                confusion_.size(), label, predicted);
  }
  ++confusion_[row][column];
  ++count_;
  loss_ += loss;
}

ClassificationMetrics MetricsSum::Result() const {
  ClassificationMetrics metrics;
  metrics.count = count_;
  metrics.confusion = confusion_;
  if (count_ == 0) return metrics;
  int64_t correct = 0;
  for (size_t c = 0; c < confusion_.size(); ++c) correct += confusion_[c][c];
  metrics.loss = loss_ / static_cast<double>(count_);
  metrics.accuracy = static_cast<double>(correct) / static_cast<double>(count_);
  metrics.macro_f1 = MacroF1(confusion_);
  return metrics;
}

double MacroF1(const std::vector<std::vector<int64_t>>& confusion) {
  double sum = 0;
  int64_t classes = 0;
  for (size_t c = 0; c < confusion.size(); ++c) {
    int64_t labelled = 0;
    int64_t predicted = 0;
    for (size_t other = 0; other < confusion.size(); ++other) {
      labelled += confusion[c][other];
      predicted += confusion[other][c];
    }
    if (labelled + predicted == 0) continue;
    // 2 tp + fp + fn = labelled + predicted.
    sum += 2 * static_cast<double>(confusion[c][c]) / static_cast<double>(labelled + predicted);
    ++classes;
  }
  return classes == 0 ? 0 : sum / static_cast<double>(classes);
}

}  // namespace headlight
