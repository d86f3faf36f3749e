// FeedForward: y = down(activation(up(x))) (Vaswani et al. 2017, section 3.3). x, y [rows, dim].
//
// Rows are taken in chunks through both products while the chunk lies in the cache; of the hidden
// values only what the backward pass needs is kept (for GELU the value before it).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/nn/linear.h"
#include "headlight/nn/options.h"
#include "headlight/nn/workspace.h"

namespace headlight {

struct FeedForwardConfig {
  std::string name;  // parameters NAME.up.* and NAME.down.*
  int64_t dim = 0;
  int64_t hidden = 0;
  HiddenActivation activation = HiddenActivation::kRelu;
  Precision precision = Precision::kF32;
};

class FeedForward {
 public:
  struct Saved {
    Tensor input;          // shares the caller's buffer, which must stay unchanged
    GrowingTensor hidden;  // [rows, hidden]: after ReLU, or before GELU
  };

  FeedForward() = default;
  FeedForward(const FeedForwardConfig& config, DType dtype, uint64_t seed);

  // y += residual where one is given. saved: null when no backward pass follows.
  void Forward(const Tensor& x, const Tensor* residual, Saved* saved, Workspace& workspace,
               Tensor& y) const;
  // dx from dy; overwrites or adds. dx may be dy when adding: dx += the gradient through the layer.
  void Backward(const Tensor& dy, Update update, Saved& saved, Workspace& workspace, Tensor& dx);

  double Flops(int64_t rows) const { return up_.Flops(rows) + down_.Flops(rows); }
  void PrepareWeights();
  void Collect(std::vector<Parameter*>& parameters);

 private:
  HiddenActivation activation_ = HiddenActivation::kRelu;
  Linear up_, down_;
};

}  // namespace headlight
