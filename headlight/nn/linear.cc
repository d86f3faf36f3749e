#include "headlight/nn/linear.h"

#include "headlight/nn/init.h"

namespace headlight {

Linear::Linear(const LinearConfig& config, DType dtype, uint64_t seed) {
  const auto parts = static_cast<int64_t>(config.parts.size());
  weight_ = MakeParameter("", {parts * config.out, config.in}, dtype, true);
  if (config.bias) bias_ = MakeParameter("", {parts * config.out}, dtype, false);
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = i * config.out, end = begin + config.out;
    const std::string& name = config.parts[static_cast<size_t>(i)];
    part_parameters_.push_back(ParameterWindow(name + ".weight", weight_, begin, end));
    InitXavierUniform(part_parameters_.back(), seed);
    if (!config.bias) continue;
    part_parameters_.push_back(ParameterWindow(name + ".bias", bias_, begin, end));
  }
  PrepareWeights();
}

void Linear::Forward(const Tensor& x, const LinearForwardOptions& options, Tensor& y) const {
  LinearForward(x, packed_, bias_.value.empty() ? nullptr : &bias_.value, options, y);
}

void Linear::BackwardParameters(const Tensor& x, const Tensor& dy) {
  LinearBackwardWeight(x, dy, weight_.gradient, bias_.value.empty() ? nullptr : &bias_.gradient);
}

void Linear::BackwardInput(const Tensor& dy, const LinearBackwardInputOptions& options,
                           Tensor& dx) const {
  LinearBackwardInput(dy, packed_, options, dx);
}

void Linear::PrepareWeights() { packed_.Prepare(weight_.value); }

void Linear::Collect(std::vector<Parameter*>& parameters) {
  for (Parameter& parameter : part_parameters_) parameters.push_back(&parameter);
}

}  // namespace headlight
