// The f32 vector code behind softmax.h. Arguments are checked and f32.
#pragma once

#include "headlight/tensor/tensor.h"

namespace headlight::internal {

void SoftmaxF32(const Tensor& x, Tensor& y);
void LogSumExpF32(const Tensor& x, Tensor& lse);

}  // namespace headlight::internal
