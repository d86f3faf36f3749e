#include "headlight/kernels/embedding/embedding.h"

#include <algorithm>
#include <cmath>

#include "headlight/base/error.h"
#include "headlight/kernels/check.h"
#include "headlight/kernels/embedding/embedding_internal.h"
#include "headlight/kernels/embedding/embedding_reference.h"

namespace headlight {
namespace {

void Check(const char* operation, const EmbeddingInput& input, const Tensor& y) {
  CheckFloat(operation, "table", input.table);
  const DType dtype = input.table.dtype();
  CheckMatrix(operation, "table", input.table, dtype);
  CheckVector(operation, "ids", input.ids, DType::kI32);
  const int64_t tokens = input.ids.size(0);
  CheckMatrix(operation, "the tokens' matrix", y, dtype, tokens, input.table.size(1));
  const int32_t* ids = input.ids.data<int32_t>();
  for (int64_t t = 0; t < tokens; ++t) {
    if (ids[t] >= 0 && ids[t] < input.table.size(0)) continue;
    throw Error(ErrorKind::kInput, "{}: ids must lie in [0, {}), found {} at token {}", operation,
                input.table.size(0), ids[t], t);
  }
  if (!input.offsets.empty() || input.positions) CheckOffsets(operation, input.offsets, tokens);
  if (!input.positions) return;
  CheckMatrix(operation, "positions", *input.positions, dtype, kAnySize, input.table.size(1));
  for (size_t s = 0; s + 1 < input.offsets.size(); ++s) {
    const int64_t length = input.offsets[s + 1] - input.offsets[s];
    if (length <= input.positions->size(0)) continue;
    throw Error(ErrorKind::kShape, "{}: there are {} positions, found a sequence of {} tokens",
                operation, input.positions->size(0), length);
  }
}

}  // namespace

Tensor SinusoidalPositions(int64_t length, int64_t features, DType dtype, MemoryTag tag) {
  Tensor table = Tensor::Uninitialized({length, features}, dtype, tag);
  DispatchFloat(dtype, [&]<typename T>() {
    for (int64_t p = 0; p < length; ++p) {
      for (int64_t i = 0; i < features; ++i) {
        const int64_t pair = i - i % 2;  // a sine and a cosine share their frequency
        const double exponent = static_cast<double>(pair) / static_cast<double>(features);
        const double angle = static_cast<double>(p) / std::pow(10000.0, exponent);
        table.view<T>().row(p)[i] = static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  });
  return table;
}

void EmbeddingForward(const EmbeddingInput& input, Tensor& y) {
  Check("embedding", input, y);
  if (y.dtype() == DType::kF64) {
    reference::EmbeddingForward(input, y);
  } else {
    internal::EmbeddingForwardF32(input, y);
  }
}

void EmbeddingBackward(const EmbeddingInput& input, const Tensor& dy,
                       const EmbeddingGradient& gradient) {
  const char* const kOperation = "embedding backward";
  Check(kOperation, input, dy);
  const DType dtype = input.table.dtype();
  CheckMatrix(kOperation, "dtable", gradient.dtable, dtype, input.table.size(0),
              input.table.size(1));
  if (gradient.dpositions) {
    if (!input.positions) {
      throw Error(ErrorKind::kUsage, "{}: dpositions needs positions", kOperation);
    }
    CheckMatrix(kOperation, "dpositions", *gradient.dpositions, dtype, input.positions->size(0),
                input.positions->size(1));
  }
  if (dtype == DType::kF64) {
    reference::EmbeddingBackward(input, dy, gradient);
  } else {
    internal::EmbeddingBackwardF32(input, dy, gradient);
  }
}

std::vector<int32_t> TouchedRows(const Tensor& ids) {
  CheckVector("touched rows", "ids", ids, DType::kI32);
  std::vector<int32_t> rows(ids.data<int32_t>(), ids.data<int32_t>() + ids.size(0));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

void ZeroRows(std::span<const int32_t> rows, Tensor& matrix) {
  CheckFloat("zero rows", "the matrix", matrix);
  CheckMatrix("zero rows", "the matrix", matrix, matrix.dtype());
  for (int32_t row : rows) {
    if (row >= 0 && row < matrix.size(0)) continue;
    throw Error(ErrorKind::kInput, "zero rows: rows must lie in [0, {}), found {}", matrix.size(0),
                row);
  }
  DispatchFloat(matrix.dtype(), [&]<typename T>() {
    for (int32_t row : rows) std::fill_n(matrix.view<T>().row(row), matrix.size(1), T{0});
  });
}

}  // namespace headlight
