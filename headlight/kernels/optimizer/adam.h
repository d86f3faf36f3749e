// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019), in PyTorch's order of operations:
//   g = gradient_scale gradient (+ weight_decay value: kCoupled);  value *= 1 - lr weight_decay
//   (kDecoupled);  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;
//   value -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon).
// All tensors contiguous, of one shape, f32 (vector code) or f64 (plain loops). Errors: kShape.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/tensor/tensor.h"

namespace headlight {

// How weight decay enters: as a gradient of an L2 penalty (Adam), or apart from it (AdamW).
enum class WeightDecay { kCoupled, kDecoupled };

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  WeightDecay decay = WeightDecay::kDecoupled;
};

struct AdamTensors {
  Tensor& value;
  Tensor& gradient;  // read only, unless AdamStep is told to clear it
  Tensor& first_moment;
  Tensor& second_moment;
};

// What is left in the gradient after the step.
enum class AfterStep { kKeepGradient, kClearGradient };

// step counts from 1. Each element depends on its own four values alone.
void AdamStep(const AdamOptions& options, int64_t step, double gradient_scale,
              const AdamTensors& tensors, AfterStep after);

// Sum of squares in double, in chunks of a fixed size in order: the same for any thread count.
// A gradient of which only some rows can be non-zero may name them (ascending); the others are not
// read.
double SumOfSquares(const Tensor& tensor);
double SumOfSquares(const Tensor& tensor, std::span<const int32_t> rows);

}  // namespace headlight
