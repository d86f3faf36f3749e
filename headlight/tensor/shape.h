// Shapes: up to four axes, sizes in elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace headlight {

inline constexpr int kMaxRank = 4;

// Bytes of an array with these sizes (each >= 0), or nothing where they are more than 2^60. A size
// of 0 does not excuse the others, since strides are products of them: it counts as 1 there.
std::optional<int64_t> BytesOfSizes(std::span<const int64_t> sizes, int64_t element_bytes);

class Shape {
 public:
  Shape() = default;
  // Throws kShape for more than kMaxRank axes, a negative size, or an element count over 2^60.
  Shape(std::initializer_list<int64_t> sizes);
  Shape(const int64_t* sizes, int rank);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return sizes_[static_cast<size_t>(axis)]; }
  int64_t elements() const { return elements_; }
  friend bool operator==(const Shape&, const Shape&) = default;

  // "[3, 4]"
  std::string ToString() const;

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
  int64_t elements_ = 1;
};

}  // namespace headlight
