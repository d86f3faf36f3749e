// One vector per sequence out of its tokens' vectors: [tokens, features] -> [batch, features].
//
// Row s of the result comes from rows offsets[s] .. offsets[s + 1] - 1 of x; a sequence without
// tokens gives zeros. f32 and f64; matrices may have any row stride, columns are adjacent. Results
// depend on each sequence alone. Errors: kShape.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/tensor/tensor.h"

namespace headlight {

enum class PoolingKind { kMean, kFirst, kMax };

// With kMax, `largest` (i32 [batch, features]) receives the token of each maximum (the first of
// equals, -1 without tokens), which the backward pass needs; null if there will be none. A NaN is
// larger than everything.
void PoolingForward(PoolingKind kind, const Tensor& x, std::span<const int64_t> offsets, Tensor& y,
                    Tensor* largest);

// dx [tokens, features], overwritten. `largest` as the forward pass left it; unused but with kMax.
void PoolingBackward(PoolingKind kind, const Tensor& dy, std::span<const int64_t> offsets,
                     const Tensor* largest, Tensor& dx);

// Attention pooling: y = sum over t of a[t] x[t], a = softmax over the tokens of the sequence of
// (x[t] . query). query [features]; weights [tokens] receives a, which the backward pass needs.
void AttentionPoolingForward(const Tensor& x, const Tensor& query, std::span<const int64_t> offsets,
                             Tensor& weights, Tensor& y);

struct AttentionPoolingInput {
  const Tensor& x;                   // [tokens, features]
  const Tensor& query;               // [features]
  const Tensor& weights;             // [tokens], of the forward pass
  std::span<const int64_t> offsets;  // [batch + 1]
};

struct AttentionPoolingGradient {
  Tensor& dx;      // [tokens, features], overwritten
  Tensor& dquery;  // [features], accumulated, sequence after sequence
};

// dy [batch, features].
void AttentionPoolingBackward(const AttentionPoolingInput& input, const Tensor& dy,
                              const AttentionPoolingGradient& gradient);

}  // namespace headlight
