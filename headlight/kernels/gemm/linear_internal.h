// The f32 products behind linear.h (linear_f32.cc). Arguments are checked, f32, with every size >
// 0.
#pragma once

#include "headlight/kernels/gemm/linear.h"

namespace headlight {

// The weight in panels (product-inl.h).
struct PackedLinear::Layout {
  Tensor forward;   // B[in][out] = weight^T
  Tensor backward;  // B[out][in] = weight; empty for Use::kForward
};

namespace internal {

// A block of the weight gradient; workspace is the running worker's own.
struct GradientBlock {
  const Tensor& x;
  const Tensor& dy;
  Tensor& dweight;
  float* dbias;  // or null
  int64_t out_begin;
  int64_t out_end;
  int64_t in_begin;
  int64_t in_end;
  float* workspace;
};

void PackLinearF32(const Tensor& weight, PackedLinear::Use use, PackedLinear::Layout& layout);
void LinearForwardF32(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                      const LinearForwardOptions& options, Tensor& y);
void LinearBackwardInputF32(const Tensor& dy, const PackedLinear& weight,
                            const LinearBackwardInputOptions& options, Tensor& dx);
void LinearBackwardWeightF32(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias);

}  // namespace internal
}  // namespace headlight
