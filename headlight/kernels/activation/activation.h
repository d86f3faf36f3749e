// Element-wise activations and dropout on [rows, features]; rows may lie apart, columns are
// adjacent. f32 runs vector code, f64 the plain reference. Outputs may be an input. Errors: kShape.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/tensor/tensor.h"

namespace headlight {

// y = max(x, 0); NaN stays NaN. The gradient at 0 is 0.
void ReluForward(const Tensor& x, Tensor& y);
// dx = dy where y > 0 (or y is NaN), else 0.
void ReluBackward(const Tensor& y, const Tensor& dy, Tensor& dx);

// y = x Phi(x), Phi the cumulative normal distribution (Hendrycks & Gimpel 2016; PyTorch's
// default).
void GeluForward(const Tensor& x, Tensor& y);
// dx = dy (Phi(x) + x phi(x)).
void GeluBackward(const Tensor& x, const Tensor& dy, Tensor& dx);

struct DropoutOptions {
  double rate = 0;    // in [0, 1); a multiple of 1/65536 is taken, the nearest
  uint64_t seed = 0;  // of the run
  int64_t layer = 0;  // a number of its own for each place of the model that drops
  int64_t step = 0;   // of training
  // Row r of sample s (offsets[s] <= r < offsets[s + 1]) stands at position r - offsets[s] of
  // sample_ids[s].
  std::span<const int64_t> offsets;     // [batch + 1]
  std::span<const int64_t> sample_ids;  // [batch]
};

// y = x / (1 - rate) where the element is kept, 0 where it is dropped. The choice is Philox's,
// keyed by (seed, layer), counted by (step, sample id, position, feature): the same in any batch.
// The backward pass is the same call on the gradient. Rate 0 copies the bits.
void Dropout(const Tensor& x, const DropoutOptions& options, Tensor& y);

}  // namespace headlight
