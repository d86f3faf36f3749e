#include "headlight/nn/layer_norm.h"

#include "headlight/kernels/norm/layer_norm.h"
#include "headlight/nn/init.h"

namespace headlight {

LayerNorm::LayerNorm(const std::string& name, int64_t features, double epsilon, DType dtype)
    : weight_(MakeParameter(name + ".weight", {features}, dtype, false)),
      bias_(MakeParameter(name + ".bias", {features}, dtype, false)),
      epsilon_(epsilon) {
  InitConstant(weight_, 1);
}

void LayerNorm::Forward(Tensor& x, const Tensor* residual, Saved& saved, Tensor& y) const {
  const Shape rows{x.size(0)};
  Tensor& mean = saved.mean.Get(rows, x.dtype());
  Tensor& inverse_deviation = saved.inverse_deviation.Get(rows, x.dtype());
  LayerNormForward({.x = x,
                    .residual = residual,
                    .gamma = weight_.value,
                    .beta = bias_.value,
                    .epsilon = epsilon_},
                   {.y = y,
                    .sum = residual != nullptr ? &x : nullptr,
                    .mean = &mean,
                    .inverse_deviation = &inverse_deviation});
  saved.input = x;
}

void LayerNorm::Backward(const Tensor& dy, const Tensor* add, Saved& saved, Tensor& dx) {
  LayerNormBackward({.dy = dy,
                     .s = saved.input,
                     .gamma = weight_.value,
                     .mean = saved.mean.tensor(),
                     .inverse_deviation = saved.inverse_deviation.tensor(),
                     .add = add},
                    {.dx = dx, .dgamma = weight_.gradient, .dbeta = bias_.gradient});
}

void LayerNorm::Collect(std::vector<Parameter*>& parameters) {
  parameters.push_back(&weight_);
  parameters.push_back(&bias_);
}

}  // namespace headlight
