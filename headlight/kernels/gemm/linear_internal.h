// The products behind linear.h: what each precision brings (linear_f32.cc, linear_bf16.cc), and how
// the work is cut for threads (linear_tasks.cc). Arguments are checked, f32, with every size > 0.
#pragma once

#include "headlight/kernels/gemm/linear.h"

namespace headlight {
namespace internal {

// Rows [begin, end) of y, and of dx. workspace is the running worker's own.
struct ForwardRows {
  const Tensor& x;
  const Tensor& packed;
  const Tensor* bias;  // or null
  const LinearForwardOptions& options;
  Tensor& y;
  int64_t begin, end;
  float* workspace;
};

struct BackwardInputRows {
  const Tensor& dy;
  const Tensor& packed;
  const LinearBackwardInputOptions& options;
  Tensor& dx;
  int64_t begin, end;
  float* workspace;
};

// A block of the weight gradient.
struct GradientBlock {
  const Tensor& x;
  const Tensor& dy;
  const Tensor& dy_as_given;  // before it was rounded: what dbias sums
  Tensor& dweight;
  float* dbias;  // or null
  int64_t out_begin, out_end;
  int64_t in_begin, in_end;
  float* workspace;
};

struct LinearKernels {
  DType packed;  // of packed weights
  int64_t (*panel_columns)();
  int64_t (*packed_size)(int64_t depth, int64_t columns);
  // The panel from column `first` of B[in][out] = weight^T, and of B[out][in] = weight.
  void (*pack_forward_panel)(const Tensor& weight, int64_t first, Tensor& packed);
  void (*pack_backward_panel)(const Tensor& weight, int64_t first, Tensor& packed);
  // Floats that rows of a product of this depth need.
  int64_t (*rows_workspace)(int64_t depth);
  void (*forward_rows)(const ForwardRows& work);
  void (*backward_input_rows)(const BackwardInputRows& work);
  // Floats that a block needs.
  int64_t (*gradient_workspace)(int64_t outputs, int64_t inputs);
  void (*backward_weight_block)(const GradientBlock& block);
};

const LinearKernels& F32LinearKernels();
// Of SelectedBf16Unit(), which must not be kNone.
const LinearKernels& Bf16LinearKernels();

void PackLinear(const Tensor& weight, PackedLinear::Use use, Precision precision,
                PackedLinear::Layout& layout);
void LinearForward(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                   const LinearForwardOptions& options, Tensor& y);
void LinearBackwardInput(const Tensor& dy, const PackedLinear& weight,
                         const LinearBackwardInputOptions& options, Tensor& dx);
void LinearBackwardWeight(const Tensor& x, const Tensor& dy, Precision precision, Tensor& dweight,
                          Tensor* dbias);

}  // namespace internal

// The weight in panels.
struct PackedLinear::Layout {
  const internal::LinearKernels* kernels = nullptr;
  bool rounds = false;  // operands, where no unit multiplies bf16
  Tensor forward;       // B[in][out] = weight^T
  Tensor backward;      // B[out][in] = weight; empty for Use::kForward
};

}  // namespace headlight
