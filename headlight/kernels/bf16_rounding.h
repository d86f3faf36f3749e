// Operands of Precision::kBF16 where no unit multiplies bf16: f32 that hold values of bf16.
#pragma once

#include "headlight/tensor/tensor.h"

namespace headlight {

// A contiguous copy of an f32 tensor, each value rounded to the nearest bf16 (ties to even); NaN
// stays NaN.
Tensor RoundedToBf16(const Tensor& tensor);

}  // namespace headlight
