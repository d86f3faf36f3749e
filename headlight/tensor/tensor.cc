#include "headlight/tensor/tensor.h"

#include <cstring>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

// Visits every element offset of two tensors of one shape, last axis fastest.
template <typename Function>
void ForEachPair(const Shape& shape, const Strides& a, const Strides& b, const Function& function) {
  std::array<int64_t, kMaxRank> size{1, 1, 1, 1};
  Strides sa{}, sb{};
  const int pad = kMaxRank - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto to = static_cast<size_t>(axis + pad), from = static_cast<size_t>(axis);
    size[to] = shape[axis];
    sa[to] = a[from];
    sb[to] = b[from];
  }
  for (int64_t i = 0; i < size[0]; ++i) {
    for (int64_t j = 0; j < size[1]; ++j) {
      for (int64_t k = 0; k < size[2]; ++k) {
        const int64_t base_a = i * sa[0] + j * sa[1] + k * sa[2];
        const int64_t base_b = i * sb[0] + j * sb[1] + k * sb[2];
        for (int64_t l = 0; l < size[3]; ++l) function(base_a + l * sa[3], base_b + l * sb[3]);
      }
    }
  }
}

template <typename To, typename From>
void CopyElements(Tensor& to, const Tensor& from) {
  To* target = to.data<To>();
  const From* source = from.data<From>();
  ForEachPair(to.shape(), to.strides(), from.strides(),
              [&](int64_t i, int64_t j) { target[i] = static_cast<To>(source[j]); });
}

void CopyBytes(Tensor& to, const Tensor& from) {
  const auto size = static_cast<int64_t>(DTypeSize(to.dtype()));
  const auto copy = [&](int64_t i, int64_t j, int64_t count) {
    std::memcpy(to.bytes() + i * size, from.bytes() + j * size, static_cast<size_t>(count * size));
  };
  const int last = to.shape().rank() - 1;
  if (last >= 0 && to.stride(last) == 1 && from.stride(last) == 1) {  // whole rows
    const int64_t row = to.size(last);
    if (row == 0) return;
    ForEachPair(to.Select(last, 0).shape(), to.strides(), from.strides(),
                [&](int64_t i, int64_t j) { copy(i, j, row); });
    return;
  }
  ForEachPair(to.shape(), to.strides(), from.strides(),
              [&](int64_t i, int64_t j) { copy(i, j, 1); });
}

}  // namespace

Strides ContiguousStrides(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = step;
    step *= shape[axis];
  }
  return strides;
}

Tensor Tensor::Uninitialized(const Shape& shape, DType dtype, MemoryTag tag) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.strides_ = ContiguousStrides(shape);
  tensor.dtype_ = dtype;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), static_cast<int64_t>(DTypeSize(dtype)), &bytes)) {
    throw Error(ErrorKind::kResource, "tensor: {} of {} is too large", shape.ToString(),
                DTypeName(dtype));
  }
  tensor.buffer_ = AllocateUninitializedBuffer(static_cast<size_t>(bytes), tag);
  return tensor;
}

Tensor Tensor::Zeros(const Shape& shape, DType dtype, MemoryTag tag) {
  Tensor tensor = Uninitialized(shape, dtype, tag);
  tensor.FillZero();
  return tensor;
}

bool Tensor::IsContiguous() const {
  const Strides wanted = ContiguousStrides(shape_);
  for (int axis = 0; axis < shape_.rank(); ++axis) {
    if (shape_[axis] > 1 && stride(axis) != wanted[static_cast<size_t>(axis)]) return false;
  }
  return true;
}

Tensor Tensor::Slice(int axis, int64_t begin, int64_t end) const {
  if (axis < 0 || axis >= shape_.rank() || begin < 0 || begin > end || end > shape_[axis]) {
    throw Error(ErrorKind::kShape, "slice: [{}, {}) of axis {} does not lie within {}", begin, end,
                axis, shape_.ToString());
  }
  Tensor result = *this;
  std::array<int64_t, kMaxRank> sizes{};
  for (int i = 0; i < shape_.rank(); ++i) sizes[static_cast<size_t>(i)] = shape_[i];
  sizes[static_cast<size_t>(axis)] = end - begin;
  result.shape_ = Shape(sizes.data(), shape_.rank());
  result.offset_ += begin * stride(axis) * static_cast<int64_t>(DTypeSize(dtype_));
  return result;
}

Tensor Tensor::Select(int axis, int64_t at) const {
  Tensor result = Slice(axis, at, at + 1);
  std::array<int64_t, kMaxRank> sizes{};
  for (int from = 0, to = 0; from < shape_.rank(); ++from) {
    if (from == axis) continue;
    sizes[static_cast<size_t>(to)] = shape_[from];
    result.strides_[static_cast<size_t>(to)] = stride(from);
    ++to;
  }
  result.shape_ = Shape(sizes.data(), shape_.rank() - 1);
  return result;
}

Tensor Tensor::Reshape(const Shape& shape) const {
  if (!IsContiguous() || shape.elements() != shape_.elements()) {
    throw Error(ErrorKind::kShape, "reshape: {} ({}contiguous) cannot become {}", shape_.ToString(),
                IsContiguous() ? "" : "not ", shape.ToString());
  }
  Tensor result = *this;
  result.shape_ = shape;
  result.strides_ = ContiguousStrides(shape);
  return result;
}

Tensor Tensor::SplitAxis(int axis, int64_t outer) const {
  const int rank = shape_.rank();
  if (axis < 0 || axis >= rank || rank == kMaxRank || outer < 1 || shape_[axis] % outer != 0) {
    throw Error(ErrorKind::kShape, "split: axis {} of {} does not split into {} parts", axis,
                shape_.ToString(), outer);
  }
  Tensor result = *this;
  std::array<int64_t, kMaxRank> sizes{};
  for (int from = 0, to = 0; from < rank; ++from, ++to) {
    const auto target = static_cast<size_t>(to);
    sizes[target] = shape_[from];
    result.strides_[target] = stride(from);
    if (from != axis) continue;
    const int64_t inner = shape_[axis] / outer;
    sizes[target] = outer;
    result.strides_[target] = stride(axis) * inner;
    sizes[target + 1] = inner;
    result.strides_[target + 1] = stride(axis);
    ++to;
  }
  result.shape_ = Shape(sizes.data(), rank + 1);
  return result;
}

Tensor Tensor::Transpose(int axis_a, int axis_b) const {
  const int rank = shape_.rank();
  if (axis_a < 0 || axis_b < 0 || axis_a >= rank || axis_b >= rank) {
    throw Error(ErrorKind::kShape, "transpose: axes {} and {} do not lie within {}", axis_a, axis_b,
                shape_.ToString());
  }
  Tensor result = *this;
  std::array<int64_t, kMaxRank> sizes{};
  for (int i = 0; i < rank; ++i) sizes[static_cast<size_t>(i)] = shape_[i];
  std::swap(sizes[static_cast<size_t>(axis_a)], sizes[static_cast<size_t>(axis_b)]);
  std::swap(result.strides_[static_cast<size_t>(axis_a)],
            result.strides_[static_cast<size_t>(axis_b)]);
  result.shape_ = Shape(sizes.data(), rank);
  return result;
}

Tensor Tensor::Repeat(int axis, int64_t count) const {
  if (axis < 0 || axis >= shape_.rank() || shape_[axis] != 1 || count < 0) {
    throw Error(ErrorKind::kShape, "repeat: axis {} of {} must be of size 1 to become {}", axis,
                shape_.ToString(), count);
  }
  Tensor result = *this;
  std::array<int64_t, kMaxRank> sizes{};
  for (int i = 0; i < shape_.rank(); ++i) sizes[static_cast<size_t>(i)] = shape_[i];
  sizes[static_cast<size_t>(axis)] = count;
  result.shape_ = Shape(sizes.data(), shape_.rank());
  result.strides_[static_cast<size_t>(axis)] = 0;
  return result;
}

Tensor Tensor::Clone(MemoryTag tag) const { return CastTo(dtype_, tag); }

Tensor Tensor::CastTo(DType dtype, MemoryTag tag) const {
  if (empty()) return {};
  Tensor result = Uninitialized(shape_, dtype, tag);
  result.CopyFrom(*this);
  return result;
}

void Tensor::CopyFrom(const Tensor& source) {
  if (!(source.shape_ == shape_)) {
    throw Error(ErrorKind::kShape, "copy: shapes must be equal, found {} from {}",
                shape_.ToString(), source.shape_.ToString());
  }
  if (dtype_ == source.dtype_) {
    if (IsContiguous() && source.IsContiguous()) {
      std::memcpy(bytes(), source.bytes(), static_cast<size_t>(elements()) * DTypeSize(dtype_));
    } else {
      CopyBytes(*this, source);
    }
    return;
  }
  DispatchFloat(dtype_, [&]<typename To>() {
    DispatchFloat(source.dtype_, [&]<typename From>() { CopyElements<To, From>(*this, source); });
  });
}

void Tensor::FillZero() {
  if (empty()) return;
  if (!IsContiguous()) throw Error(ErrorKind::kShape, "fill: the tensor must be contiguous");
  std::memset(bytes(), 0, static_cast<size_t>(elements()) * DTypeSize(dtype_));
}

void Tensor::CheckType(DType wanted) const {
  if (dtype_ != wanted || empty()) {
    throw Error(ErrorKind::kInternal, "tensor: {} access to {} {}", DTypeName(wanted),
                empty() ? "an empty tensor of" : "a tensor of", DTypeName(dtype_));
  }
}

void ThrowNotFloat(DType dtype) {
  throw Error(ErrorKind::kShape, "dtype: must be f32 or f64, found {}", DTypeName(dtype));
}

}  // namespace headlight
