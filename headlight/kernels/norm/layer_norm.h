// Layer normalisation (Ba, Kiros & Hinton 2016) over the features of each token:
//   y = gamma (s - mean(s)) / sqrt(var(s) + epsilon) + beta,  s = x + residual,
// with the biased variance. f32 runs vector code, f64 the plain reference. Matrices [rows,
// features] may have any row stride; columns are adjacent. Errors: kShape.
//
// Parameter gradients accumulate, in chunks of kLayerNormChunkRows rows in order.
#pragma once

#include <cstdint>

#include "headlight/tensor/tensor.h"

namespace headlight {

inline constexpr int64_t kLayerNormChunkRows = 128;

struct LayerNormInput {
  const Tensor& x;                   // [rows, features]
  const Tensor* residual = nullptr;  // [rows, features], added to x first
  const Tensor& gamma;               // [features]
  const Tensor& beta;                // [features]
  double epsilon = 1e-5;
};

struct LayerNormOutput {
  Tensor& y;               // [rows, features]; may be x or residual
  Tensor* sum = nullptr;   // [rows, features], x + residual; may be x or residual, not y
  Tensor* mean = nullptr;  // [rows]
  Tensor* inverse_deviation = nullptr;  // [rows], 1 / sqrt(var + epsilon)
};

void LayerNormForward(const LayerNormInput& input, const LayerNormOutput& output);

struct LayerNormBackwardInput {
  const Tensor& dy;                 // [rows, features]
  const Tensor& s;                  // [rows, features], what was normalised (x, or sum)
  const Tensor& gamma;              // [features]
  const Tensor& mean;               // [rows]
  const Tensor& inverse_deviation;  // [rows]
  const Tensor* add = nullptr;      // [rows, features]: another gradient of s, added to dx
};

struct LayerNormGradient {
  Tensor& dx;      // [rows, features], overwritten: the gradient of s, so of x and of residual; may
                   // be dy or add
  Tensor& dgamma;  // [features], accumulated
  Tensor& dbeta;   // [features], accumulated
};

void LayerNormBackward(const LayerNormBackwardInput& input, const LayerNormGradient& gradient);

}  // namespace headlight
