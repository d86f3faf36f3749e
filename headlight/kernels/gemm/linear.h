// Dense layers: y[rows, out] = activation(x[rows, in] weight[out, in]^T + bias[out]) + residual,
// and its gradients.
//
// f32 runs the fast products (of Precision::kBF16 where the weight was prepared so), f64 the plain
// reference. Matrices may have any row stride; columns are
// adjacent. Outputs must not overlap inputs, except y with residual (the same tensor). All tensors
// of a call have one dtype. Errors: kShape.
//
// Same bits: a row of y or dx depends on that row of x or dy and on the weights alone (not on how
// many rows there are, nor on threads). Weight gradients add chunks of kLinearChunkRows rows in
// order.
#pragma once

#include <cstdint>
#include <memory>

#include "headlight/kernels/precision.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

inline constexpr int64_t kLinearChunkRows = 128;

// kGelu is the exact x Phi(x) (Hendrycks & Gimpel 2016), which PyTorch calls approximate="none".
enum class Epilogue { kNone, kRelu, kGelu };
enum class Update { kOverwrite, kAdd };

// A weight laid out for the products. It keeps a window on the weight; after a change of the values
// Prepare must be called again. Const use from several threads at once is safe.
class PackedLinear {
 public:
  enum class Use { kForward, kForwardAndBackward };

  PackedLinear();
  ~PackedLinear();
  PackedLinear(PackedLinear&&) noexcept;
  PackedLinear& operator=(PackedLinear&&) noexcept;

  // weight [out, in], f32 or f64; rows may lie apart. Packing space is reused while the shape
  // stays. Products with it are of this precision; kUsage for f64 in another than kF32.
  void Prepare(const Tensor& weight, Use use = Use::kForwardAndBackward,
               Precision precision = Precision::kF32);

  bool empty() const { return weight_.empty(); }
  int64_t in() const { return weight_.size(1); }
  int64_t out() const { return weight_.size(0); }
  const Tensor& weight() const { return weight_; }

  struct Layout;  // what the implementation made of it; null for f64
  const Layout* layout() const { return layout_.get(); }

 private:
  Tensor weight_;
  std::unique_ptr<Layout> layout_;
};

struct LinearForwardOptions {
  Epilogue epilogue = Epilogue::kNone;
  // [rows, out], overwritten with the value before the epilogue (GELU's gradient needs it).
  Tensor* pre_activation = nullptr;
  // [rows, out], added after the epilogue.
  const Tensor* residual = nullptr;
};

// x [rows, in], bias [out] or null, y [rows, out] (overwritten).
void LinearForward(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                   const LinearForwardOptions& options, Tensor& y);

struct LinearBackwardInputOptions {
  Update update = Update::kOverwrite;
  // At most one of these, [rows, in]: x was the output of a ReLU (given: that output) or of a GELU
  // (given: its input); dx is then the gradient of the activation's input.
  const Tensor* relu_output = nullptr;
  const Tensor* gelu_input = nullptr;
};

// dx[rows, in] = dy[rows, out] weight, times the activation's derivative if one is given.
void LinearBackwardInput(const Tensor& dy, const PackedLinear& weight,
                         const LinearBackwardInputOptions& options, Tensor& dx);

// dweight[out, in] += dy[rows, out]^T x[rows, in];  dbias[out] += sum over rows of dy (null: none).
// The sums of dbias are of dy as it is in either precision.
void LinearBackwardWeight(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias,
                          Precision precision = Precision::kF32);

}  // namespace headlight
