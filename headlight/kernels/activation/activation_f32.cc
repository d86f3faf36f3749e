#include <algorithm>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/activation/activation_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/activation/activation_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what they are compiled for.
#include "headlight/kernels/activation/activation-inl.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

void ElementwiseRowT(internal::ElementwiseKind kind, const float* a, const float* b, int64_t count,
                     float* out) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  switch (kind) {
    case internal::ElementwiseKind::kRelu:
      return MapArray(d, a, count, out, [d](V x) HWY_ATTR { return Relu(d, x); });
    case internal::ElementwiseKind::kGelu:
      return MapArray(d, a, count, out, [d](V x) HWY_ATTR { return Gelu(d, x); });
    case internal::ElementwiseKind::kReluGradient:
      return MapArrays(d, a, b, count, out,
                       [d](V y, V dy) HWY_ATTR { return ReluGradient(d, y, dy); });
    case internal::ElementwiseKind::kGeluGradient:
      return MapArrays(d, a, b, count, out,
                       [d](V x, V dy) HWY_ATTR { return hn::Mul(dy, GeluDerivative(d, x)); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(ElementwiseRowT);

namespace internal {

void ElementwiseF32(ElementwiseKind kind, const Tensor& a, const Tensor& b, Tensor& out) {
  SelectedIsa();
  constexpr int64_t kElementsPerTask = 16384;
  const int64_t columns = a.size(1);
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, columns));
  const View<const float> from_a = a.view<float>(), from_b = b.view<float>();
  const View<float> to = out.view<float>();
  ParallelForRange(a.size(0), grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      HWY_DYNAMIC_DISPATCH(ElementwiseRowT)
      (kind, from_a.row(row), from_b.row(row), columns, to.row(row));
    }
  });
}

}  // namespace internal
}  // namespace headlight
#endif
