#include "headlight/tensor/shape.h"

#include "headlight/base/error.h"

namespace headlight {

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
    if (__builtin_mul_overflow(elements_, size, &elements_) || elements_ > int64_t{1} << 62) {
      throw Error(ErrorKind::kShape, "shape: the element count overflows at axis {}", axis);
    }
    sizes_[static_cast<size_t>(axis)] = size;
  }
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
