// The fused backward pass, compiled for each ISA and chosen at run time.
#include "headlight/kernels/attention/attention_fused.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/attention/fused_backward.cc"
#include "hwy/foreach_target.h"

#include "headlight/kernels/attention/backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

void BackwardOnTarget(const BackwardTask& task) { Backward(task); }

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight::attention {

HWY_EXPORT(BackwardOnTarget);

void FusedBackward(const BackwardTask& task) {
  if (task.heads[0].problem.unit != Bf16Unit::kNone) return FusedBackwardBf16(task);
  HWY_DYNAMIC_DISPATCH(BackwardOnTarget)(task);
}

}  // namespace headlight::attention
#endif  // HWY_ONCE
