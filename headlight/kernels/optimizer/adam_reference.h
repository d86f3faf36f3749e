// The plain loops of adam.h, for f32 and f64 alike.
#pragma once

#include "headlight/kernels/optimizer/adam.h"

namespace headlight::reference {

void AdamStep(const AdamOptions& options, int64_t step, double gradient_scale,
              const AdamTensors& tensors, AfterStep after);
double SumOfSquares(const Tensor& tensor);

}  // namespace headlight::reference
