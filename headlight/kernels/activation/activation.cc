#include "headlight/kernels/activation/activation.h"

#include "headlight/base/error.h"
#include "headlight/kernels/activation/activation_internal.h"
#include "headlight/kernels/activation/activation_reference.h"
#include "headlight/kernels/check.h"

namespace headlight {
namespace {

void CheckThree(const char* operation, const Tensor& a, const Tensor& b, const Tensor& out) {
  CheckFloat(operation, "the input", a);
  CheckMatrix(operation, "the input", a, a.dtype());
  CheckMatrix(operation, "the gradient", b, a.dtype(), a.size(0), a.size(1));
  CheckMatrix(operation, "the output", out, a.dtype(), a.size(0), a.size(1));
}

bool IsWide(const Tensor& tensor) { return tensor.dtype() == DType::kF64; }

}  // namespace

void ReluForward(const Tensor& x, Tensor& y) {
  CheckThree("relu", x, x, y);
  if (IsWide(x)) {
    reference::ReluForward(x, y);
  } else {
    internal::ElementwiseF32(internal::ElementwiseKind::kRelu, x, x, y);
  }
}

void ReluBackward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  CheckThree("relu backward", y, dy, dx);
  if (IsWide(y)) {
    reference::ReluBackward(y, dy, dx);
  } else {
    internal::ElementwiseF32(internal::ElementwiseKind::kReluGradient, y, dy, dx);
  }
}

void GeluForward(const Tensor& x, Tensor& y) {
  CheckThree("gelu", x, x, y);
  if (IsWide(x)) {
    reference::GeluForward(x, y);
  } else {
    internal::ElementwiseF32(internal::ElementwiseKind::kGelu, x, x, y);
  }
}

void GeluBackward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  CheckThree("gelu backward", x, dy, dx);
  if (IsWide(x)) {
    reference::GeluBackward(x, dy, dx);
  } else {
    internal::ElementwiseF32(internal::ElementwiseKind::kGeluGradient, x, dy, dx);
  }
}

void Dropout(const Tensor& x, const DropoutOptions& options, Tensor& y) {
  CheckThree("dropout", x, x, y);
  CheckOffsets("dropout", options.offsets, x.size(0));
  if (options.sample_ids.size() + 1 != options.offsets.size()) {
    throw Error(ErrorKind::kShape, "dropout: {} sequences need as many sample ids, found {}",
                options.offsets.size() - 1, options.sample_ids.size());
  }
  if (!(options.rate >= 0 && options.rate < 1)) {
    throw Error(ErrorKind::kUsage, "dropout: the rate must lie in [0, 1), found {}", options.rate);
  }
  if (options.rate == 0) {
    if (y.bytes() != x.bytes()) y.CopyFrom(x);
  } else if (IsWide(x)) {
    reference::Dropout(x, options, y);
  } else {
    internal::DropoutF32(x, options, y);
  }
}

}  // namespace headlight
