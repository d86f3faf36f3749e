// LayerNorm: y = weight * (s - mean) / sqrt(variance + epsilon) + bias over the features of each
// row (Ba, Kiros and Hinton 2016), s = x + residual. All [rows, features].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/nn/parameter.h"
#include "headlight/nn/workspace.h"

namespace headlight {

class LayerNorm {
 public:
  struct Saved {
    Tensor input;  // what was normalised: shares the caller's buffer, which must stay unchanged
    GrowingTensor mean, inverse_deviation;  // [rows]
  };

  LayerNorm() = default;
  // Parameters NAME.weight (ones) and NAME.bias (zeros).
  LayerNorm(const std::string& name, int64_t features, double epsilon, DType dtype);

  // x += residual where one is given (x then holds the sum); y = norm of it. y is not x.
  void Forward(Tensor& x, const Tensor* residual, Saved& saved, Tensor& y) const;
  // dx is the gradient of the sum, plus `add` where one is given. dx may be dy or add.
  void Backward(const Tensor& dy, const Tensor* add, Saved& saved, Tensor& dx);

  void Collect(std::vector<Parameter*>& parameters);

 private:
  Parameter weight_, bias_;
  double epsilon_ = 0;
};

}  // namespace headlight
