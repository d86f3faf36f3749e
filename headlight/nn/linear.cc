#include "headlight/nn/linear.h"

#include "headlight/nn/init.h"

namespace headlight {

Linear::Linear(const LinearConfig& config, DType dtype, uint64_t seed)
    : precision_(config.precision) {
  int64_t out = 0;
  for (const LinearPart& part : config.parts) out += part.out;
  weight_ = MakeParameter("", {out, config.in}, dtype, true);
  if (config.bias) bias_ = MakeParameter("", {out}, dtype, false);
  int64_t begin = 0;
  for (const LinearPart& part : config.parts) {
    const int64_t end = begin + part.out;
    part_parameters_.push_back(ParameterWindow(part.name + ".weight", weight_, begin, end));
    InitXavierUniform(part_parameters_.back(), seed);
    if (config.bias) {
      part_parameters_.push_back(ParameterWindow(part.name + ".bias", bias_, begin, end));
    }
    begin = end;
  }
  PrepareWeights();
}

void Linear::Forward(const Tensor& x, const LinearForwardOptions& options, Tensor& y) const {
  LinearForward(x, packed_, bias_.value.empty() ? nullptr : &bias_.value, options, y);
}

void Linear::BackwardParameters(const Tensor& x, const Tensor& dy) {
  LinearBackwardWeight(x, dy, weight_.gradient, bias_.value.empty() ? nullptr : &bias_.gradient,
                       precision_);
}

void Linear::BackwardInput(const Tensor& dy, const LinearBackwardInputOptions& options,
                           Tensor& dx) const {
  LinearBackwardInput(dy, packed_, options, dx);
}

void Linear::PrepareWeights() {
  packed_.Prepare(weight_.value, PackedLinear::Use::kForwardAndBackward, precision_);
}

void Linear::Collect(std::vector<Parameter*>& parameters) {
  for (Parameter& parameter : part_parameters_) parameters.push_back(&parameter);
}

}  // namespace headlight
