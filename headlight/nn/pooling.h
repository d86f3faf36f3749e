// Pooling: one vector per sequence out of its tokens' vectors, [tokens, dim] -> [batch, dim]. A
// sequence without tokens gives zeros.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/nn/options.h"
#include "headlight/nn/parameter.h"
#include "headlight/nn/ragged_batch.h"
#include "headlight/nn/workspace.h"

namespace headlight {

class Pooling {
 public:
  struct Saved {
    Tensor input;           // shares the caller's buffer, which must stay unchanged
    GrowingTensor largest;  // i32 [batch, dim], of max pooling
    GrowingTensor weights;  // [tokens], of attention pooling
  };

  Pooling() = default;
  // Attention pooling has the parameter NAME.query [dim], initially zeros: that is the mean.
  Pooling(const std::string& name, PoolingChoice choice, int64_t dim, DType dtype);

  void Forward(const Tensor& x, const RaggedLayout& layout, Saved& saved, Tensor& y) const;
  // dx [tokens, dim], overwritten.
  void Backward(const Tensor& dy, const RaggedLayout& layout, Saved& saved, Tensor& dx);

  void Collect(std::vector<Parameter*>& parameters);

 private:
  PoolingChoice choice_ = PoolingChoice::kMean;
  Parameter query_;
};

}  // namespace headlight
