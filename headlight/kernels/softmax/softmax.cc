#include "headlight/kernels/softmax/softmax.h"

#include "headlight/kernels/check.h"
#include "headlight/kernels/softmax/softmax_internal.h"
#include "headlight/kernels/softmax/softmax_reference.h"

namespace headlight {

void Softmax(const Tensor& x, Tensor& y) {
  CheckFloat("softmax", "x", x);
  CheckMatrix("softmax", "x", x, x.dtype());
  CheckMatrix("softmax", "y", y, x.dtype(), x.size(0), x.size(1));
  if (x.dtype() == DType::kF64) {
    reference::Softmax(x, y);
  } else {
    internal::SoftmaxF32(x, y);
  }
}

void LogSumExp(const Tensor& x, Tensor& lse) {
  CheckFloat("log-sum-exp", "x", x);
  CheckMatrix("log-sum-exp", "x", x, x.dtype());
  CheckVector("log-sum-exp", "lse", lse, x.dtype(), x.size(0));
  if (x.dtype() == DType::kF64) {
    reference::LogSumExp(x, lse);
  } else {
    internal::LogSumExpF32(x, lse);
  }
}

}  // namespace headlight
