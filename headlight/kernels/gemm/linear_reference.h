// The plain loops of linear.h, for f32 and f64 alike: the truth that fast code is held to.
#pragma once

#include "headlight/kernels/gemm/linear.h"

namespace headlight::reference {

void LinearForward(const Tensor& x, const Tensor& weight, const Tensor* bias,
                   const LinearForwardOptions& options, Tensor& y);
void LinearBackwardInput(const Tensor& dy, const Tensor& weight,
                         const LinearBackwardInputOptions& options, Tensor& dx);
void LinearBackwardWeight(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias);

}  // namespace headlight::reference
