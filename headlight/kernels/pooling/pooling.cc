#include "headlight/kernels/pooling/pooling.h"

#include "headlight/base/error.h"
#include "headlight/kernels/check.h"
#include "headlight/kernels/pooling/pooling_internal.h"
#include "headlight/kernels/pooling/pooling_reference.h"

namespace headlight {
namespace {

// tokens [tokens, features] and pooled [batch, features].
void Check(const char* operation, const Tensor& tokens, std::span<const int64_t> offsets,
           const Tensor& pooled) {
  CheckFloat(operation, "the tokens' matrix", tokens);
  CheckMatrix(operation, "the tokens' matrix", tokens, tokens.dtype());
  CheckOffsets(operation, offsets, tokens.size(0));
  CheckMatrix(operation, "the sequences' matrix", pooled, tokens.dtype(),
              static_cast<int64_t>(offsets.size()) - 1, tokens.size(1));
}

}  // namespace

void PoolingForward(PoolingKind kind, const Tensor& x, std::span<const int64_t> offsets, Tensor& y,
                    Tensor* largest) {
  Check("pooling", x, offsets, y);
  if (largest) CheckMatrix("pooling", "largest", *largest, DType::kI32, y.size(0), y.size(1));
  if (x.dtype() == DType::kF64) {
    reference::PoolingForward(kind, x, offsets, y, largest);
  } else {
    internal::PoolingForwardF32(kind, x, offsets, y, largest);
  }
}

void PoolingBackward(PoolingKind kind, const Tensor& dy, std::span<const int64_t> offsets,
                     const Tensor* largest, Tensor& dx) {
  const char* const kOperation = "pooling backward";
  Check(kOperation, dx, offsets, dy);
  if (kind == PoolingKind::kMax) {
    if (!largest) {
      throw Error(ErrorKind::kUsage, "{}: max pooling needs the tokens of the maxima", kOperation);
    }
    CheckMatrix(kOperation, "largest", *largest, DType::kI32, dy.size(0), dy.size(1));
  }
  if (dy.dtype() == DType::kF64) {
    reference::PoolingBackward(kind, dy, offsets, largest, dx);
  } else {
    internal::PoolingBackwardF32(kind, dy, offsets, largest, dx);
  }
}

void AttentionPoolingForward(const Tensor& x, const Tensor& query, std::span<const int64_t> offsets,
                             Tensor& weights, Tensor& y) {
  const char* const kOperation = "attention pooling";
  Check(kOperation, x, offsets, y);
  CheckVector(kOperation, "query", query, x.dtype(), x.size(1));
  CheckVector(kOperation, "weights", weights, x.dtype(), x.size(0));
  if (x.dtype() == DType::kF64) {
    reference::AttentionPoolingForward(x, query, offsets, weights, y);
  } else {
    internal::AttentionPoolingForwardF32(x, query, offsets, weights, y);
  }
}

void AttentionPoolingBackward(const AttentionPoolingInput& input, const Tensor& dy,
                              const AttentionPoolingGradient& gradient) {
  const char* const kOperation = "attention pooling backward";
  Check(kOperation, input.x, input.offsets, dy);
  const DType dtype = input.x.dtype();
  CheckVector(kOperation, "query", input.query, dtype, input.x.size(1));
  CheckVector(kOperation, "weights", input.weights, dtype, input.x.size(0));
  CheckMatrix(kOperation, "dx", gradient.dx, dtype, input.x.size(0), input.x.size(1));
  CheckVector(kOperation, "dquery", gradient.dquery, dtype, input.x.size(1));
  if (dy.dtype() == DType::kF64) {
    reference::AttentionPoolingBackward(input, dy, gradient);
  } else {
    internal::AttentionPoolingBackwardF32(input, dy, gradient);
  }
}

}  // namespace headlight
