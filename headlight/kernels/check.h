// Checks that the entry points of kernels share. All throw kShape and name the operation.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/tensor/tensor.h"

namespace headlight {

inline constexpr int64_t kAnySize = -1;

// `tensor` must be a matrix of `dtype` with adjacent columns, [rows, columns] where they are given.
// Rows may lie apart.
void CheckMatrix(const char* operation, const char* name, const Tensor& tensor, DType dtype,
                 int64_t rows = kAnySize, int64_t columns = kAnySize);

// `tensor` must be a vector of `dtype` whose elements are adjacent, [size] where it is given.
void CheckVector(const char* operation, const char* name, const Tensor& tensor, DType dtype,
                 int64_t size = kAnySize);

// f32 or f64.
void CheckFloat(const char* operation, const char* name, const Tensor& tensor);

// Offsets of a ragged batch: start at 0, never fall, end at `tokens`.
void CheckOffsets(const char* operation, std::span<const int64_t> offsets, int64_t tokens);

}  // namespace headlight
