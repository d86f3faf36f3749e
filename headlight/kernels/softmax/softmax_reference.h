// The plain loops of softmax.h, for f32 and f64 alike.
#pragma once

#include "headlight/tensor/tensor.h"

namespace headlight::reference {

void Softmax(const Tensor& x, Tensor& y);
void LogSumExp(const Tensor& x, Tensor& lse);

}  // namespace headlight::reference
