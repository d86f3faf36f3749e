#include "headlight/kernels/loss/cross_entropy.h"

#include <cmath>
#include <limits>

#include "headlight/base/error.h"
#include "headlight/kernels/check.h"

namespace headlight {
namespace {

// One row of few classes per sample: plain loops in double cost nothing here, so this is the
// reference and the fast code at once.

void Check(const char* operation, const Tensor& logits, std::span<const int32_t> labels,
           const CrossEntropyOptions& options) {
  CheckFloat(operation, "logits", logits);
  CheckMatrix(operation, "logits", logits, logits.dtype(), static_cast<int64_t>(labels.size()));
  for (int32_t label : labels) {
    if (label >= 0 && label < logits.size(1)) continue;
    throw Error(ErrorKind::kInput, "{}: labels must lie in [0, {}), found {}", operation,
                logits.size(1), label);
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    throw Error(ErrorKind::kUsage, "{}: label smoothing must lie in [0, 1), found {}", operation,
                options.label_smoothing);
  }
}

template <typename T>
double LogSumExpOf(const T* logits, int64_t classes) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < classes; ++c) {
    largest = std::fmax(largest, static_cast<double>(logits[c]));
  }
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - largest);
  return largest + std::log(sum);
}

}  // namespace

double CrossEntropyForward(const Tensor& logits, std::span<const int32_t> labels,
                           const CrossEntropyOptions& options, Tensor& losses) {
  Check("cross entropy", logits, labels, options);
  CheckVector("cross entropy", "losses", losses, logits.dtype(), logits.size(0));
  const int64_t classes = logits.size(1);
  const double smoothing = options.label_smoothing;
  double total = 0;
  DispatchFloat(logits.dtype(), [&]<typename T>() {
    for (size_t s = 0; s < labels.size(); ++s) {
      const T* row = logits.view<T>().row(static_cast<int64_t>(s));
      const double lse = LogSumExpOf(row, classes);
      double loss = (1 - smoothing) * (lse - static_cast<double>(row[labels[s]]));
      if (smoothing > 0) {
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += lse - static_cast<double>(row[c]);
        loss += smoothing / static_cast<double>(classes) * sum;
      }
      losses.data<T>()[s] = static_cast<T>(loss);
      total += loss;
    }
  });
  return labels.empty() ? 0 : total / static_cast<double>(labels.size());
}

// dlogits[c] = weight (p[c] - (1 - e) [c = label] - e / classes).
void CrossEntropyBackward(const Tensor& logits, std::span<const int32_t> labels,
                          const CrossEntropyOptions& options, double weight, Tensor& dlogits) {
  Check("cross entropy backward", logits, labels, options);
  CheckMatrix("cross entropy backward", "dlogits", dlogits, logits.dtype(), logits.size(0),
              logits.size(1));
  const int64_t classes = logits.size(1);
  const double smoothing = options.label_smoothing;
  DispatchFloat(logits.dtype(), [&]<typename T>() {
    for (size_t s = 0; s < labels.size(); ++s) {
      const T* row = logits.view<T>().row(static_cast<int64_t>(s));
      T* to = dlogits.view<T>().row(static_cast<int64_t>(s));
      const double lse = LogSumExpOf(row, classes);
      for (int64_t c = 0; c < classes; ++c) {
        const double wanted =
            (c == labels[s] ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
        to[c] = static_cast<T>(weight * (std::exp(static_cast<double>(row[c]) - lse) - wanted));
      }
    }
  });
}

}  // namespace headlight
