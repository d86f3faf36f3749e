// The f32 product behind linear.h: one of linear_onednn.cc and linear_no_onednn.cc is built.
#pragma once

#include <memory>

#include "headlight/kernels/gemm/linear.h"

namespace headlight {

struct PackedLinear::Layout {
  virtual ~Layout() = default;
};

namespace internal {

// f32 weights only. Reuses `old` where its shape allows; may return null when nothing is packed.
std::unique_ptr<PackedLinear::Layout> PackF32(const Tensor& weight, PackedLinear::Use use,
                                              std::unique_ptr<PackedLinear::Layout> old);

// Arguments are checked, f32, and have rows, columns > 0.
void LinearForwardF32(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                      const LinearForwardOptions& options, Tensor& y);
void LinearBackwardInputF32(const Tensor& dy, const PackedLinear& weight,
                            const LinearBackwardInputOptions& options, Tensor& dx);
void LinearBackwardWeightF32(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias);

}  // namespace internal
}  // namespace headlight
