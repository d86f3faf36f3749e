// The fused kernels against the reference, on every ISA; and faults that this must notice.
#include "headlight/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <bit>

#include "headlight/kernels/attention/attention_compare_test-inl.h"
#include "headlight/kernels/attention/attention_fused.h"

namespace headlight {
namespace {

using namespace attention_test;

TEST(Attention, Exp2WithinItsBound) {
  std::vector<float> x, y;
  for (float value = -126; value <= 1; value += 0.00371f) x.push_back(value);
  y.resize(x.size());
  OnEveryIsa([&] {
    attention::FusedExp2(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp2(static_cast<double>(x[i]));
      ASSERT_NEAR(static_cast<double>(y[i]) / exact, 1, 3e-7) << x[i];
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float payload_nan = std::bit_cast<float>(0x7fc12345u);
    const float special[] = {nan, payload_nan, -payload_nan, -200, -INFINITY, 0, 1, -1};
    float result[8];
    attention::FusedExp2(special, result, 8);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(result[i])) << i;
    EXPECT_EQ(result[3], 0);
    EXPECT_EQ(result[4], 0);
    EXPECT_EQ(result[5], 1);
    EXPECT_EQ(result[6], 2);
    EXPECT_EQ(result[7], 0.5f);
  });
}

TEST(Attention, AwkwardLengthsAndHeadDims) {
  for (int64_t dim : {1, 3, 8, 16, 17, 32}) {
    Options options = F32(AwkwardLengths(), dim);
    options.heads = options.kv_heads = 2;
    ExpectLikeReference(MakeCase(options));
  }
}

TEST(Attention, WideHeads) {
  for (int64_t dim : {40, 64, 100, 128, 256}) {
    ExpectLikeReference(MakeCase(F32({{19, 19}, {40, 70}}, dim)));
  }
}

TEST(Attention, HeadDimDiffersFromValueDim) {
  Options options = F32(AwkwardLengths(), 5);
  options.value_dim = 35;
  ExpectLikeReference(MakeCase(options));
  options.head_dim = 48;
  options.value_dim = 7;
  ExpectLikeReference(MakeCase(options));
}

TEST(Attention, LengthsPastTheKeyBlock) {
  ExpectLikeReference(MakeCase(F32({{70, 513}, {1, 1031}, {530, 7}}, 16)));
  Case causal = MakeCase(F32({{1031, 1031}}, 8));
  causal.problem.mask.causal = Mask::Causal::kAlignedToStart;
  ExpectLikeReference(causal);
  Case window = MakeCase(F32({{600, 1100}}, 8));
  window.problem.mask.window = Mask::Window{20, 3};
  window.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectLikeReference(window);
}

TEST(Attention, SharedKeyHeads) {
  for (int64_t kv_heads : {1, 2}) {
    Options options = F32({{9, 9}, {33, 20}, {3, 17}}, 16);
    options.heads = 6;
    options.kv_heads = kv_heads;
    ExpectLikeReference(MakeCase(options));
  }
}

TEST(Attention, StridedInputsAndOutputs) {
  Options options = F32({{9, 9}, {20, 20}, {33, 33}}, 16);
  options.heads = options.kv_heads = 3;
  options.fused_layout = true;
  const Case fused = MakeCase(options);
  ExpectLikeReference(fused);
  // The same numbers with head_dim outermost: no stride is 1 where the kernels like it.
  Case turned = fused;
  for (Tensor* tensor :
       {&turned.inputs.query, &turned.inputs.key, &turned.inputs.value, &turned.out_gradient}) {
    *tensor = tensor->Transpose(0, 2).Clone(MemoryTag::kOther).Transpose(0, 2);
  }
  ExpectLikeReference(turned);
  Results results = RunFused(turned);
  const auto turn = [](Tensor& tensor) {
    const Tensor zeros = Tensor::Zeros({tensor.size(2), tensor.size(1), tensor.size(0)},
                                       DType::kF32, MemoryTag::kOther);
    tensor = zeros.Transpose(0, 2);
  };
  turn(results.outputs.out);
  turn(results.gradients.query);
  turn(results.gradients.key);
  turn(results.gradients.value);
  AttentionForward(turned.problem, turned.inputs, results.outputs);
  AttentionBackward(turned.problem, turned.inputs, results.outputs, turned.out_gradient,
                    results.gradients);
  EXPECT_EQ(CompareWithReference(turned, results, RunReference(turned)), "");
}

TEST(Attention, Masks) {
  Options options = F32(AwkwardLengths(), 16);
  options.heads = options.kv_heads = 2;
  std::vector<Case> cases;
  for (Mask::Causal causal :
       {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    for (bool window : {false, true}) {
      for (bool lengths : {false, true}) {
        for (bool keep : {false, true}) {
          Case made = MakeCase(options);
          made.problem.mask.causal = causal;
          if (window) made.problem.mask.window = Mask::Window{6, 2};
          for (size_t s = 1; lengths && s < made.problem.key_offsets.size(); ++s) {
            made.problem.mask.key_lengths.push_back(
                (made.problem.key_offsets[s] - made.problem.key_offsets[s - 1]) * 2 / 3);
          }
          if (keep) AddKeep(made, 0.4, 5);
          ExpectLikeReference(made);
        }
      }
    }
  }
}

TEST(Attention, KeepMatrixSharedByHeads) {
  Options options = F32({{9, 9}, {17, 17}}, 16);
  options.heads = options.kv_heads = 4;
  Case made = MakeCase(options);
  AddKeep(made, 0.5, 8);
  made.problem.mask.keep.strides[1] = 0;
  ExpectLikeReference(made);
  made.problem.mask.keep.strides[2] = 0;  // a padding mask
  ExpectLikeReference(made);
}

TEST(Attention, Dropout) {
  Options options = F32(AwkwardLengths(), 16);
  options.heads = options.kv_heads = 2;
  Case made = MakeCase(options);
  made.problem.dropout.rate = 0.3;
  made.problem.dropout.seed = 0x123456789abcdefu;
  made.problem.dropout.step = 7;
  ExpectLikeReference(made);
  made.problem.mask.causal = Mask::Causal::kAlignedToStart;
  ExpectLikeReference(made);
}

TEST(Attention, RelativePositions) {
  for (int64_t longest : {4, 70}) {  // with and without clamping
    Options options = F32(AwkwardLengths(), 16);
    options.heads = options.kv_heads = 2;
    options.value_dim = 24;
    options.relative_max = longest;
    ExpectLikeReference(MakeCase(options));
    options.kv_heads = 1;
    Case mixed = MakeCase(options);
    mixed.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    mixed.problem.mask.window = Mask::Window{9, 0};
    mixed.problem.dropout.rate = 0.2;
    ExpectLikeReference(mixed);
    Case keys_only = MakeCase(options);
    keys_only.problem.relative.values = Tensor();
    ExpectLikeReference(keys_only);
  }
}

TEST(Attention, RelativePositionsPastTheKeyBlock) {
  Options options = F32({{530, 530}, {50, 1031}}, 8);
  options.relative_max = 300;
  ExpectLikeReference(MakeCase(options));
  Case window = MakeCase(options);
  window.problem.mask.window = Mask::Window{40, 40};
  ExpectLikeReference(window);
}

TEST(Attention, LargeScores) {
  // Scores of magnitude 1e4: without subtracting the maximum they overflow.
  Options options = F32({{40, 40}, {5, 600}}, 32);
  options.heads = options.kv_heads = 16;
  options.magnitude = 70;
  options.lengths = {{20, 40}, {3, 1030}};
  Case made = MakeCase(options);
  made.problem.scale = 1 / std::pow(32.0, 0.25);
  ExpectLikeReference(made);
}

TEST(Attention, NonFiniteScoresReplaced) {
  Options options = F32({{9, 9}, {33, 40}}, 16);
  options.heads = options.kv_heads = 2;
  Case made = MakeCase(options);
  made.problem.nonfinite = NonFiniteScores::kReplaceByZero;
  made.inputs.query.view<float>()(3, 1, 2) = NAN;
  made.inputs.key.view<float>()(20, 0, 5) = INFINITY;
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectLikeReference(made);
  EXPECT_GT(RunFused(made).outputs.replaced_scores, 0);
}

// ---- planted faults: what the comparison must reject ----

Case FaultCase() {
  Options options = F32({{8, 8}, {16, 16}}, 8);
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToStart;
  return made;
}

TEST(PlantedFaults, DroppedScale) {
  const Case made = FaultCase();
  Case wrong = made;
  wrong.problem.scale = 1.0;
  EXPECT_NE(CompareWithReference(made, RunFused(wrong), RunReference(made)), "");
}

TEST(PlantedFaults, MaskShiftedByOne) {
  const Case made = FaultCase();
  for (int64_t shift : {-1, 1}) {
    Case wrong = made;
    wrong.problem.mask.causal = Mask::Causal::kNone;
    wrong.problem.mask.window = Mask::Window{100, 1};
    if (shift < 0) {
      wrong.problem.mask = made.problem.mask;
      wrong.problem.mask.key_lengths = {7, 15};  // the last row's last key is lost
    }
    EXPECT_NE(CompareWithReference(made, RunFused(wrong), RunReference(made)), "");
  }
}

// exp(score) / sum exp(score) as written, in float.
void SoftmaxWithoutMaximum(const Case& made, Tensor& out) {
  const View<const float> query = made.inputs.query.view<float>();
  const View<const float> key = made.inputs.key.view<float>();
  const View<const float> value = made.inputs.value.view<float>();
  const float scale = static_cast<float>(made.problem.EffectiveScale());
  for (int64_t i = 0; i < query.size(0); ++i) {
    std::vector<float> sums(static_cast<size_t>(value.size(2)), 0.0f);
    float total = 0;
    for (int64_t j = 0; j < key.size(0); ++j) {
      float score = 0;
      for (int64_t c = 0; c < query.size(2); ++c) score += query(i, 0, c) * key(j, 0, c);
      const float weight = std::exp(score * scale);
      total += weight;
      for (size_t c = 0; c < sums.size(); ++c) {
        sums[c] += weight * value(j, 0, static_cast<int64_t>(c));
      }
    }
    for (size_t c = 0; c < sums.size(); ++c) {
      out.view<float>()(i, 0, static_cast<int64_t>(c)) = sums[c] / total;
    }
  }
}

TEST(PlantedFaults, MissingMaximum) {
  for (double magnitude : {1.0, 60.0}) {
    Options options = F32({{8, 8}}, 8);
    options.magnitude = magnitude;
    const Case made = MakeCase(options);
    const Results want = RunReference(made);
    Results wrong = RunReference(made);
    SoftmaxWithoutMaximum(made, wrong.outputs.out);
    // It is right while scores are small, and breaks at about 1e4.
    EXPECT_EQ(CompareWithReference(made, wrong, want).empty(), magnitude == 1.0);
  }
}

TEST(PlantedFaults, TransposedGradients) {
  const Case made = MakeCase(F32({{8, 8}}, 8));
  const Results want = RunReference(made);
  for (int which = 0; which < 3; ++which) {
    Results wrong = RunReference(made);
    Tensor& gradient = which == 0   ? wrong.gradients.query
                       : which == 1 ? wrong.gradients.key
                                    : wrong.gradients.value;
    gradient = gradient.Transpose(0, 2).Clone(MemoryTag::kOther);
    EXPECT_NE(CompareWithReference(made, wrong, want), "") << which;
  }
}

TEST(PlantedFaults, MissingDropoutFactorAndMeanTerm) {
  Case made = FaultCase();
  made.problem.dropout.rate = 0.25;
  const Results want = RunReference(made);
  Results wrong = RunReference(made);
  const View<float> out = wrong.outputs.out.view<float>();
  for (int64_t i = 0; i < out.size(0); ++i) {
    for (int64_t c = 0; c < out.size(2); ++c) out(i, 0, c) *= 0.75f;
  }
  EXPECT_NE(CompareWithReference(made, wrong, want), "");
  // Without D = dO . O in dS: as if out were 0.
  Results no_mean = RunReference(made);
  AttentionOutputs zeros = RunReference(made).outputs;
  zeros.out.FillZero();
  AttentionBackward(made.problem, made.inputs, zeros, made.out_gradient, no_mean.gradients);
  EXPECT_NE(CompareWithReference(made, no_mean, want), "");
}

}  // namespace
}  // namespace headlight
