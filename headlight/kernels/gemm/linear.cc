#include "headlight/kernels/gemm/linear.h"

#include <memory>

#include "headlight/base/error.h"
#include "headlight/kernels/check.h"
#include "headlight/kernels/gemm/linear_internal.h"
#include "headlight/kernels/gemm/linear_reference.h"

namespace headlight {
namespace {

void CheckPacked(const char* operation, const PackedLinear& weight) {
  if (weight.empty()) {
    throw Error(ErrorKind::kUsage, "{}: the weight must be prepared first", operation);
  }
}

void CheckPrecision(const char* operation, const Tensor& tensor, Precision precision) {
  if (precision != Precision::kF32 && tensor.dtype() != DType::kF32) {
    throw Error(ErrorKind::kUsage, "{}: products in bf16 need tensors of f32, found {}", operation,
                DTypeName(tensor.dtype()));
  }
}

}  // namespace

PackedLinear::PackedLinear() = default;
PackedLinear::~PackedLinear() = default;
PackedLinear::PackedLinear(PackedLinear&&) noexcept = default;
PackedLinear& PackedLinear::operator=(PackedLinear&&) noexcept = default;

void PackedLinear::Prepare(const Tensor& weight, Use use, Precision precision) {
  CheckFloat("linear", "weight", weight);
  CheckMatrix("linear", "weight", weight, weight.dtype());
  CheckPrecision("linear", weight, precision);
  weight_ = weight;
  if (weight.dtype() != DType::kF32 || weight.elements() == 0) {
    layout_ = nullptr;
    return;
  }
  if (!layout_) layout_ = std::make_unique<Layout>();
  internal::PackLinear(weight, use, precision, *layout_);
}

void LinearForward(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                   const LinearForwardOptions& options, Tensor& y) {
  const char* const kOperation = "linear";
  CheckPacked(kOperation, weight);
  const DType dtype = weight.weight().dtype();
  CheckMatrix(kOperation, "x", x, dtype, kAnySize, weight.in());
  const int64_t rows = x.size(0);
  CheckMatrix(kOperation, "y", y, dtype, rows, weight.out());
  if (bias) CheckVector(kOperation, "bias", *bias, dtype, weight.out());
  if (options.pre_activation) {
    CheckMatrix(kOperation, "pre_activation", *options.pre_activation, dtype, rows, weight.out());
  }
  if (options.residual) {
    CheckMatrix(kOperation, "residual", *options.residual, dtype, rows, weight.out());
  }
  if (y.elements() == 0) return;
  if (dtype == DType::kF64 || weight.in() == 0) {
    reference::LinearForward(x, weight.weight(), bias, options, y);
  } else {
    internal::LinearForward(x, weight, bias, options, y);
  }
}

void LinearBackwardInput(const Tensor& dy, const PackedLinear& weight,
                         const LinearBackwardInputOptions& options, Tensor& dx) {
  const char* const kOperation = "linear backward input";
  CheckPacked(kOperation, weight);
  const DType dtype = weight.weight().dtype();
  CheckMatrix(kOperation, "dy", dy, dtype, kAnySize, weight.out());
  if (weight.layout() && weight.layout()->backward.empty()) {
    throw Error(ErrorKind::kUsage, "{}: the weight was prepared for the forward pass alone",
                kOperation);
  }
  const int64_t rows = dy.size(0);
  CheckMatrix(kOperation, "dx", dx, dtype, rows, weight.in());
  if (options.relu_output && options.gelu_input) {
    throw Error(ErrorKind::kUsage, "{}: relu_output and gelu_input exclude each other", kOperation);
  }
  if (options.relu_output) {
    CheckMatrix(kOperation, "relu_output", *options.relu_output, dtype, rows, weight.in());
  }
  if (options.gelu_input) {
    CheckMatrix(kOperation, "gelu_input", *options.gelu_input, dtype, rows, weight.in());
  }
  if (dx.elements() == 0) return;
  if (dtype == DType::kF64 || weight.out() == 0) {
    reference::LinearBackwardInput(dy, weight.weight(), options, dx);
  } else {
    internal::LinearBackwardInput(dy, weight, options, dx);
  }
}

void LinearBackwardWeight(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias,
                          Precision precision) {
  const char* const kOperation = "linear backward weight";
  CheckFloat(kOperation, "x", x);
  CheckMatrix(kOperation, "x", x, x.dtype());
  CheckMatrix(kOperation, "dy", dy, x.dtype(), x.size(0));
  CheckMatrix(kOperation, "dweight", dweight, x.dtype(), dy.size(1), x.size(1));
  if (dbias) CheckVector(kOperation, "dbias", *dbias, x.dtype(), dy.size(1));
  CheckPrecision(kOperation, x, precision);
  if (x.size(0) == 0 || dy.size(1) == 0) return;
  if (x.dtype() == DType::kF64 || x.size(1) == 0) {
    reference::LinearBackwardWeight(x, dy, dweight, dbias);
  } else {
    internal::LinearBackwardWeight(x, dy, precision, dweight, dbias);
  }
}

}  // namespace headlight
