// The f32 code behind pooling.h. Arguments are checked and f32.
#pragma once

#include "headlight/kernels/pooling/pooling.h"

namespace headlight::internal {

void PoolingForwardF32(PoolingKind kind, const Tensor& x, std::span<const int64_t> offsets,
                       Tensor& y, Tensor* largest);
void PoolingBackwardF32(PoolingKind kind, const Tensor& dy, std::span<const int64_t> offsets,
                        const Tensor* largest, Tensor& dx);
void AttentionPoolingForwardF32(const Tensor& x, const Tensor& query,
                                std::span<const int64_t> offsets, Tensor& weights, Tensor& y);
void AttentionPoolingBackwardF32(const AttentionPoolingInput& input, const Tensor& dy,
                                 const AttentionPoolingGradient& gradient);

}  // namespace headlight::internal
