// Vector forms of the activations and their derivatives, for activation.cc and for the epilogues of
// the matrix products. Compiled once per instruction set.
#if defined(HEADLIGHT_KERNELS_ACTIVATION_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ACTIVATION_ACTIVATION_INL_H_
#undef HEADLIGHT_KERNELS_ACTIVATION_ACTIVATION_INL_H_
#else
#define HEADLIGHT_KERNELS_ACTIVATION_ACTIVATION_INL_H_
#endif

#include "headlight/kernels/softmax/exp-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

// max(x, 0), but NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

// gradient where the ReLU's output is positive (or NaN), else 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ReluGradient(D d, V output, V gradient) {
  return hn::IfThenZeroElse(hn::Le(output, hn::Zero(d)), gradient);
}

// Phi(-|x|) e^(x^2 / 2) as a polynomial in t = 1 / (1 + 0.3 |x|) (the form of Abramowitz & Stegun
// 1964, 7.1.26, for the normal distribution; fitted by Remez exchange on [0, 14.5], relative error
// 6e-8).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalTailRatio(D d, V magnitude) {
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.3f), magnitude, one));
  V p = hn::MulAdd(hn::Set(d, 0.038407274f), t, hn::Set(d, -0.16930697f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.22895093f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.076838875f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.14276484f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.094586017f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.12194524f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.11948421f));
  return hn::MulAdd(p, t, hn::Set(d, 7.3722826e-6f));
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|): no cancellation in the lower tail.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V bell = ExpNonPositive(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const V tail = hn::Mul(hn::Mul(magnitude, NormalTailRatio(d, magnitude)), bell);
  // inf * 0 in the tail of an infinite x.
  const V far = hn::Set(d, 14.4f);
  return hn::Sub(Relu(d, x), hn::IfThenZeroElse(hn::Gt(magnitude, far), tail));
}

// Phi(x) + x phi(x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluDerivative(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V bell = ExpNonPositive(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const V tail = hn::Mul(NormalTailRatio(d, magnitude), bell);  // Phi(-|x|)
  const V slope = hn::Mul(hn::Mul(x, bell), hn::Set(d, 0.398942280f));
  const auto far = hn::Gt(magnitude, hn::Set(d, 14.4f));
  const V below = hn::IfThenZeroElse(far, hn::Add(tail, slope));
  const V above = hn::Sub(hn::Set(d, 1.0f), hn::IfThenZeroElse(far, hn::Sub(tail, slope)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, above);
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ACTIVATION_ACTIVATION_INL_H_
