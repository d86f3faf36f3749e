// Shapes: up to four axes, sizes in elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace headlight {

inline constexpr int kMaxRank = 4;

class Shape {
 public:
  Shape() = default;
  // Throws kShape for more than kMaxRank axes, a negative size, or an element count over 2^62.
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
