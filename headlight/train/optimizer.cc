#include "headlight/train/optimizer.h"

#include "headlight/kernels/optimizer/adam.h"

namespace headlight {

Optimizer::Optimizer(const OptimizerConfig& config, std::vector<Parameter*> parameters)
    : config_(config), parameters_(std::move(parameters)) {
  for (const Parameter* parameter : parameters_) {
    const Tensor& value = parameter->value;
    first_.push_back(Tensor::Zeros(value.shape(), value.dtype(), MemoryTag::kOptimizer));
    second_.push_back(Tensor::Zeros(value.shape(), value.dtype(), MemoryTag::kOptimizer));
  }
}

void Optimizer::Step(double learning_rate, double gradient_scale) {
  ++steps_;
  AdamOptions options;
  options.learning_rate = learning_rate;
  options.beta1 = config_.beta1;
  options.beta2 = config_.beta2;
  options.epsilon = config_.epsilon;
  options.decay = WeightDecay::kDecoupled;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = *parameters_[i];
    const bool decays = config_.kind == OptimizerKind::kAdamW && parameter.decay;
    options.weight_decay = decays ? config_.weight_decay : 0;
    AdamStep(options, steps_, gradient_scale,
             {parameter.value, parameter.gradient, first_[i], second_[i]},
             AfterStep::kClearGradient);
  }
}

std::vector<std::pair<std::string, Tensor>> Optimizer::State() const {
  std::vector<std::pair<std::string, Tensor>> state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back("optimizer.first." + parameters_[i]->name, first_[i]);
    state.emplace_back("optimizer.second." + parameters_[i]->name, second_[i]);
  }
  return state;
}

std::vector<double> SquaredGradientNorms(const std::vector<Parameter*>& parameters) {
  std::vector<double> norms;
  norms.reserve(parameters.size());
  for (const Parameter* parameter : parameters) norms.push_back(SumOfSquares(parameter->gradient));
  return norms;
}

double ClipFactor(double norm, double clip) { return clip > 0 && norm > clip ? clip / norm : 1; }

}  // namespace headlight
