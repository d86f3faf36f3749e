#include "headlight/kernels/bf16_rounding.h"

#include "headlight/base/threads.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {

Tensor RoundedToBf16(const Tensor& tensor) {
  constexpr int64_t kGrain = 1 << 16;
  Tensor rounded = tensor.Clone(MemoryTag::kWorkspace);
  float* values = rounded.data<float>();
  ParallelForRange(rounded.elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) values[i] = ToFloat(ToBFloat16(values[i]));
  });
  return rounded;
}

}  // namespace headlight
