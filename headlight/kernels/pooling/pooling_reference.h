// The plain loops of pooling.h, for f32 and f64 alike.
#pragma once

#include "headlight/kernels/pooling/pooling.h"

namespace headlight::reference {

void PoolingForward(PoolingKind kind, const Tensor& x, std::span<const int64_t> offsets, Tensor& y,
                    Tensor* largest);
void PoolingBackward(PoolingKind kind, const Tensor& dy, std::span<const int64_t> offsets,
                     const Tensor* largest, Tensor& dx);
void AttentionPoolingForward(const Tensor& x, const Tensor& query, std::span<const int64_t> offsets,
                             Tensor& weights, Tensor& y);
void AttentionPoolingBackward(const AttentionPoolingInput& input, const Tensor& dy,
                              const AttentionPoolingGradient& gradient);

}  // namespace headlight::reference
