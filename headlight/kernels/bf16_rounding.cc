#include "headlight/kernels/bf16_rounding.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "headlight/base/threads.h"

namespace headlight {
namespace {

float Rounded(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return std::bit_cast<float>((bits | 0x400000u) & 0xffff0000u);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}

}  // namespace

Tensor RoundedToBf16(const Tensor& tensor) {
  constexpr int64_t kGrain = 1 << 16;
  Tensor rounded = tensor.Clone(MemoryTag::kWorkspace);
  float* values = rounded.data<float>();
  ParallelForRange(rounded.elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) values[i] = Rounded(values[i]);
  });
  return rounded;
}

}  // namespace headlight
