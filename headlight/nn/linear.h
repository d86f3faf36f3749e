// Linear: y = x weight^T + bias. x [rows, in], y [rows, out].
//
// The out features may be made of several named parts (query, key, value), each with a weight and a
// bias of its own: one product computes them all, side by side. For a backward pass the caller
// keeps x. dtype f32 or f64 (then of precision kF32); columns adjacent, any row stride. Errors:
// kShape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/kernels/gemm/linear.h"
#include "headlight/nn/parameter.h"

namespace headlight {

struct LinearPart {
  std::string name;  // parameters NAME.weight and NAME.bias
  int64_t out = 0;
};

struct LinearConfig {
  std::vector<LinearPart> parts;
  int64_t in = 0;
  bool bias = true;
  Precision precision = Precision::kF32;  // of the products
};

class Linear {
 public:
  Linear() = default;  // holds nothing; only good to be assigned to
  // Weights Xavier uniform (each part on its own), biases 0.
  Linear(const LinearConfig& config, DType dtype, uint64_t seed);

  bool empty() const { return weight_.value.empty(); }
  int64_t in() const { return weight_.value.size(1); }
  int64_t out() const { return weight_.value.size(0); }  // of all parts
  double Flops(int64_t rows) const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(weight_.value.elements());
  }

  void Forward(const Tensor& x, const LinearForwardOptions& options, Tensor& y) const;
  // Adds to the gradients of weight and bias.
  void BackwardParameters(const Tensor& x, const Tensor& dy);
  // dx from dy [rows, out]; overwrites or adds, as options.update says.
  void BackwardInput(const Tensor& dy, const LinearBackwardInputOptions& options, Tensor& dx) const;

  // After a change of the weight's values.
  void PrepareWeights();
  void Collect(std::vector<Parameter*>& parameters);

 private:
  Parameter weight_, bias_;                 // of all parts; their names are not used
  std::vector<Parameter> part_parameters_;  // windows, weight and bias of each part in turn
  Precision precision_ = Precision::kF32;
  PackedLinear packed_;
};

}  // namespace headlight
