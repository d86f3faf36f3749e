// The f32 vector code behind adam.h. Arguments are checked and f32.
#pragma once

#include "headlight/kernels/optimizer/adam.h"

namespace headlight::internal {

void AdamStepF32(const AdamOptions& options, int64_t step, double gradient_scale,
                 const AdamTensors& tensors, AfterStep after);
// Sum of squares of `count` adjacent elements.
double SumOfSquaresF32(const float* from, int64_t count);

}  // namespace headlight::internal
