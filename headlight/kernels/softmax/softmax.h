// Row softmax and log-sum-exp over [rows, columns].
//
// f32 runs vector code, f64 the plain reference; rows may lie apart, columns are adjacent. A row of
// -inf alone (or without columns) gives zeros and -inf. NaN in a row makes that row NaN; so does
// +inf. Errors: kShape.
#pragma once

#include "headlight/tensor/tensor.h"

namespace headlight {

// y[r, c] = exp(x[r, c]) / sum over c of exp(x[r, c]). y may be x.
void Softmax(const Tensor& x, Tensor& y);

// lse[r] = log(sum over c of exp(x[r, c])), natural. lse: [rows].
void LogSumExp(const Tensor& x, Tensor& lse);

}  // namespace headlight
