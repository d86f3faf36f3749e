// Softcap, ALiBi and additive biases.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"
#include "headlight/kernels/attention/attention_gradient_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum Part : int { kSoftcap = 1, kAlibi = 2, kAdditive = 4, kAll = 7 };

void Add(Case& made, int parts, double masked) {
  if ((parts & kSoftcap) != 0) made.problem.softcap = 1.5;
  if ((parts & kAlibi) != 0) made.problem.bias.alibi_slopes = AlibiSlopes(made.problem.heads);
  if ((parts & kAdditive) != 0) AddBias(made, masked, 7);
}

TEST(AttentionReference, GradientsOfSoftcapAndBias) {
  for (int parts = 1; parts <= kAll; ++parts) {
    Options options = SmallOptions();
    options.relative_max = 3;
    options.magnitude = 1.5;
    Case made = MakeCase(options);
    Add(made, parts, 0.2);
    made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    ExpectAllGradients(made);
  }
}

TEST(AttentionBias, LikeReferenceWithEveryMask) {
  Options options = F32(AwkwardLengths(), 16);
  options.heads = 3;  // no power of two
  options.kv_heads = 1;
  options.magnitude = 2;
  for (int parts : {kSoftcap + kAlibi, kAlibi + 0, kAdditive + 0, kAll + 0}) {
    for (Mask::Causal causal :
         {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
      Case made = MakeCase(options);
      Add(made, parts, 0);
      made.problem.mask.causal = causal;
      ExpectLikeReference(made);
      Add(made, parts, 0.3);
      made.problem.mask.window = Mask::Window{9, 3};
      AddKeep(made, 0.7, 3);
      AddDocuments(made, 2, 4);
      made.problem.dropout.rate = 0.2;
      ExpectLikeReference(made);
    }
  }
}

TEST(AttentionBias, PastTheKeyBlockWithRelativePositions) {
  Options options = F32({{50, 1031}, {530, 530}, {0, 3}, {3, 0}}, 8);
  for (int parts : {kSoftcap, kAlibi, kAdditive, kAll}) {
    Case made = MakeCase(options);
    Add(made, parts, 0.1);
    ExpectLikeReference(made);
  }
  options.lengths = {{50, 80}};
  options.relative_max = 30;
  Case made = MakeCase(options);
  Add(made, kAll, 0.1);
  ExpectLikeReference(made);
}

TEST(AttentionBias, AnyStridesOfBiasAndItsGradient) {
  Options options = F32({{40, 40}, {17, 33}}, 16);
  options.heads = options.kv_heads = 2;
  Case made = MakeCase(options);
  Add(made, kAdditive, 0.2);
  Tensor& bias = made.problem.bias.additive;
  bias = bias.Transpose(2, 3).Clone(MemoryTag::kOther).Transpose(2, 3);
  ExpectLikeReference(made);
  // One row of biases for all queries and heads, one column for all keys.
  for (int axis : {2, 3}) {
    Case repeated = made;
    repeated.problem.bias.additive =
        bias.Slice(1, 0, 1).Repeat(1, 2).Slice(axis, 3, 4).Repeat(axis, 40);
    ExpectLikeReference(repeated);
  }
  Results turned = RunFused(made);
  turned.gradients.bias = turned.gradients.bias.Transpose(2, 3).Clone(MemoryTag::kOther);
  turned.gradients.bias = turned.gradients.bias.Transpose(2, 3);
  AttentionBackward(made.problem, made.inputs, turned.outputs, made.out_gradient, turned.gradients);
  EXPECT_EQ(CompareWithReference(made, turned, RunReference(made)), "");
}

// A boolean mask and an additive one of 0 and -inf give the same bits, and neither leaks NaN.
TEST(AttentionBias, MinusInfinityIsBitwiseAKeepMatrix) {
  for (bool poison : {false, true}) {
    Case keep = MakeCase(F32({{45, 70}, {5, 5}}, 12));
    AddKeep(keep, 0.6, 2);
    std::fill_n(keep.keep.begin() + 70, 70, uint8_t{0});  // a row with nothing to attend to
    for (size_t i = 0; i < 45; ++i) keep.keep[i * 70 + 20] = 0;
    keep.problem.mask.keep.data = keep.keep.data();
    if (poison) {
      for (int64_t c = 0; c < 12; ++c) {
        keep.inputs.key.view<float>()(20, 0, c) = kNaN;
        keep.inputs.value.view<float>()(20, 0, c) = kInfinity;
      }
    }
    Case additive = keep;
    additive.problem.mask.keep = {};
    AddBias(additive, 0, 1);
    for (size_t i = 0; i < keep.keep.size(); ++i) {
      additive.problem.bias.additive.data<float>()[i] = keep.keep[i] != 0 ? 0 : -kInfinity;
    }
    OnEveryIsa([&] {
      Results by_keep = RunFused(keep), by_bias = RunFused(additive);
      EXPECT_EQ(LargestMagnitude(Values(by_bias.outputs.out.Slice(0, 1, 2))), 0);
      EXPECT_EQ(by_bias.outputs.lse.view<float>()(0, 1), -kInfinity);
      for (double value : Values(by_bias.gradients.bias)) ASSERT_TRUE(std::isfinite(value));
      by_bias.gradients.bias = Tensor();
      EXPECT_TRUE(SameBits(by_keep, by_bias));
    });
  }
}

TEST(AttentionBias, NonFiniteBiasComesOutAsNaNOrIsReplaced) {
  for (float value : {kNaN, kInfinity}) {
    Case made = MakeCase(F32({{20, 20}}, 8));
    AddBias(made, 0, 3);
    made.problem.bias.additive.view<float>()(0, 0, 4, 7) = value;
    OnEveryIsa([&] {
      const Results got = RunFused(made);
      EXPECT_TRUE(std::isnan(got.outputs.out.view<float>()(4, 0, 0)));
      EXPECT_TRUE(std::isfinite(got.outputs.out.view<float>()(3, 0, 0)));
    });
    const auto found = FindNonFiniteScore(made.problem, made.inputs);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->query, 4);
    EXPECT_EQ(found->key, 7);
    made.problem.nonfinite = NonFiniteScores::kReplaceByZero;
    made.problem.softcap = 2;
    ExpectLikeReference(made);
    EXPECT_EQ(RunFused(made).outputs.replaced_scores, 1);
  }
}

TEST(AttentionBias, SoftcapKeepsNaNAndBoundsInfinity) {
  Case made = MakeCase(F32({{20, 20}}, 8));
  made.problem.softcap = 3;
  made.inputs.query.view<float>()(4, 0, 0) = kNaN;
  OnEveryIsa([&] {
    const Results got = RunFused(made);
    EXPECT_TRUE(std::isnan(got.outputs.out.view<float>()(4, 0, 0)));
    EXPECT_TRUE(std::isfinite(got.outputs.out.view<float>()(3, 0, 0)));
  });
  // cap tanh(inf / cap) = cap: the one key of infinite score weighs e^3 against e^0.
  Case infinite = MakeCase(F32({{1, 3}}, 8));
  infinite.problem.softcap = 3;
  infinite.inputs.query.FillZero();
  infinite.inputs.query.view<float>()(0, 0, 0) = 1;
  infinite.inputs.key.FillZero();
  infinite.inputs.key.view<float>()(1, 0, 0) = kInfinity;
  EXPECT_FALSE(FindNonFiniteScore(infinite.problem, infinite.inputs).has_value());
  OnEveryIsa([&] {
    EXPECT_NEAR(RunFused(infinite).outputs.lse.view<float>()(0, 0), std::log(2 + std::exp(3.0)),
                1e-6);
  });
}

TEST(AttentionBias, ProbesSeeModifiedScores) {
  Options options = F32({{20, 20}, {37, 601}}, 16);
  options.heads = options.kv_heads = 3;
  Case made = MakeCase(options);
  Add(made, kAll, 0.2);
  AttentionOutputs asked;
  asked.weights.push_back({1, 2, {}});
  asked.statistics = HeadStatistics{};
  asked.statistics->heads = {0, 2};
  ExpectProbesLikeReference(made, asked);
}

// The values of the paper's reference code.
TEST(AttentionBias, AlibiSlopesOfAnyNumberOfHeads) {
  EXPECT_EQ(AlibiSlopes(8), (std::vector<double>{1 / 2.0, 1 / 4.0, 1 / 8.0, 1 / 16.0, 1 / 32.0,
                                                 1 / 64.0, 1 / 128.0, 1 / 256.0}));
  EXPECT_EQ(AlibiSlopes(1), std::vector<double>{1 / 256.0});
  EXPECT_EQ(AlibiSlopes(2), (std::vector<double>{1 / 16.0, 1 / 256.0}));
  EXPECT_EQ(AlibiSlopes(3), (std::vector<double>{1 / 16.0, 1 / 256.0, 1 / 4.0}));
  const std::vector<double> twelve = AlibiSlopes(12);
  ASSERT_EQ(twelve.size(), 12u);
  for (size_t h = 0; h < 8; ++h) EXPECT_EQ(twelve[h], AlibiSlopes(8)[h]);
  for (size_t h = 0; h < 4; ++h) EXPECT_EQ(twelve[8 + h], AlibiSlopes(16)[2 * h]);
  EXPECT_THROW(AlibiSlopes(0), Error);
}

// Zero scores: weights are softmax(-slope |i - j|), with i at the end of the keys when causal masks
// are aligned there.
TEST(AttentionBias, AlibiCountsFromTheQuerysPlace) {
  Case made = MakeCase(F32({{1, 4}}));
  made.inputs.query.FillZero();
  made.problem.bias.alibi_slopes = {std::log(2.0)};
  for (bool to_end : {false, true}) {
    if (to_end) made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    OnEveryIsa([&] {
      AttentionOutputs outputs;
      outputs.weights.push_back({0, 0, {}});
      AttentionForward(made.problem, made.inputs, outputs);
      const View<const float> weights = outputs.weights[0].weights.view<float>();
      for (int64_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(weights(0, j), std::exp2(-static_cast<double>(to_end ? 3 - j : j)) / 1.875,
                    1e-6);
      }
    });
  }
}

TEST(AttentionBias, BadOnesAreRefused) {
  const auto expect = [&](const std::function<void(Case&)>& spoil, ErrorKind kind,
                          const std::string& part) {
    ExpectRefused(MakeCase(F32({{5, 5}})), spoil, kind, part);
  };
  using K = ErrorKind;
  expect([](Case& c) { c.problem.softcap = 0; }, K::kUsage, "softcap must be positive");
  expect([](Case& c) { c.problem.softcap = kNaN; }, K::kUsage, "softcap must be positive");
  expect(
      [](Case& c) {
        c.problem.bias.alibi_slopes = {1, 2};
      },
      K::kShape, "alibi_slopes must be 1");
  expect([](Case& c) { c.problem.bias.alibi_slopes = {kNaN}; }, K::kUsage, "must be finite");
  expect(
      [](Case& c) {
        c.problem.bias.additive = Tensor::Zeros({1, 1, 5, 4}, DType::kF32, MemoryTag::kOther);
      },
      K::kShape, "bias must be [1, 1, >= 5, >= 5], found [1, 1, 5, 4]");
  expect(
      [](Case& c) {
        c.problem.bias.additive = Tensor::Zeros({1, 1, 5, 5}, DType::kF64, MemoryTag::kOther);
      },
      K::kShape, "bias must be f32");
  const Case made = MakeCase(F32({{5, 5}}));
  Results results = RunFused(made);
  results.gradients.bias = Tensor::Zeros({1, 1, 5, 5}, DType::kF32, MemoryTag::kOther);
  EXPECT_THROW(AttentionBackward(made.problem, made.inputs, results.outputs, made.out_gradient,
                                 results.gradients),
               Error);
}

TEST(AttentionPlans, NameWhatActsOnScoresAndRefuseExtremeScales) {
  Case made = MakeCase(F32({{5, 5}}));
  Add(made, kAll, 0);
  EXPECT_NE(PlanAttention(made.problem).ToString().find("with softcap, ALiBi, additive bias"),
            std::string::npos)
      << PlanAttention(made.problem).ToString();
  made.problem.scale = 1e-20;
  EXPECT_NE(PlanAttention(made.problem).ToString().find("scale is 1e-20 and softcap 1.5"),
            std::string::npos);
  EXPECT_EQ(CompareWithReference(made, RunFused(made), RunReference(made)), "");
}

TEST(PlantedFaults, SoftcapAndBiasWrongInOrderSlopeOrSign) {
  Options options = F32({{16, 16}}, 8);
  options.heads = options.kv_heads = 2;
  options.magnitude = 2;
  Case made = MakeCase(options);
  Add(made, kAll, 0.1);
  const Results want = RunReference(made);
  const auto expect_noticed = [&](const std::function<void(Case&)>& spoil) {
    Case wrong = made;
    spoil(wrong);
    EXPECT_NE(CompareWithReference(made, RunFused(wrong), want), "");
  };
  expect_noticed([](Case& c) { c.problem.softcap = 1.6; });
  expect_noticed([](Case& c) { c.problem.softcap.reset(); });
  expect_noticed(
      [](Case& c) { std::swap(c.problem.bias.alibi_slopes[0], c.problem.bias.alibi_slopes[1]); });
  expect_noticed([](Case& c) { c.problem.bias.alibi_slopes[0] *= -1; });
  expect_noticed([](Case& c) {
    Tensor& bias = c.problem.bias.additive;
    bias = bias.Transpose(2, 3);
  });
  // A gradient that forgets the slope of softcap.
  Results wrong = RunReference(made);
  Case uncapped = made;
  uncapped.problem.softcap.reset();
  AttentionBackwardReference(uncapped.problem, uncapped.inputs, uncapped.out_gradient,
                             wrong.gradients);
  EXPECT_NE(CompareWithReference(made, wrong, want), "");
}

}  // namespace
}  // namespace headlight
