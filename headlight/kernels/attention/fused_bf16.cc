// The fused kernels with operands in bf16, for CPUs that have a unit for their products: the code
// of the f32 kernels, compiled with other operands.
#include "headlight/kernels/bf16-target-inl.h"
// After that, which defines what they are compiled for.
#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_fused.h"

#if HWY_ARCH_X86
#define HEADLIGHT_ATTENTION_BF16
#include "headlight/kernels/attention/backward-inl.h"
#include "headlight/kernels/attention/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

int64_t ForwardWithTiles(const HeadProblem& head, const ForwardTask& task) {
  const TileRegisters registers(head.unit);
  return Forward(head, task);
}

void BackwardWithTiles(const BackwardTask& task) {
  const TileRegisters registers(task.heads[0].problem.unit);
  Backward(task);
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

namespace headlight::attention {

int64_t FusedForwardBf16(const HeadProblem& head, const ForwardTask& task) {
  return N_AVX3_BF16::ForwardWithTiles(head, task);
}

void FusedBackwardBf16(const BackwardTask& task) { N_AVX3_BF16::BackwardWithTiles(task); }

int64_t FusedBf16StripRows() { return N_AVX3_BF16::kRows; }

}  // namespace headlight::attention

#else

namespace headlight::attention {
namespace {

[[noreturn]] void Refuse() {
  throw Error(ErrorKind::kInternal, "attention: no unit of this architecture multiplies bf16");
}

}  // namespace

int64_t FusedForwardBf16(const HeadProblem&, const ForwardTask&) { Refuse(); }
void FusedBackwardBf16(const BackwardTask&) { Refuse(); }

int64_t FusedBf16StripRows() { return 0; }

}  // namespace headlight::attention
#endif
