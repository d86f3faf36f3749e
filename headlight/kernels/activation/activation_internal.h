// The f32 vector code behind activation.h. Arguments are checked and f32.
#pragma once

#include "headlight/kernels/activation/activation.h"

namespace headlight::internal {

enum class ElementwiseKind { kRelu, kReluGradient, kGelu, kGeluGradient };

// out = function(a, b), row by row; the forward kinds ignore b.
void ElementwiseF32(ElementwiseKind kind, const Tensor& a, const Tensor& b, Tensor& out);
void DropoutF32(const Tensor& x, const DropoutOptions& options, Tensor& y);

}  // namespace headlight::internal
