#include "headlight/kernels/norm/layer_norm.h"

#include "headlight/kernels/check.h"
#include "headlight/kernels/norm/layer_norm_internal.h"
#include "headlight/kernels/norm/layer_norm_reference.h"

namespace headlight {

void LayerNormForward(const LayerNormInput& input, const LayerNormOutput& output) {
  const char* const kOperation = "layer norm";
  CheckFloat(kOperation, "x", input.x);
  const DType dtype = input.x.dtype();
  CheckMatrix(kOperation, "x", input.x, dtype);
  const int64_t rows = input.x.size(0), features = input.x.size(1);
  CheckVector(kOperation, "gamma", input.gamma, dtype, features);
  CheckVector(kOperation, "beta", input.beta, dtype, features);
  CheckMatrix(kOperation, "y", output.y, dtype, rows, features);
  if (input.residual) CheckMatrix(kOperation, "residual", *input.residual, dtype, rows, features);
  if (output.sum) CheckMatrix(kOperation, "sum", *output.sum, dtype, rows, features);
  if (output.mean) CheckVector(kOperation, "mean", *output.mean, dtype, rows);
  if (output.inverse_deviation) {
    CheckVector(kOperation, "inverse_deviation", *output.inverse_deviation, dtype, rows);
  }
  if (rows == 0 || features == 0) return;
  if (dtype == DType::kF64) {
    reference::LayerNormForward(input, output);
  } else {
    internal::LayerNormForwardF32(input, output);
  }
}

void LayerNormBackward(const LayerNormBackwardInput& input, const LayerNormGradient& gradient) {
  const char* const kOperation = "layer norm backward";
  CheckFloat(kOperation, "s", input.s);
  const DType dtype = input.s.dtype();
  CheckMatrix(kOperation, "s", input.s, dtype);
  const int64_t rows = input.s.size(0), features = input.s.size(1);
  CheckMatrix(kOperation, "dy", input.dy, dtype, rows, features);
  CheckVector(kOperation, "gamma", input.gamma, dtype, features);
  CheckVector(kOperation, "mean", input.mean, dtype, rows);
  CheckVector(kOperation, "inverse_deviation", input.inverse_deviation, dtype, rows);
  if (input.add) CheckMatrix(kOperation, "add", *input.add, dtype, rows, features);
  CheckMatrix(kOperation, "dx", gradient.dx, dtype, rows, features);
  CheckVector(kOperation, "dgamma", gradient.dgamma, dtype, features);
  CheckVector(kOperation, "dbeta", gradient.dbeta, dtype, features);
  if (rows == 0 || features == 0) return;
  if (dtype == DType::kF64) {
    reference::LayerNormBackward(input, gradient);
  } else {
    internal::LayerNormBackwardF32(input, gradient);
  }
}

}  // namespace headlight
