// Numbers in the half formats as f32 and back (nearest, ties to even; NaN stays NaN).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "headlight/tensor/dtype.h"

namespace headlight {

inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline BFloat16 ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = std::isnan(value) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1);
  return {static_cast<uint16_t>(rounded >> 16)};
}

inline float ToFloat(Float16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return std::bit_cast<float>(sign | magnitude | 0x70000000u);
  // The exponent's bias is 112 larger in f32; numbers below the normal ones become normal.
  const float wide = std::bit_cast<float>(magnitude) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(wide));
}

inline Float16 ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const float magnitude = std::abs(value);
  uint32_t half = 0;
  if (std::isnan(value)) {
    half = 0x7e00u;
  } else if (magnitude >= 65520.0f) {  // rounds past the largest number
    half = 0x7c00u;
  } else if (magnitude < 0x1p-14f) {
    // A multiple of 2^-24: adding 1/2 leaves it in the low bits, rounded.
    half = std::bit_cast<uint32_t>(magnitude + 0.5f) - 0x3f000000u;
  } else {
    const uint32_t wide = std::bit_cast<uint32_t>(magnitude) - (112u << 23);
    half = (wide + 0xfffu + (wide >> 13 & 1)) >> 13;
  }
  return {static_cast<uint16_t>(sign | half)};
}

// Whether tensors of it are for storage alone, and the kernels see f32.
inline bool IsStorage(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// Calls function.operator()<T>() for BFloat16 or Float16.
template <typename Function>
void DispatchStorage(DType dtype, const Function& function) {
  if (dtype == DType::kBF16) return function.template operator()<BFloat16>();
  function.template operator()<Float16>();
}

// The dtype's own.
template <typename T>
T FromFloat(float value) {
  if constexpr (DTypeOf<T>::value == DType::kBF16) {
    return ToBFloat16(value);
  } else {
    return ToFloat16(value);
  }
}

}  // namespace headlight
