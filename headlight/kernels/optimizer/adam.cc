#include "headlight/kernels/optimizer/adam.h"

#include "headlight/base/error.h"
#include "headlight/kernels/check.h"
#include "headlight/kernels/optimizer/adam_reference.h"

namespace headlight {
namespace {

void CheckFlat(const char* operation, const char* name, const Tensor& tensor, const Tensor& like) {
  CheckFloat(operation, name, tensor);
  if (tensor.dtype() == like.dtype() && tensor.shape() == like.shape() && tensor.IsContiguous()) {
    return;
  }
  throw Error(ErrorKind::kShape, "{}: {} must be contiguous {} {}, found {} {}", operation, name,
              DTypeName(like.dtype()), like.shape().ToString(), DTypeName(tensor.dtype()),
              tensor.shape().ToString());
}

}  // namespace

void AdamStep(const AdamOptions& options, int64_t step, double gradient_scale,
              const AdamTensors& tensors, AfterStep after) {
  CheckFlat("adam", "value", tensors.value, tensors.value);
  CheckFlat("adam", "gradient", tensors.gradient, tensors.value);
  CheckFlat("adam", "first_moment", tensors.first_moment, tensors.value);
  CheckFlat("adam", "second_moment", tensors.second_moment, tensors.value);
  if (step < 1) throw Error(ErrorKind::kUsage, "adam: steps count from 1, found {}", step);
  if (tensors.value.elements() == 0) return;
  reference::AdamStep(options, step, gradient_scale, tensors, after);
}

double SumOfSquares(const Tensor& tensor) {
  CheckFlat("sum of squares", "the tensor", tensor, tensor);
  if (tensor.elements() == 0) return 0;
  return reference::SumOfSquares(tensor);
}

double SumOfSquares(const Tensor& tensor, std::span<const int32_t> rows) {
  CheckFloat("sum of squares", "the matrix", tensor);
  CheckMatrix("sum of squares", "the matrix", tensor, tensor.dtype());
  double sum = 0;
  for (int32_t row : rows) sum += reference::SumOfSquares(tensor.Slice(0, row, row + 1));
  return sum;
}

}  // namespace headlight
