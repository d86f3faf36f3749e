#include "headlight/kernels/check.h"

#include "headlight/base/error.h"

namespace headlight {
namespace {

void CheckRank(const char* operation, const char* name, const Tensor& tensor, int rank,
               DType dtype) {
  if (tensor.empty()) throw Error(ErrorKind::kShape, "{}: {} must not be empty", operation, name);
  if (tensor.dtype() != dtype) {
    throw Error(ErrorKind::kShape, "{}: {} must be {}, found {}", operation, name, DTypeName(dtype),
                DTypeName(tensor.dtype()));
  }
  if (tensor.shape().rank() != rank) {
    throw Error(ErrorKind::kShape, "{}: {} must have {} axes, found {}", operation, name, rank,
                tensor.shape().ToString());
  }
}

void CheckSize(const char* operation, const char* name, const Tensor& tensor, int axis,
               int64_t wanted) {
  if (wanted == kAnySize || tensor.size(axis) == wanted) return;
  throw Error(ErrorKind::kShape, "{}: axis {} of {} must be {}, found {}", operation, axis, name,
              wanted, tensor.shape().ToString());
}

}  // namespace

void CheckMatrix(const char* operation, const char* name, const Tensor& tensor, DType dtype,
                 int64_t rows, int64_t columns) {
  CheckRank(operation, name, tensor, 2, dtype);
  CheckSize(operation, name, tensor, 0, rows);
  CheckSize(operation, name, tensor, 1, columns);
  if (tensor.size(1) > 1 && tensor.stride(1) != 1) {
    throw Error(ErrorKind::kShape, "{}: columns of {} must be adjacent, found a stride of {}",
                operation, name, tensor.stride(1));
  }
}

void CheckVector(const char* operation, const char* name, const Tensor& tensor, DType dtype,
                 int64_t size) {
  CheckRank(operation, name, tensor, 1, dtype);
  CheckSize(operation, name, tensor, 0, size);
  if (tensor.size(0) > 1 && tensor.stride(0) != 1) {
    throw Error(ErrorKind::kShape, "{}: elements of {} must be adjacent, found a stride of {}",
                operation, name, tensor.stride(0));
  }
}

void CheckFloat(const char* operation, const char* name, const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kF64) return;
  throw Error(ErrorKind::kShape, "{}: {} must be f32 or f64, found {}", operation, name,
              DTypeName(tensor.dtype()));
}

void CheckOffsets(const char* operation, std::span<const int64_t> offsets, int64_t tokens) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != tokens) {
    throw Error(ErrorKind::kShape, "{}: offsets must go from 0 to {}, found {} of them{}",
                operation, tokens, offsets.size(),
                offsets.empty() ? std::string()
                                : fmt::format(" from {} to {}", offsets.front(), offsets.back()));
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    throw Error(ErrorKind::kShape, "{}: offsets must not fall, found {} after {}", operation,
                offsets[i], offsets[i - 1]);
  }
}

}  // namespace headlight
