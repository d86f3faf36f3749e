#include <algorithm>
#include <cmath>
#include <limits>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/softmax/softmax_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/softmax/softmax_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what they are compiled for.
#include "headlight/kernels/softmax/exp-inl.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

// Maximum of a row, NaN if one is in it, -inf if it is empty.
HWY_INLINE float RowMaximum(const float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LanesOf(d);
  const float lowest = -std::numeric_limits<float>::infinity();
  auto largest = hn::Set(d, lowest);
  auto unordered = hn::Zero(d);  // NaN in the lanes that saw one: x - x would also catch infinities
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    largest = hn::IfThenElse(hn::Gt(v, largest), v, largest);
    unordered = hn::IfThenElse(hn::Eq(v, v), unordered, v);
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float seen = hn::GetLane(hn::SumOfLanes(d, unordered));
  if (std::isnan(seen)) return seen;
  for (; i < count; ++i) {
    if (std::isnan(x[i])) return x[i];
    result = std::max(result, x[i]);
  }
  return result;
}

// Sum of e^(x - largest); where y is not null the terms are left there.
HWY_INLINE float RowExponentials(const float* x, int64_t count, float largest, float* y) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LanesOf(d);
  const auto shift = hn::Set(d, largest);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto e = ExpNonPositive(d, hn::Sub(hn::LoadU(d, x + i), shift));
    if (y) hn::StoreU(e, d, y + i);
    sum = hn::Add(sum, e);
  }
  if (i < count) {
    const auto e = ExpNonPositive(d, hn::Sub(LoadPart(d, x + i, count - i), shift));
    if (y) StorePart(d, e, y + i, count - i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count - i)), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void SoftmaxRowT(const float* x, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  const float largest = RowMaximum(x, count);
  if (!std::isfinite(largest)) {
    const bool nothing = largest < 0;  // -inf throughout
    std::fill_n(y, count, nothing ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const auto share = hn::Set(d, 1 / RowExponentials(x, count, largest, y));
  MapArray(d, y, count, y, [share](auto v) HWY_ATTR { return hn::Mul(v, share); });
}

void LogSumExpRowT(const float* x, int64_t count, float* lse) {
  const float largest = RowMaximum(x, count);
  if (std::isfinite(largest)) {
    *lse = largest + std::log(RowExponentials(x, count, largest, nullptr));
  } else {
    *lse = largest < 0 ? largest : std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(SoftmaxRowT);
HWY_EXPORT(LogSumExpRowT);

namespace internal {
namespace {

int64_t RowsPerTask(int64_t columns) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, columns));
}

}  // namespace

void SoftmaxF32(const Tensor& x, Tensor& y) {
  SelectedIsa();
  const View<const float> from = x.view<float>();
  const View<float> to = y.view<float>();
  ParallelForRange(x.size(0), RowsPerTask(x.size(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(SoftmaxRowT)(from.row(r), x.size(1), to.row(r));
    }
  });
}

void LogSumExpF32(const Tensor& x, Tensor& lse) {
  SelectedIsa();
  const View<const float> from = x.view<float>();
  float* to = lse.data<float>();
  ParallelForRange(x.size(0), RowsPerTask(x.size(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(LogSumExpRowT)(from.row(r), x.size(1), to + r);
    }
  });
}

}  // namespace internal
}  // namespace headlight
#endif
