// The plain loops of activation.h, for f32 and f64 alike.
#pragma once

#include "headlight/kernels/activation/activation.h"

namespace headlight::reference {

void ReluForward(const Tensor& x, Tensor& y);
void ReluBackward(const Tensor& y, const Tensor& dy, Tensor& dx);
void GeluForward(const Tensor& x, Tensor& y);
void GeluBackward(const Tensor& x, const Tensor& dy, Tensor& dx);
void Dropout(const Tensor& x, const DropoutOptions& options, Tensor& y);

}  // namespace headlight::reference
