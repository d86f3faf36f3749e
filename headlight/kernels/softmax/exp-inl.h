// Vector exponentials of f32, the one place for all kernels. Compiled once per instruction set.
//
// Method: Cody & Waite 1980 (split of ln 2, so that it is exact without FMA too), then a polynomial
// of degree 6 on |r| <= ln 2 / 2, fitted by Remez exchange to relative error 2e-9. Bounds, tested
// over the whole range in softmax/exp_test.cc: 1.5 units in the last place. NaN comes out as NaN;
// what would lie below 2^-126 comes out as 0.
#if defined(HEADLIGHT_KERNELS_SOFTMAX_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_SOFTMAX_EXP_INL_H_
#undef HEADLIGHT_KERNELS_SOFTMAX_EXP_INL_H_
#else
#define HEADLIGHT_KERNELS_SOFTMAX_EXP_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adding this to a small float rounds it to an integer n, and leaves n + 127 in the low bits.
inline constexpr float kExpRounder = 12582912.0f + 127.0f;
inline constexpr float kExpLowest = -87.33654f;  // just above ln 2^-126

// 2^n out of rounded = n + kExpRounder, for -126 <= n <= 127; garbage elsewhere.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOfTwo(D d, V rounded) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, rounded)));
}

// e^r for |r| <= ln 2 / 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpPolynomial(D d, V r) {
  V p = hn::MulAdd(hn::Set(d, 0.0013836742f), r, hn::Set(d, 0.0083748987f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.04166823f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666642f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.4999999f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::MulAdd(p, r, hn::Set(d, 1.0f));
}

// x - n ln 2, with ln 2 in two parts; the first has so few bits that n times it is exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpRemainder(D d, V x, V n) {
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  return hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
}

// e^x for x <= 0, -inf included (0), as softmax needs it after subtracting the maximum.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, V x) {
  const V rounder = hn::Set(d, kExpRounder);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
  const V r = ExpRemainder(d, x, hn::Sub(rounded, rounder));
  const V result = hn::Mul(ExpPolynomial(d, r), PowerOfTwo(d, rounded));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kExpLowest)), result);
}

// e^x for any x: +inf where it overflows, 0 where it lies below 2^-125.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  // f32 has no 2^128, so half of the power is taken and doubled at the end.
  const V rounder = hn::Set(d, kExpRounder - 1.0f);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
  const V r = ExpRemainder(d, x, hn::Sub(rounded, rounder));
  const V half = hn::Mul(ExpPolynomial(d, r), PowerOfTwo(d, rounded));
  V result = hn::Add(half, half);
  result = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.6434f)), result);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7229f)), infinity, result);
}

// 2^x for x <= 0, -inf included (0): for scores that were scaled by log2(e) beforehand.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2NonPositive(D d, V x) {
  const V rounder = hn::Set(d, kExpRounder);
  const V rounded = hn::Add(x, rounder);
  const V f = hn::Sub(x, hn::Sub(rounded, rounder));  // exact
  V p = hn::MulAdd(hn::Set(d, 0.000153458124f), f, hn::Set(d, 0.00133999309f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.00961848907f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555032864f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240226462f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147182f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, PowerOfTwo(d, rounded)));
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_SOFTMAX_EXP_INL_H_
