// Softmax cross entropy with label smoothing (Szegedy et al. 2016, section 7), as PyTorch defines
// it:
//   loss = -(1 - e) log p[label] - e / classes sum over c of log p[c],  p = softmax(logits).
// logits [batch, classes], f32 or f64, rows may lie apart; computed in double. Errors: kShape;
// kInput for a label outside of [0, classes).
#pragma once

#include <cstdint>
#include <span>

#include "headlight/tensor/tensor.h"

namespace headlight {

struct CrossEntropyOptions {
  double label_smoothing = 0;  // e, in [0, 1)
};

// Loss of each sample: losses [batch], of the dtype of logits. Returns their mean (0 for none).
double CrossEntropyForward(const Tensor& logits, std::span<const int32_t> labels,
                           const CrossEntropyOptions& options, Tensor& losses);

// Gradient of (sum of the losses) * weight; weight = 1 / batch for the mean. dlogits may be logits.
void CrossEntropyBackward(const Tensor& logits, std::span<const int32_t> labels,
                          const CrossEntropyOptions& options, double weight, Tensor& dlogits);

}  // namespace headlight
