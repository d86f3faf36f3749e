// Adam and AdamW over a model's parameters, and the gradient's norm.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headlight/nn/parameter.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

// kAdam: Kingma & Ba 2015, algorithm 1. kAdamW: Loshchilov & Hutter 2019, algorithm 2: weights
// shrink by rate * weight_decay a step, apart from the gradient; norms and biases do not
// (Parameter::decay).
enum class OptimizerKind { kAdam, kAdamW };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdam;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // kAdamW only
};

class Optimizer {
 public:
  // The parameters must outlive the optimizer. The state (two values a parameter value, in the
  // parameter's dtype) is charged to kOptimizer.
  Optimizer(const OptimizerConfig& config, std::vector<Parameter*> parameters);

  // One update with the gradients times `gradient_scale` (the clipping factor). The gradients are
  // zero afterwards.
  void Step(double learning_rate, double gradient_scale);

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  // The moments under their names in a checkpoint: "optimizer.first.<parameter>" and
  // "optimizer.second.<parameter>". The tensors share the optimizer's buffers.
  std::vector<std::pair<std::string, Tensor>> State() const;

 private:
  OptimizerConfig config_;
  std::vector<Parameter*> parameters_;
  std::vector<Tensor> first_;   // mean of the gradient
  std::vector<Tensor> second_;  // mean of its square
  int64_t steps_ = 0;
};

// Sum of the squares of each parameter's gradient, in double, added up in an order that does not
// depend on threads.
std::vector<double> SquaredGradientNorms(const std::vector<Parameter*>& parameters);

// min(1, clip / norm); 1 when clip is 0.
double ClipFactor(double norm, double clip);

}  // namespace headlight
