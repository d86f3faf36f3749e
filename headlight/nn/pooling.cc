#include "headlight/nn/pooling.h"

#include "headlight/base/error.h"
#include "headlight/kernels/pooling/pooling.h"

namespace headlight {
namespace {

PoolingKind KernelKind(PoolingChoice choice) {
  switch (choice) {
    case PoolingChoice::kMean:
      return PoolingKind::kMean;
    case PoolingChoice::kFirst:
      return PoolingKind::kFirst;
    case PoolingChoice::kMax:
      return PoolingKind::kMax;
    case PoolingChoice::kAttention:
      break;
  }
  throw Error(ErrorKind::kInternal, "pooling: attention pooling has its own kernel");
}

}  // namespace

Pooling::Pooling(const std::string& name, PoolingChoice choice, int64_t dim, DType dtype)
    : choice_(choice) {
  if (choice == PoolingChoice::kAttention) {
    query_ = MakeParameter(name + ".query", {dim}, dtype, true);
  }
}

void Pooling::Forward(const Tensor& x, const RaggedLayout& layout, Saved& saved, Tensor& y) const {
  saved.input = x;
  if (choice_ == PoolingChoice::kAttention) {
    Tensor& weights = saved.weights.Get({x.size(0)}, x.dtype());
    AttentionPoolingForward(x, query_.value, layout.offsets, weights, y);
    return;
  }
  Tensor* largest = nullptr;
  if (choice_ == PoolingChoice::kMax) {
    largest = &saved.largest.Get({layout.batch(), x.size(1)}, DType::kI32);
  }
  PoolingForward(KernelKind(choice_), x, layout.offsets, y, largest);
}

void Pooling::Backward(const Tensor& dy, const RaggedLayout& layout, Saved& saved, Tensor& dx) {
  if (choice_ == PoolingChoice::kAttention) {
    AttentionPoolingBackward({.x = saved.input,
                              .query = query_.value,
                              .weights = saved.weights.tensor(),
                              .offsets = layout.offsets},
                             dy, {.dx = dx, .dquery = query_.gradient});
    return;
  }
  const Tensor* largest = choice_ == PoolingChoice::kMax ? &saved.largest.tensor() : nullptr;
  PoolingBackward(KernelKind(choice_), dy, layout.offsets, largest, dx);
}

void Pooling::Collect(std::vector<Parameter*>& parameters) {
  if (!query_.value.empty()) parameters.push_back(&query_);
}

}  // namespace headlight
