// Padded tensors, of either layout, without a copy.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

constexpr float kUntouched = -77;

// The rows of a ragged tensor in a padded one, `filler` after them; [batch, len, heads, dim] over
// memory of the layout.
Tensor Pad(const Tensor& ragged, const std::vector<int64_t>& offsets, int64_t len,
           PaddedLayout layout, float filler) {
  const int64_t batch = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t heads = ragged.size(1), dim = ragged.size(2);
  const bool heads_outside = layout == PaddedLayout::kBatchHeadsLen;
  const Tensor memory =
      Tensor::Zeros(heads_outside ? Shape{batch, heads, len, dim} : Shape{batch, len, heads, dim},
                    DType::kF32, MemoryTag::kOther);
  Tensor padded = PaddedRows(memory, layout);
  const View<const float> from = ragged.view<float>();
  const View<float> to = padded.view<float>();
  for (int64_t s = 0; s < batch; ++s) {
    const int64_t begin = offsets[static_cast<size_t>(s)],
                  end = offsets[static_cast<size_t>(s) + 1];
    for (int64_t i = 0; i < len; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t c = 0; c < dim; ++c) {
          to(s, i, h, c) = begin + i < end ? from(begin + i, h, c) : filler;
        }
      }
    }
  }
  return padded;
}

Case PadCase(const Case& made, PaddedLayout layout) {
  Case padded = made;
  const AttentionProblem& problem = made.problem;
  padded.inputs = {Pad(made.inputs.query, problem.query_offsets, 45, layout, kNaN),
                   Pad(made.inputs.key, problem.key_offsets, 71, layout, kNaN),
                   Pad(made.inputs.value, problem.key_offsets, 72, layout, kNaN)};
  padded.out_gradient = Pad(made.out_gradient, problem.query_offsets, 45, layout, kNaN);
  return padded;
}

// Results in padded tensors that hold kUntouched.
Results PaddedResults(const Case& made, const Case& ragged, PaddedLayout layout) {
  Results results{MakeOutputs(made), MakeGradients(ragged)};
  const AttentionProblem& problem = made.problem;
  const auto fill = [&](const Tensor& like, const std::vector<int64_t>& offsets, int64_t len) {
    Tensor filled = like.Clone(MemoryTag::kOther);
    for (int64_t i = 0; i < filled.elements(); ++i) filled.data<float>()[i] = kUntouched;
    return Pad(filled, offsets, len, layout, kUntouched);
  };
  results.outputs.out = fill(ragged.out_gradient, problem.query_offsets, 44);
  results.gradients.query = fill(ragged.inputs.query, problem.query_offsets, 44);
  results.gradients.key = fill(ragged.inputs.key, problem.key_offsets, 70);
  results.gradients.value = fill(ragged.inputs.value, problem.key_offsets, 73);
  return results;
}

Case RaggedCase() {
  Options options = F32({{40, 40}, {3, 70}, {0, 5}, {44, 0}, {1, 1}}, 16);
  options.heads = 4;
  options.kv_heads = 2;
  options.value_dim = 12;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  made.problem.dropout.rate = 0.1;
  made.problem.head_gates = {1, 0, 0.5, 1};
  return made;
}

TEST(AttentionPadded, BitwiseAsRaggedAndPaddingIsNotTouched) {
  const Case ragged = RaggedCase();
  EXPECT_EQ(OffsetsOf({40, 3, 0, 44, 1}), ragged.problem.query_offsets);
  for (PaddedLayout layout : {PaddedLayout::kBatchLenHeads, PaddedLayout::kBatchHeadsLen}) {
    const Case padded = PadCase(ragged, layout);
    ASSERT_TRUE(PlanAttention(padded.problem).refusals.empty());
    const auto expect = [&](const Results& want, const Results& got) {
      const auto same = [&](const Tensor& a, const std::vector<int64_t>& offsets, const Tensor& b) {
        return SameBits(Pad(a, offsets, b.size(1), layout, kUntouched), b);
      };
      const AttentionProblem& problem = ragged.problem;
      EXPECT_TRUE(same(want.outputs.out, problem.query_offsets, got.outputs.out));
      EXPECT_TRUE(SameBits(want.outputs.lse, got.outputs.lse));
      EXPECT_TRUE(same(want.gradients.query, problem.query_offsets, got.gradients.query));
      EXPECT_TRUE(same(want.gradients.key, problem.key_offsets, got.gradients.key));
      EXPECT_TRUE(same(want.gradients.value, problem.key_offsets, got.gradients.value));
      EXPECT_TRUE(SameBits(want.gradients.gates, got.gradients.gates));
    };
    OnEveryIsa([&] {
      Results got = PaddedResults(padded, ragged, layout);
      AttentionForward(padded.problem, padded.inputs, got.outputs);
      AttentionBackward(padded.problem, padded.inputs, got.outputs, padded.out_gradient,
                        got.gradients);
      expect(RunFused(ragged), got);
    });
    Results got = PaddedResults(padded, ragged, layout);
    AttentionForwardReference(padded.problem, padded.inputs, got.outputs);
    AttentionBackwardReference(padded.problem, padded.inputs, padded.out_gradient, got.gradients);
    expect(RunReference(ragged), got);
    EXPECT_FALSE(FindNonFiniteScore(padded.problem, padded.inputs).has_value());
  }
}

TEST(AttentionPadded, ProbesAreBitwiseThoseOfRagged) {
  const Case ragged = RaggedCase();
  const Case padded = PadCase(ragged, PaddedLayout::kBatchHeadsLen);
  const auto run = [](const Case& made) {
    AttentionOutputs outputs;
    outputs.weights.push_back({1, 2, {}});
    outputs.statistics = HeadStatistics{};
    outputs.statistics->heads = {3};
    AttentionForward(made.problem, made.inputs, outputs);
    return outputs;
  };
  OnEveryIsa([&] {
    const AttentionOutputs a = run(ragged), b = run(padded);
    EXPECT_TRUE(SameBits(a.out, b.out));  // ragged where the caller gives none
    EXPECT_TRUE(SameBits(a.weights[0].weights, b.weights[0].weights));
    EXPECT_TRUE(SameBits(a.statistics->entropy, b.statistics->entropy));
  });
}

TEST(AttentionPadded, BadShapesAreRefused) {
  const Case made = PadCase(RaggedCase(), PaddedLayout::kBatchHeadsLen);
  const auto expect = [&](const std::function<void(Case&)>& spoil, const std::string& part) {
    ExpectRefused(made, spoil, ErrorKind::kShape, part);
  };
  expect([](Case& c) { c.inputs.query = c.inputs.query.Slice(1, 0, 43); },
         "padded query must be f32 [5, >= 44, 4, 16], found f32 [5, 43, 4, 16]");
  expect([](Case& c) { c.inputs.key = c.inputs.key.Slice(0, 0, 4); },
         "padded key must be f32 [5, >= 70, 2, 16], found f32 [4, 71, 2, 16]");
  expect([](Case& c) { c.inputs.value = c.inputs.value.Transpose(1, 2); },
         "padded value must be f32 [5, >= 70, 2, 12]");
  EXPECT_THROW(OffsetsOf({3, -1}), Error);
  EXPECT_THROW(
      PaddedRows(made.out_gradient.Slice(0, 0, 1).Clone(MemoryTag::kOther).Reshape({45, 48}),
                 PaddedLayout::kBatchHeadsLen),
      Error);
}

}  // namespace
}  // namespace headlight
