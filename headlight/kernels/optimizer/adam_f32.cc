#include <algorithm>
#include <cmath>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/optimizer/adam_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/optimizer/adam_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what it is compiled for.
#include "headlight/kernels/vector-inl.h"

namespace headlight::internal {
#ifndef HEADLIGHT_KERNELS_ADAM_FACTORS_
#define HEADLIGHT_KERNELS_ADAM_FACTORS_

// The step's constants, rounded to f32 once.
struct AdamFactors {
  float gradient_scale;
  float coupled_decay;     // added to the gradient, times the value
  float decoupled_shrink;  // of the value: 1 - lr weight_decay, or 1
  float blend1;            // 1 - beta1
  float beta2;
  float blend2;            // 1 - beta2
  float step_size;         // lr / (1 - beta1^step)
  float root_correction2;  // sqrt(1 - beta2^step)
  float epsilon;
  bool clear;
};

struct AdamArrays {
  float* value;
  float* gradient;
  float* first;
  float* second;
};

#endif  // HEADLIGHT_KERNELS_ADAM_FACTORS_
}  // namespace headlight::internal

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using AdamTag = hn::ScalableTag<float>;

struct AdamVectors {
  hn::Vec<AdamTag> value, first, second;
};

// The formula of adam.h, in its order.
HWY_INLINE void AdamUpdate(AdamTag d, const internal::AdamFactors& f, hn::Vec<AdamTag> gradient,
                           AdamVectors& v) {
  auto g = hn::Mul(gradient, hn::Set(d, f.gradient_scale));
  g = hn::MulAdd(hn::Set(d, f.coupled_decay), v.value, g);
  v.value = hn::Mul(v.value, hn::Set(d, f.decoupled_shrink));
  v.first = hn::MulAdd(hn::Set(d, f.blend1), hn::Sub(g, v.first), v.first);
  v.second =
      hn::MulAdd(hn::Mul(hn::Set(d, f.blend2), g), g, hn::Mul(hn::Set(d, f.beta2), v.second));
  const auto root = hn::Div(hn::Sqrt(v.second), hn::Set(d, f.root_correction2));
  const auto ratio = hn::Div(v.first, hn::Add(root, hn::Set(d, f.epsilon)));
  v.value = hn::NegMulAdd(hn::Set(d, f.step_size), ratio, v.value);
}

void AdamRangeT(const internal::AdamFactors& f, const internal::AdamArrays& a, int64_t begin,
                int64_t end) {
  const AdamTag d;
  const int64_t lanes = LanesOf(d);
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    AdamVectors v = {hn::LoadU(d, a.value + i), hn::LoadU(d, a.first + i),
                     hn::LoadU(d, a.second + i)};
    AdamUpdate(d, f, hn::LoadU(d, a.gradient + i), v);
    hn::StoreU(v.value, d, a.value + i);
    hn::StoreU(v.first, d, a.first + i);
    hn::StoreU(v.second, d, a.second + i);
    if (f.clear) hn::StoreU(hn::Zero(d), d, a.gradient + i);
  }
  if (i == end) return;
  const int64_t left = end - i;
  AdamVectors v = {LoadPart(d, a.value + i, left), LoadPart(d, a.first + i, left),
                   LoadPart(d, a.second + i, left)};
  AdamUpdate(d, f, LoadPart(d, a.gradient + i, left), v);
  StorePart(d, v.value, a.value + i, left);
  StorePart(d, v.first, a.first + i, left);
  StorePart(d, v.second, a.second + i, left);
  if (f.clear) std::fill_n(a.gradient + i, left, 0.0f);
}

double SumOfSquaresT(const float* from, int64_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(half, from + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(half, from + i + lanes));
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < count; ++i) sum += static_cast<double>(from[i]) * static_cast<double>(from[i]);
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(AdamRangeT);
HWY_EXPORT(SumOfSquaresT);

namespace internal {

void AdamStepF32(const AdamOptions& options, int64_t step, double gradient_scale,
                 const AdamTensors& tensors, AfterStep after) {
  SelectedIsa();
  const auto power = static_cast<double>(step);
  const bool coupled = options.decay == WeightDecay::kCoupled;
  AdamFactors f = {};
  f.gradient_scale = static_cast<float>(gradient_scale);
  f.coupled_decay = coupled ? static_cast<float>(options.weight_decay) : 0;
  f.decoupled_shrink =
      coupled ? 1 : static_cast<float>(1 - options.learning_rate * options.weight_decay);
  f.blend1 = static_cast<float>(1 - options.beta1);
  f.beta2 = static_cast<float>(options.beta2);
  f.blend2 = static_cast<float>(1 - options.beta2);
  f.step_size = static_cast<float>(options.learning_rate / (1 - std::pow(options.beta1, power)));
  f.root_correction2 = static_cast<float>(std::sqrt(1 - std::pow(options.beta2, power)));
  f.epsilon = static_cast<float>(options.epsilon);
  f.clear = after == AfterStep::kClearGradient;
  const AdamArrays arrays = {tensors.value.data<float>(), tensors.gradient.data<float>(),
                             tensors.first_moment.data<float>(),
                             tensors.second_moment.data<float>()};
  constexpr int64_t kGrain = 32768;
  ParallelForRange(tensors.value.elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(AdamRangeT)(f, arrays, begin, end);
  });
}

double SumOfSquaresF32(const float* from, int64_t count) {
  SelectedIsa();
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresT)(from, count);
}

}  // namespace internal
}  // namespace headlight
#endif
