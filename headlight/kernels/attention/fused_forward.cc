// The fused forward pass and probe, compiled for each ISA and chosen at run time.
#include "headlight/base/memory.h"
#include "headlight/kernels/attention/attention_fused.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/attention/fused_forward.cc"
#include "hwy/foreach_target.h"

#include "headlight/kernels/attention/decoding-inl.h"
#include "headlight/kernels/attention/probe-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

int64_t ForwardOnTarget(const HeadProblem& head, const ForwardTask& task) {
  return Forward(head, task);
}

int64_t ForwardSplitOnTarget(const DecodingGroup& group, int64_t split) {
  return ForwardSplit(group, split);
}

void MergeSplitsOnTarget(const HeadProblem& head, const ForwardTask& task, const float* sums,
                         int64_t splits) {
  MergeSplits(head, task, sums, splits);
}

void ProbeOnTarget(const HeadProblem& head, const ProbeTask& task) { Probe(head, task); }

void Exp2OnTarget(const float* x, float* y, int64_t count) {
  const D d;
  HWY_ALIGN float lanes[kLanes];
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t some = std::min(kLanes, count - i);
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = j < some ? x[i + j] : 0;
    hn::Store(Exp2(hn::Load(d, lanes)), d, lanes);
    std::copy(lanes, lanes + some, y + i);
  }
}

int64_t RowsOnTarget() { return kRows; }

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight::attention {

HWY_EXPORT(ForwardOnTarget);
HWY_EXPORT(ForwardSplitOnTarget);
HWY_EXPORT(MergeSplitsOnTarget);
HWY_EXPORT(ProbeOnTarget);
HWY_EXPORT(Exp2OnTarget);
HWY_EXPORT(RowsOnTarget);

int64_t FusedForward(const HeadProblem& head, const ForwardTask& task) {
  if (head.unit != Bf16Unit::kNone) return FusedForwardBf16(head, task);
  return HWY_DYNAMIC_DISPATCH(ForwardOnTarget)(head, task);
}

int64_t FusedForwardSplit(const DecodingGroup& group, int64_t split) {
  return HWY_DYNAMIC_DISPATCH(ForwardSplitOnTarget)(group, split);
}

void FusedMergeSplits(const HeadProblem& head, const ForwardTask& task, const float* sums,
                      int64_t splits) {
  HWY_DYNAMIC_DISPATCH(MergeSplitsOnTarget)(head, task, sums, splits);
}

void FusedProbe(const HeadProblem& head, const ProbeTask& task) {
  HWY_DYNAMIC_DISPATCH(ProbeOnTarget)(head, task);
}

void FusedExp2(const float* x, float* y, int64_t count) {
  HWY_DYNAMIC_DISPATCH(Exp2OnTarget)(x, y, count);
}

int64_t FusedStripRows() { return HWY_DYNAMIC_DISPATCH(RowsOnTarget)(); }

float* WorkerScratch(int64_t floats) {
  thread_local std::shared_ptr<std::byte> buffer;
  thread_local int64_t capacity = 0;
  if (capacity < floats) {
    buffer.reset();
    capacity = 0;
    buffer = AllocateUninitializedBuffer(static_cast<size_t>(floats) * sizeof(float),
                                         MemoryTag::kWorkspace);
    capacity = floats;
  }
  return reinterpret_cast<float*>(buffer.get());
}

}  // namespace headlight::attention
#endif  // HWY_ONCE
