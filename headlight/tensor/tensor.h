// Tensor: a strided window on a counted, 64-byte-aligned buffer. Copies share the buffer. On the
// CPU. View<T>: the typed, non-owning form that kernels work on.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "headlight/base/memory.h"
#include "headlight/tensor/dtype.h"
#include "headlight/tensor/shape.h"

namespace headlight {

using Strides = std::array<int64_t, kMaxRank>;  // in elements

// Row-major strides of a shape without gaps.
Strides ContiguousStrides(const Shape& shape);

template <typename T>
struct View {
  T* data = nullptr;
  Shape shape;
  Strides strides{};

  int64_t size(int axis) const { return shape[axis]; }
  int64_t elements() const { return shape.elements(); }

  T& operator()(int64_t i) const {
    assert(shape.rank() == 1);
    return data[i * strides[0]];
  }
  T& operator()(int64_t i, int64_t j) const {
    assert(shape.rank() == 2);
    return data[i * strides[0] + j * strides[1]];
  }
  T& operator()(int64_t i, int64_t j, int64_t k) const {
    assert(shape.rank() == 3);
    return data[i * strides[0] + j * strides[1] + k * strides[2]];
  }
  T& operator()(int64_t i, int64_t j, int64_t k, int64_t l) const {
    assert(shape.rank() == 4);
    return data[i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3]];
  }
  // Row i of a matrix whose columns are adjacent.
  T* row(int64_t i) const {
    assert(shape.rank() == 2 && (strides[1] == 1 || shape[1] <= 1));
    return data + i * strides[0];
  }
  operator View<const T>() const requires(!std::is_const_v<T>) { return {data, shape, strides}; }
};

class Tensor {
 public:
  Tensor() = default;  // no elements, rank 0, no buffer; empty() is true

  static Tensor Zeros(const Shape& shape, DType dtype, MemoryTag tag);
  // For outputs that the caller overwrites whole.
  static Tensor Uninitialized(const Shape& shape, DType dtype, MemoryTag tag);

  bool empty() const { return buffer_ == nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t elements() const { return empty() ? 0 : shape_.elements(); }
  DType dtype() const { return dtype_; }
  const Strides& strides() const { return strides_; }
  int64_t stride(int axis) const { return strides_[static_cast<size_t>(axis)]; }
  bool IsContiguous() const;

  // Throw kInternal when T is not the dtype. A const Tensor gives const access.
  template <typename T>
  T* data() {
    CheckType(DTypeOf<T>::value);
    return reinterpret_cast<T*>(bytes());
  }
  template <typename T>
  const T* data() const {
    CheckType(DTypeOf<T>::value);
    return reinterpret_cast<const T*>(bytes());
  }
  template <typename T>
  View<T> view() {
    return {data<T>(), shape_, strides_};
  }
  template <typename T>
  View<const T> view() const {
    return {data<T>(), shape_, strides_};
  }
  std::byte* bytes() { return buffer_.get() + offset_; }
  const std::byte* bytes() const { return buffer_.get() + offset_; }

  // Windows on the same buffer. All throw kShape when out of range.
  Tensor Slice(int axis, int64_t begin, int64_t end) const;
  // Index `at` of an axis, without that axis (one head of [tokens, heads, features]).
  Tensor Select(int axis, int64_t at) const;
  // A contiguous tensor under another shape of as many elements.
  Tensor Reshape(const Shape& shape) const;
  // Splits an axis of size outer * inner into two (heads out of features): works on strided
  // tensors.
  Tensor SplitAxis(int axis, int64_t outer) const;
  Tensor Transpose(int axis_a, int axis_b) const;
  // An axis of size 1 becomes one of `count` with stride 0: the same elements again and again. To
  // be read, not written.
  Tensor Repeat(int axis, int64_t count) const;

  // A contiguous copy with its own buffer; the dtypes may differ among f64 and f32.
  Tensor Clone(MemoryTag tag) const;
  Tensor CastTo(DType dtype, MemoryTag tag) const;
  // Element-wise copy from a tensor of the same shape (f64 and f32 convert).
  void CopyFrom(const Tensor& source);
  void FillZero();

 private:
  void CheckType(DType wanted) const;

  std::shared_ptr<std::byte> buffer_;
  int64_t offset_ = 0;  // bytes
  Shape shape_;
  Strides strides_{};
  DType dtype_ = DType::kF32;
};

[[noreturn]] void ThrowNotFloat(DType dtype);

// Calls function.template operator()<T>() with T = float or double. Throws kShape for other dtypes.
template <typename Function>
decltype(auto) DispatchFloat(DType dtype, const Function& function) {
  if (dtype == DType::kF32) return function.template operator()<float>();
  if (dtype == DType::kF64) return function.template operator()<double>();
  ThrowNotFloat(dtype);
}

}  // namespace headlight
