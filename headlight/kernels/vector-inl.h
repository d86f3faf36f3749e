// Loops over f32 rows that vector kernels share. Compiled once per instruction set.
//
// Rows end anywhere: the last, partial vector goes through LoadPart and StorePart, which touch only
// the elements that are there.
#if defined(HEADLIGHT_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_VECTOR_INL_H_
#undef HEADLIGHT_KERNELS_VECTOR_INL_H_
#else
#define HEADLIGHT_KERNELS_VECTOR_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE int64_t LanesOf(D d) {
  return static_cast<int64_t>(hn::Lanes(d));
}

// The first `count` elements (0 <= count < lanes), zeros behind them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadPart(D d, const float* from, int64_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  // Elsewhere MaskedLoad reads whole vectors.
  HWY_ALIGN float buffer[hn::MaxLanes(D())] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::Load(d, buffer);
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void StorePart(D d, V value, float* to, int64_t count) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#else
  HWY_ALIGN float buffer[hn::MaxLanes(D())];
  hn::Store(value, d, buffer);
  for (int64_t i = 0; i < count; ++i) to[i] = buffer[i];
#endif
}

// y[i] = function(x[i]).
template <class D, class Function>
HWY_INLINE void MapArray(D d, const float* x, int64_t count, float* y, const Function& function) {
  const int64_t lanes = LanesOf(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(function(hn::LoadU(d, x + i)), d, y + i);
  if (i < count) StorePart(d, function(LoadPart(d, x + i, count - i)), y + i, count - i);
}

// y[i] = function(a[i], b[i]).
template <class D, class Function>
HWY_INLINE void MapArrays(D d, const float* a, const float* b, int64_t count, float* y,
                          const Function& function) {
  const int64_t lanes = LanesOf(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(function(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  }
  if (i == count) return;
  const auto va = LoadPart(d, a + i, count - i);
  StorePart(d, function(va, LoadPart(d, b + i, count - i)), y + i, count - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_VECTOR_INL_H_
