#include "headlight/kernels/softmax/exp.h"

#include "headlight/base/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/softmax/exp.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what it is compiled for.
#include "headlight/kernels/softmax/exp-inl.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

void ExpArrayT(const float* x, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  MapArray(d, x, count, y, [d](auto v) HWY_ATTR { return Exp(d, v); });
}
void ExpNonPositiveArrayT(const float* x, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  MapArray(d, x, count, y, [d](auto v) HWY_ATTR { return ExpNonPositive(d, v); });
}
void Exp2NonPositiveArrayT(const float* x, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  MapArray(d, x, count, y, [d](auto v) HWY_ATTR { return Exp2NonPositive(d, v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(ExpArrayT);
HWY_EXPORT(ExpNonPositiveArrayT);
HWY_EXPORT(Exp2NonPositiveArrayT);

void ExpArray(const float* x, int64_t count, float* y) {
  SelectedIsa();
  HWY_DYNAMIC_DISPATCH(ExpArrayT)(x, count, y);
}
void ExpNonPositiveArray(const float* x, int64_t count, float* y) {
  SelectedIsa();
  HWY_DYNAMIC_DISPATCH(ExpNonPositiveArrayT)(x, count, y);
}
void Exp2NonPositiveArray(const float* x, int64_t count, float* y) {
  SelectedIsa();
  HWY_DYNAMIC_DISPATCH(Exp2NonPositiveArrayT)(x, count, y);
}

}  // namespace headlight
#endif
