#include "headlight/kernels/optimizer/adam.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/check.h"
#include "headlight/kernels/optimizer/adam_internal.h"
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

constexpr int64_t kChunk = 32768;  // elements

// part(0) + part(1) + ..., the parts computed in parallel.
template <typename Part>
double SumInOrder(int64_t parts, const Part& part) {
  std::vector<double> sums(static_cast<size_t>(parts));
  constexpr int64_t kGrain = 16;
  ParallelForRange(parts, kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(i)] = part(i);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
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
  if (tensors.value.dtype() == DType::kF64) {
    reference::AdamStep(options, step, gradient_scale, tensors, after);
  } else {
    internal::AdamStepF32(options, step, gradient_scale, tensors, after);
  }
}

double SumOfSquares(const Tensor& tensor) {
  CheckFlat("sum of squares", "the tensor", tensor, tensor);
  if (tensor.dtype() == DType::kF64) return reference::SumOfSquares(tensor);
  const int64_t count = tensor.elements();
  if (count == 0) return 0;
  const float* data = tensor.data<float>();
  return SumInOrder((count + kChunk - 1) / kChunk, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk;
    return internal::SumOfSquaresF32(data + begin, std::min(kChunk, count - begin));
  });
}

double SumOfSquares(const Tensor& tensor, std::span<const int32_t> rows) {
  const char* const kOperation = "sum of squares";
  CheckFloat(kOperation, "the matrix", tensor);
  CheckMatrix(kOperation, "the matrix", tensor, tensor.dtype());
  for (int32_t row : rows) {
    if (row >= 0 && row < tensor.size(0)) continue;
    throw Error(ErrorKind::kInput, "{}: rows must lie in [0, {}), found {}", kOperation,
                tensor.size(0), row);
  }
  return SumInOrder(static_cast<int64_t>(rows.size()), [&](int64_t i) {
    const int64_t row = rows[static_cast<size_t>(i)];
    if (tensor.dtype() == DType::kF64) {
      return reference::SumOfSquares(tensor.Slice(0, row, row + 1));
    }
    return internal::SumOfSquaresF32(tensor.view<float>().row(row), tensor.size(1));
  });
}

}  // namespace headlight
