#include "headlight/base/random.h"

#include <cmath>
#include <numbers>

namespace headlight {

RandomStream::RandomStream(uint64_t seed, uint64_t stream)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)} {}

uint32_t RandomStream::Next() {
  if (used_ == 4) {
    block_ = Philox(key_, counter_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t RandomStream::Below(uint64_t bound) {
  const uint64_t limit = ~uint64_t{0} - ~uint64_t{0} % bound;
  for (;;) {
    const uint64_t high = Next();
    const uint64_t value = high << 32 | Next();
    if (value < limit) return value % bound;
  }
}

double RandomStream::Uniform() {
  const uint64_t high = Next() >> 5;
  return static_cast<double>(high << 26 | Next() >> 6) * 0x1p-53;
}

double RandomStream::Normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-Uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

}  // namespace headlight
