// The plain loops of embedding.h, for f32 and f64 alike.
#pragma once

#include "headlight/kernels/embedding/embedding.h"

namespace headlight::reference {

void EmbeddingForward(const EmbeddingInput& input, Tensor& y);
void EmbeddingBackward(const EmbeddingInput& input, const Tensor& dy,
                       const EmbeddingGradient& gradient);

}  // namespace headlight::reference
