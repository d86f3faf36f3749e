#include "headlight/tensor/shape.h"

#include <algorithm>

#include "headlight/base/error.h"

namespace headlight {

std::optional<int64_t> BytesOfSizes(std::span<const int64_t> sizes, int64_t element_bytes) {
  constexpr int64_t kMost = int64_t{1} << 60;
  int64_t strides = element_bytes, bytes = element_bytes;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(strides, std::max<int64_t>(size, 1), &strides) || strides > kMost) {
      return std::nullopt;
    }
    bytes *= size;
  }
  return bytes;
}

Shape::Shape(std::initializer_list<int64_t> sizes)
    : Shape(sizes.begin(), static_cast<int>(sizes.size())) {}

Shape::Shape(const int64_t* sizes, int rank) : rank_(rank) {
  if (rank < 0 || rank > kMaxRank) {
    throw Error(ErrorKind::kShape, "shape: rank must be 0 to {}, found {}", kMaxRank, rank);
  }
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t size = sizes[axis];
    if (size < 0)
      throw Error(ErrorKind::kShape, "shape: axis {} must be >= 0, found {}", axis, size);
    sizes_[static_cast<size_t>(axis)] = size;
  }
  const std::optional<int64_t> elements = BytesOfSizes({sizes, static_cast<size_t>(rank)}, 1);
  if (!elements) throw Error(ErrorKind::kShape, "shape: {} is too large", ToString());
  elements_ = *elements;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string((*this)[axis]);
  }
  return text + "]";
}

}  // namespace headlight
