// Gradients of the reference against central differences in double.
#pragma once

#include <gtest/gtest.h>

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_test-inl.h"

namespace headlight::attention_test {

// sum of out * out_gradient: its gradients are those of AttentionBackward.
inline double Loss(const Case& made) {
  AttentionOutputs outputs = MakeOutputs(made);
  AttentionForwardReference(made.problem, made.inputs, outputs);
  const std::vector<double> out = Values(outputs.out), gradient = Values(made.out_gradient);
  double loss = 0;
  for (size_t i = 0; i < out.size(); ++i) loss += out[i] * gradient[i];
  return loss;
}

// Error of a central difference with step h: h^2 f''' / 6 from truncation and eps f / h from
// rounding, about 1e-10 each for h = 1e-5 and losses of magnitude 10; 1e-7 leaves a hundredfold.
inline void ExpectGradient(const Case& made, Tensor& operand, const Tensor& gradient,
                           const char* name) {
  if (operand.empty()) return;
  const double step = 1e-5;
  const std::vector<double> analytic = Values(gradient);
  ASSERT_TRUE(operand.IsContiguous());
  double* values = operand.data<double>();
  for (size_t i = 0; i < analytic.size(); ++i) {
    const double kept = values[i];
    values[i] = kept + step;
    const double above = Loss(made);
    values[i] = kept - step;
    const double below = Loss(made);
    values[i] = kept;
    ASSERT_NEAR(analytic[i], (above - below) / (2 * step), 1e-7) << name << " at " << i;
  }
}

inline void ExpectAllGradients(Case made) {
  // Hundreds of calls of a few microseconds: threads would only wait for each other.
  const int threads = NumThreads();
  SetNumThreads(1);
  AttentionGradients gradients = MakeGradients(made);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, gradients);
  ExpectGradient(made, made.inputs.query, gradients.query, "query");
  ExpectGradient(made, made.inputs.key, gradients.key, "key");
  ExpectGradient(made, made.inputs.value, gradients.value, "value");
  ExpectGradient(made, made.problem.relative.keys, gradients.relative_keys, "relative keys");
  ExpectGradient(made, made.problem.relative.values, gradients.relative_values, "relative values");
  ExpectGradient(made, made.problem.bias.additive, gradients.bias, "bias");
  SetNumThreads(threads);
}

inline Options SmallOptions() {
  Options options;
  options.lengths = {{4, 4}, {3, 5}, {1, 1}};
  options.heads = 2;
  options.kv_heads = 2;
  options.head_dim = 3;
  options.value_dim = 2;
  return options;
}

}  // namespace headlight::attention_test
