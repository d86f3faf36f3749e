// Plain loops for now; the products of oneDNN follow.
#include "headlight/kernels/gemm/linear_internal.h"
#include "headlight/kernels/gemm/linear_reference.h"

namespace headlight {

const char* LinearImplementation() { return "reference"; }

namespace internal {

std::unique_ptr<PackedLinear::Layout> PackF32(const Tensor&, PackedLinear::Use,
                                              std::unique_ptr<PackedLinear::Layout>) {
  return nullptr;
}

void LinearForwardF32(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                      const LinearForwardOptions& options, Tensor& y) {
  reference::LinearForward(x, weight.weight(), bias, options, y);
}

void LinearBackwardInputF32(const Tensor& dy, const PackedLinear& weight,
                            const LinearBackwardInputOptions& options, Tensor& dx) {
  reference::LinearBackwardInput(dy, weight.weight(), options, dx);
}

void LinearBackwardWeightF32(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias) {
  reference::LinearBackwardWeight(x, dy, dweight, dbias);
}

}  // namespace internal
}  // namespace headlight
