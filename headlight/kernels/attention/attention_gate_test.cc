// Gates of heads: open, closed, and their gradients.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"
#include "headlight/kernels/attention/attention_gradient_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

Case Gated(const std::vector<Lengths>& lengths, std::vector<double> gates, int64_t kv_heads) {
  Options options = F32(lengths, 16);
  options.heads = static_cast<int64_t>(gates.size());
  options.kv_heads = kv_heads;
  Case made = MakeCase(options);
  made.problem.head_gates = std::move(gates);
  return made;
}

TEST(AttentionReference, GradientsOfGates) {
  for (double rate : {0.0, 0.3}) {
    Options options = SmallOptions();
    options.heads = 4;
    options.relative_max = 3;
    Case made = MakeCase(options);
    made.problem.mask.key_lengths = {3, 5, 0};
    made.problem.dropout.rate = rate;
    made.problem.head_gates = {0.5, 0, -2, 1};
    ExpectAllGradients(made);
    AttentionGradients gradients = MakeGradients(made);
    AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, gradients);
    for (size_t h = 0; h < 4; ++h) {
      // The loss is linear in a gate: the difference is exact but for rounding. At 0 it is taken
      // from one side and the other, where the head is open.
      Case other = made;
      other.problem.head_gates[h] += 0.25;
      const double above = Loss(other);
      other.problem.head_gates[h] -= 0.5;
      EXPECT_NEAR(Values(gradients.gates)[h], (above - Loss(other)) / 0.5, 1e-10) << h;
    }
  }
}

TEST(AttentionGates, LikeReference) {
  for (int64_t kv_heads : {1, 2, 4}) {
    for (const auto& gates : std::vector<std::vector<double>>{
             {0.5, 0, -2, 1}, {0, 1, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 3, 1e-3}}) {
      Case made = Gated({{9, 9}, {40, 70}, {0, 3}, {3, 0}, {1, 1}}, gates, kv_heads);
      ExpectLikeReference(made);
      made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
      made.problem.dropout.rate = 0.2;
      AddBlocks(made, 0.6, {20, 16, 4, {}, {}}, 3);
      AddBias(made, 0.1, 4);
      ExpectLikeReference(made);
    }
  }
}

TEST(AttentionGates, LongSequencesAndRelativePositions) {
  Case made = Gated({{1100, 600}, {20, 20}}, {0, 0.7}, 1);
  ExpectLikeReference(made);
  Options options = F32({{40, 60}}, 8);
  options.heads = options.kv_heads = 2;
  options.relative_max = 30;
  Case relative = MakeCase(options);
  relative.problem.head_gates = {0, -0.7};
  ExpectLikeReference(relative);
}

TEST(AttentionGates, OneIsBitwiseNoGate) {
  const Case plain = Gated({{61, 61}, {530, 530}}, {1, 1}, 2);
  Case ungated = plain;
  ungated.problem.head_gates.clear();
  OnEveryIsa([&] {
    Results gated = RunFused(plain);
    gated.gradients.gates = Tensor();
    EXPECT_TRUE(SameBits(gated, RunFused(ungated)));
  });
}

// A closed head touches nothing: NaN in it reaches nobody, and it weighs nothing.
TEST(AttentionGates, ClosedHeadIsNotComputed) {
  Case made = Gated({{45, 45}}, {1, 0}, 2);
  for (Tensor* tensor : {&made.inputs.query, &made.inputs.key, &made.inputs.value}) {
    for (int64_t i = 0; i < 45; ++i) tensor->view<float>()(i, 1, 3) = kNaN;
  }
  EXPECT_FALSE(FindNonFiniteScore(made.problem, made.inputs).has_value());
  OnEveryIsa([&] {
    AttentionOutputs outputs = MakeOutputs(made);
    outputs.weights.push_back({0, 1, {}});
    outputs.statistics = HeadStatistics{};
    outputs.statistics->heads = {1};
    AttentionForward(made.problem, made.inputs, outputs);
    AttentionGradients gradients = MakeGradients(made);
    gradients.gates = Tensor();  // it would be NaN
    AttentionBackward(made.problem, made.inputs, outputs, made.out_gradient, gradients);
    for (const Tensor* tensor :
         {&outputs.out, &gradients.query, &gradients.key, &gradients.value}) {
      EXPECT_EQ(LargestMagnitude(Values(tensor->Slice(1, 1, 2))), 0);
      for (double value : Values(*tensor)) ASSERT_TRUE(std::isfinite(value));
    }
    EXPECT_EQ(outputs.lse.view<float>()(1, 7), -std::numeric_limits<float>::infinity());
    for (double weight : Values(outputs.weights[0].weights)) EXPECT_EQ(weight, 0);
    EXPECT_EQ(outputs.statistics->largest_key.view<int32_t>()(0, 7), -1);
    EXPECT_EQ(outputs.statistics->entropy.view<float>()(0, 7), 0);
  });
}

TEST(AttentionGates, ClosedHeadsCostNothing) {
  const Case open = Gated({{1024, 1024}}, std::vector<double>(8, 1), 8);
  Case closed = open;
  closed.problem.head_gates = {1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_LT(TimeRatio(closed, open, false, 0.4), 0.4);
}

TEST(AttentionGates, SameBitsForAnyThreads) {
  const Case made = Gated({{40, 40}, {1, 1}, {530, 530}, {65, 65}}, {0.5, 0, 2, 0}, 2);
  ExpectSameBitsForAnyThreads(made);
}

// NaN in the output gradient of a row with nothing to attend to reaches no gate.
TEST(AttentionGates, GradientSkipsRowsWithoutKeys) {
  Case made = Gated({{6, 3}}, {0.5, 0}, 2);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;  // rows 0 to 2 see nothing
  for (int64_t c = 0; c < 16; ++c) made.out_gradient.view<float>()(1, 1, c) = kNaN;
  made.out_gradient.view<float>()(2, 0, 3) = kNaN;
  const Results want = RunReference(made);
  for (double value : Values(want.gradients.gates)) EXPECT_TRUE(std::isfinite(value));
  OnEveryIsa([&] { EXPECT_EQ(CompareWithReference(made, RunFused(made), want), ""); });
}

TEST(AttentionGates, BadOnesAreRefused) {
  Case made = Gated({{5, 5}}, {1, 1}, 2);
  made.problem.head_gates = {1};
  EXPECT_THROW(CheckAttentionProblem(made.problem), Error);
  made.problem.head_gates = {1, static_cast<double>(kNaN)};
  EXPECT_THROW(CheckAttentionProblem(made.problem), Error);
  made.problem.head_gates = {};
  Results results = RunFused(made);
  results.gradients.gates = Tensor::Zeros({2}, DType::kF32, MemoryTag::kOther);
  EXPECT_THROW(AttentionBackward(made.problem, made.inputs, results.outputs, made.out_gradient,
                                 results.gradients),
               Error);
}

TEST(PlantedFaults, GateForgottenInGradients) {
  const Case made = Gated({{16, 16}}, {0.5, 2}, 2);
  const Results want = RunReference(made);
  Case wrong = made;
  wrong.problem.head_gates = {0.5, 2.001};
  EXPECT_NE(CompareWithReference(made, RunFused(wrong), want), "");
  Results results = RunReference(made);
  results.gradients.gates = RunReference(wrong).gradients.gates.Clone(MemoryTag::kOther);
  results.gradients.gates.data<float>()[0] *= 0.5f;
  EXPECT_NE(CompareWithReference(made, results, want), "");
}

}  // namespace
}  // namespace headlight
