// The f32 code behind embedding.h. Arguments are checked and f32.
#pragma once

#include "headlight/kernels/embedding/embedding.h"

namespace headlight::internal {

void EmbeddingForwardF32(const EmbeddingInput& input, Tensor& y);
void EmbeddingBackwardF32(const EmbeddingInput& input, const Tensor& dy,
                          const EmbeddingGradient& gradient);

}  // namespace headlight::internal
