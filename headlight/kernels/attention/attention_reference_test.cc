// The reference against central differences in double, and against values worked out by hand.
#include <gtest/gtest.h>

#include <functional>

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

// sum of out * out_gradient: its gradients are those of AttentionBackward.
double Loss(const Case& made) {
  AttentionOutputs outputs = MakeOutputs(made);
  AttentionForwardReference(made.problem, made.inputs, outputs);
  const std::vector<double> out = Values(outputs.out), gradient = Values(made.out_gradient);
  double loss = 0;
  for (size_t i = 0; i < out.size(); ++i) loss += out[i] * gradient[i];
  return loss;
}

// Error of a central difference with step h: h^2 f''' / 6 from truncation and eps f / h from
// rounding, about 1e-10 each for h = 1e-5 and losses of magnitude 10; 1e-7 leaves a hundredfold.
void ExpectGradient(const Case& made, Tensor& operand, const Tensor& gradient, const char* name) {
  if (operand.empty()) return;
  const double step = 1e-5;
  const View<double> values = operand.view<double>();
  const View<const double> analytic = gradient.view<double>();
  for (int64_t i = 0; i < values.size(0); ++i) {
    for (int64_t j = 0; j < values.size(1); ++j) {
      for (int64_t k = 0; k < values.size(2); ++k) {
        const double kept = values(i, j, k);
        values(i, j, k) = kept + step;
        const double above = Loss(made);
        values(i, j, k) = kept - step;
        const double below = Loss(made);
        values(i, j, k) = kept;
        ASSERT_NEAR(analytic(i, j, k), (above - below) / (2 * step), 1e-7)
            << name << " at " << i << ", " << j << ", " << k;
      }
    }
  }
}

void ExpectAllGradients(Case made) {
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
  SetNumThreads(threads);
}

Options SmallOptions() {
  Options options;
  options.lengths = {{4, 4}, {3, 5}, {1, 1}};
  options.heads = 2;
  options.kv_heads = 2;
  options.head_dim = 3;
  options.value_dim = 2;
  return options;
}

TEST(AttentionReference, GradientsPlain) { ExpectAllGradients(MakeCase(SmallOptions())); }

TEST(AttentionReference, GradientsOfMasks) {
  for (Mask::Causal causal : {Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    Case made = MakeCase(SmallOptions());
    made.problem.mask.causal = causal;
    ExpectAllGradients(made);
  }
  Case window = MakeCase(SmallOptions());
  window.problem.mask.window = Mask::Window{1, 1};
  ExpectAllGradients(window);
  Case lengths = MakeCase(SmallOptions());
  lengths.problem.mask.key_lengths = {2, 5, 0};
  ExpectAllGradients(lengths);
  Case keep = MakeCase(SmallOptions());
  AddKeep(keep, 0.5, 3);
  ExpectAllGradients(keep);
}

TEST(AttentionReference, GradientsOfSharedKeyHeadsAndScale) {
  Options options = SmallOptions();
  options.heads = 4;
  Case made = MakeCase(options);
  made.problem.scale = 0.7;
  ExpectAllGradients(made);
}

TEST(AttentionReference, GradientsOfRelativePositions) {
  for (int64_t longest : {2, 6}) {  // with and without clamping
    Options options = SmallOptions();
    options.relative_max = longest;
    ExpectAllGradients(MakeCase(options));
  }
}

TEST(AttentionReference, GradientsOfDropout) {
  Options options = SmallOptions();
  options.relative_max = 3;
  Case made = MakeCase(options);
  made.problem.dropout.rate = 0.4;
  made.problem.dropout.seed = 11;
  ExpectAllGradients(made);
}

TEST(AttentionReference, TableGradientsAreAddedTo) {
  Options options = SmallOptions();
  options.relative_max = 3;
  const Case made = MakeCase(options);
  AttentionGradients once = MakeGradients(made), twice = MakeGradients(made);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, once);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, twice);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, twice);
  const std::vector<double> a = Values(once.relative_keys), b = Values(twice.relative_keys);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_DOUBLE_EQ(2 * a[i], b[i]);
  EXPECT_TRUE(SameBits(once.query, twice.query));
}

}  // namespace
}  // namespace headlight
