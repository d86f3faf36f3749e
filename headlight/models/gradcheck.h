// Gradients against central differences in f64, for every layer and the whole model.
//
// A case computes a scalar loss; the check compares dloss/dvalue of its backward pass with
// (loss(v + h) - loss(v - h)) / 2h for values drawn from each tensor. The error of a tensor is the
// largest |analytic - numeric| over the larger of its largest gradient and kGradCheckFloor. A value
// that misses the tolerance is tried with other h: near a kink (ReLU, maximum) only small steps
// stay on one side of it, while a wrong gradient is wrong at every h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headlight/nn/parameter.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

// At h = 1e-5 and losses of magnitude 10, rounding leaves errors of about 10 * 2^-52 / h = 2e-10,
// and the next term of the Taylor series about h^2 = 1e-10 times the third derivative. Below the
// floor such errors would exceed the tolerance although the gradient is right.
inline constexpr double kGradCheckTolerance = 1e-6;
inline constexpr double kGradCheckFloor = 1e-2;

struct GradCheckInput {
  std::string name;
  Tensor value;     // f64; the check moves values and restores them
  Tensor gradient;  // f64, the same shape, filled by the case's backward
};

struct GradCheckCase {
  std::string layer;             // "multi_head_attention: causal"
  std::function<double()> loss;  // of the present values
  // Runs forward and backward: adds to the gradients of parameters, overwrites those of inputs.
  std::function<void()> backward;
  std::vector<Parameter*> parameters;
  std::vector<GradCheckInput> inputs;
};

struct GradCheckRow {
  std::string layer;
  std::string tensor;
  int64_t checked = 0;  // values compared
  double max_error = 0;
  double tolerance = 0;
  bool ok = false;
};

struct GradCheckOptions {
  uint64_t seed = 1;
  int64_t values_per_tensor = 8;
};

// One row per parameter and input.
std::vector<GradCheckRow> CheckGradients(const GradCheckCase& check,
                                         const GradCheckOptions& options);

// Every layer with every option, then whole models. `seed` draws the values.
std::vector<GradCheckCase> AllGradCheckCases(uint64_t seed);

// CheckGradients over AllGradCheckCases: a second or two. The layers are so small that one thread
// is fastest (SetNumThreads).
std::vector<GradCheckRow> RunGradCheck(const GradCheckOptions& options);

}  // namespace headlight
