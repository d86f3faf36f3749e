// Precision::kBF16 against the reference, by each unit that the machine has.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Case MakeBf16(const Options& options) {
  Case made = MakeCase(options);
  made.problem.precision = Precision::kBF16;
  return made;
}

void ExpectLikeReferenceOnUnits(const Case& made) {
  const Results want = RunReference(made);
  OnEveryUnit([&](Bf16Unit unit) {
    EXPECT_EQ(CompareWithReference(made, RunOnUnit(made, unit), want), "")
        << attention::PlanOnUnit(unit, made.problem).ToString();
  });
}

// About the widths of tiles (16, 32), panels (64) and blocks (256, 128).
const std::vector<Lengths> kLengths = {{1, 1},   {5, 1},   {15, 15}, {16, 16}, {17, 17},
                                       {31, 31}, {33, 33}, {64, 64}, {65, 63}, {127, 127},
                                       {7, 300}, {300, 7}, {0, 3},   {3, 0},   {130, 257}};

TEST(AttentionBf16, AnyLength) {
  Options options = F32(kLengths, 32);
  options.heads = 2;
  options.kv_heads = 2;
  ExpectLikeReferenceOnUnits(MakeBf16(options));
  ExpectLikeReferenceOnUnits(MakeBf16(F32({{513, 513}, {1100, 1100}}, 32)));
}

TEST(AttentionBf16, AnyWidth) {
  for (int64_t dim : {1, 7, 16, 32, 33, 64, 100, 128, 256}) {
    for (int64_t value_dim : {dim, int64_t{1}, int64_t{48}, 257 - dim}) {
      Options options = F32({{40, 40}, {17, 70}, {300, 33}}, dim);
      options.value_dim = value_dim;
      options.heads = 6;
      options.kv_heads = 2;
      ExpectLikeReferenceOnUnits(MakeBf16(options));
    }
  }
}

TEST(AttentionBf16, EveryMask) {
  Options options = F32(kLengths, 24);
  options.heads = 4;
  options.kv_heads = 2;
  for (Mask::Causal causal :
       {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    Case made = MakeBf16(options);
    made.problem.mask.causal = causal;
    ExpectLikeReferenceOnUnits(made);
    Case window = made;
    window.problem.mask.window = Mask::Window{30, 10};
    for (size_t s = 1; s < made.problem.key_offsets.size(); ++s) {
      const int64_t keys = made.problem.key_offsets[s] - made.problem.key_offsets[s - 1];
      window.problem.mask.key_lengths.push_back(s % 3 == 0 ? 0 : keys - keys / 3);
    }
    ExpectLikeReferenceOnUnits(window);
    AddKeep(window, 0.6, 3);
    ExpectLikeReferenceOnUnits(window);
    Case documents = made;
    AddDocuments(documents, 4, 5);
    ExpectLikeReferenceOnUnits(documents);
    for (int64_t block : {7, 16, 64, 100}) {
      Case blocks = made;
      AddBlocks(blocks, 0.5, {block, block, 4, {}, {}}, 7);
      ExpectLikeReferenceOnUnits(blocks);
    }
  }
}

TEST(AttentionBf16, EveryModifier) {
  Options options = F32({{5, 1}, {17, 17}, {31, 33}, {65, 70}, {7, 270}}, 40);
  options.heads = 4;
  options.kv_heads = 1;
  for (int parts = 1; parts < 32; ++parts) {
    Case made = MakeBf16(options);
    AttentionProblem& problem = made.problem;
    if (parts & 1) problem.softcap = 5;
    if (parts & 2) problem.bias.alibi_slopes = AlibiSlopes(4);
    if (parts & 4) AddBias(made, 0.2, 8);
    if (parts & 8) problem.dropout.rate = 0.25;
    if (parts & 16) problem.head_gates = {1, 0, -0.5, 2};
    if (parts % 3 == 0) problem.mask.causal = Mask::Causal::kAlignedToEnd;
    ExpectLikeReferenceOnUnits(made);
  }
}

// A bias of padded rows, which have no lse, may be of any size.
TEST(AttentionBf16, LargeBias) {
  Case made = MakeBf16(F32({{37, 50}}, 16));
  AddBias(made, 0, 8);
  for (int64_t i = 0; i < made.problem.bias.additive.elements(); ++i) {
    made.problem.bias.additive.data<float>()[i] *= 200;
  }
  ExpectLikeReferenceOnUnits(made);
}

TEST(AttentionBf16, RelativePositionsByRoundedOperands) {
  Options options = F32({{40, 40}, {17, 70}}, 24);
  options.heads = options.kv_heads = 2;
  options.relative_max = 20;
  ExpectLikeReferenceOnUnits(MakeBf16(options));
}

TEST(AttentionBf16, LargeScores) {
  Options options = F32({{70, 70}, {300, 300}}, 32);
  options.magnitude = 4;
  ExpectLikeReferenceOnUnits(MakeBf16(options));
}

// The bounds are tight enough to see what a wrong kernel would do.
TEST(AttentionBf16, PlantedFaultsAreSeen) {
  Options options = F32({{9, 9}, {40, 40}}, 32);
  options.magnitude = 0.7;
  const Case made = MakeBf16(options);
  const Results want = RunReference(made);
  const auto expect_seen = [&](const Case& faulty) {
    OnEveryUnit([&](Bf16Unit unit) {
      EXPECT_NE(CompareWithReference(made, RunOnUnit(faulty, unit), want), "");
    });
  };
  Case scale = made;
  scale.problem.scale = 1;
  expect_seen(scale);
  Case near = made;
  near.problem.scale = 1.25 / std::sqrt(32.0);
  expect_seen(near);
  Case masked = made;
  masked.problem.mask.key_lengths = {8, 40};
  expect_seen(masked);
  Case shifted = made;
  shifted.problem.bias.alibi_slopes = {0.01};
  expect_seen(shifted);
}

// Whatever lies in memory around the rows, and in what is masked.
TEST(AttentionBf16, PoisonedSurroundings) {
  for (float bad : {kNaN, kInfinity, -kInfinity, std::numeric_limits<float>::max()}) {
    Options options = F32({{45, 45}, {130, 130}}, 20);
    options.heads = options.kv_heads = 3;
    Case made = MakeBf16(options);
    made.problem.mask.key_lengths = {33, 100};
    Case poisoned = made;
    AttentionInputs& inputs = poisoned.inputs;
    const auto window = [&](Tensor& tensor) {
      Tensor wide = Tensor::Zeros({tensor.size(0), tensor.size(1), tensor.size(2) + 3}, DType::kF32,
                                  MemoryTag::kOther);
      for (int64_t i = 0; i < wide.elements(); ++i) wide.data<float>()[i] = bad;
      const View<float> from = tensor.view<float>(), to = wide.view<float>();
      for (int64_t i = 0; i < from.size(0); ++i) {
        for (int64_t h = 0; h < from.size(1); ++h) {
          for (int64_t c = 0; c < from.size(2); ++c) to(i, h, c + 1) = from(i, h, c);
        }
      }
      tensor = wide.Slice(2, 1, 1 + tensor.size(2));
    };
    for (Tensor* tensor : {&inputs.query, &inputs.key, &inputs.value, &poisoned.out_gradient}) {
      window(*tensor);
    }
    for (int64_t token : {33, 44, 45 + 100, 45 + 129}) {
      for (Tensor* tensor : {&inputs.key, &inputs.value}) {
        const View<float> view = tensor->view<float>();
        for (int64_t c = 0; c < view.size(2); ++c) view(token, 1, c) = bad;
      }
    }
    const Results want = RunReference(made);
    OnEveryUnit([&](Bf16Unit unit) {
      const Results clean = RunOnUnit(made, unit), got = RunOnUnit(poisoned, unit);
      EXPECT_TRUE(SameBits(clean, got)) << Bf16UnitName(unit) << " " << bad;
      EXPECT_EQ(CompareWithReference(made, got, want), "") << Bf16UnitName(unit);
    });
  }
}

// As the f32 kernels (which are tested): what is not finite and not masked reaches those that see
// it, and nobody else.
void ExpectLikeF32OnUnits(const Case& made) {
  Case f32 = made;
  f32.problem.precision = Precision::kF32;
  const Results want = RunFused(f32);
  OnEveryUnit([&](Bf16Unit unit) {
    EXPECT_EQ(CompareWithReference(made, RunOnUnit(made, unit), want), "")
        << attention::PlanOnUnit(unit, made.problem).ToString();
  });
}

TEST(AttentionBf16, NonFiniteInputs) {
  for (float bad : {kNaN, kInfinity, -kInfinity}) {
    for (int which = 0; which < 4; ++which) {
      Case made = MakeBf16(F32({{70, 70}}, 20));
      made.problem.mask.causal = Mask::Causal::kAlignedToStart;
      Tensor* const tensors[] = {&made.inputs.query, &made.inputs.key, &made.inputs.value,
                                 &made.out_gradient};
      tensors[which]->view<float>()(41, 0, 7) = bad;
      ExpectLikeF32OnUnits(made);
      made.problem.dropout.rate = 0.3;
      ExpectLikeF32OnUnits(made);
      if (which < 2) {
        made.problem.nonfinite = NonFiniteScores::kReplaceByZero;
        ExpectLikeF32OnUnits(made);
      }
    }
  }
}

TEST(AttentionBf16, AnyStrides) {
  Options options = F32({{50, 50}, {33, 33}}, 24);
  options.heads = options.kv_heads = 3;
  options.fused_layout = true;
  const Case made = MakeBf16(options);
  ExpectLikeReferenceOnUnits(made);
  Case turned = made;  // columns are not adjacent
  for (Tensor* tensor :
       {&turned.inputs.query, &turned.inputs.key, &turned.inputs.value, &turned.out_gradient}) {
    *tensor = tensor->Transpose(0, 2).Clone(MemoryTag::kOther).Transpose(0, 2);
  }
  OnEveryUnit([&](Bf16Unit unit) {
    const Results a = RunOnUnit(made, unit), b = RunOnUnit(turned, unit);
    EXPECT_TRUE(SameBits(a.outputs.out, b.outputs.out));
    EXPECT_TRUE(SameBits(a.gradients.key, b.gradients.key));
    EXPECT_TRUE(SameBits(a.gradients.value, b.gradients.value));
    EXPECT_EQ(CompareWithReference(made, b, RunReference(made)), "");
  });
}

TEST(AttentionBf16, SameBitsForAnyThreadsAndBatch) {
  Options options = F32({{40, 40}, {3, 70}, {1, 1}, {530, 530}, {65, 30}, {16, 16}}, 24);
  options.heads = 4;
  options.kv_heads = 2;
  Case made = MakeBf16(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  made.problem.dropout.rate = 0.2;
  const int threads = NumThreads();
  OnEveryUnit([&](Bf16Unit unit) {
    SetNumThreads(1);
    const Results together = RunOnUnit(made, unit);
    for (int count : {2, 3, 8}) {
      SetNumThreads(count);
      EXPECT_TRUE(SameBits(together, RunOnUnit(made, unit))) << count;
    }
    for (int64_t s = 0; s < made.problem.batch(); ++s) {
      const size_t at = static_cast<size_t>(s);
      const int64_t q0 = made.problem.query_offsets[at], q1 = made.problem.query_offsets[at + 1];
      const int64_t k0 = made.problem.key_offsets[at], k1 = made.problem.key_offsets[at + 1];
      const Results alone = RunOnUnit(Alone(made, s), unit);
      EXPECT_TRUE(SameBits(together.outputs.out.Slice(0, q0, q1), alone.outputs.out)) << s;
      EXPECT_TRUE(SameBits(together.outputs.lse.Slice(1, q0, q1), alone.outputs.lse)) << s;
      EXPECT_TRUE(SameBits(together.gradients.query.Slice(0, q0, q1), alone.gradients.query)) << s;
      EXPECT_TRUE(SameBits(together.gradients.key.Slice(0, k0, k1), alone.gradients.key)) << s;
      EXPECT_TRUE(SameBits(together.gradients.value.Slice(0, k0, k1), alone.gradients.value)) << s;
    }
  });
  SetNumThreads(threads);
}

TEST(AttentionBf16, RoundedOperandsOnEveryIsa) {
  const Case made = MakeBf16(F32(kLengths, 24));
  const Results want = RunReference(made);
  OnEveryIsa(
      [&] { EXPECT_EQ(CompareWithReference(made, RunOnUnit(made, Bf16Unit::kNone), want), ""); });
}

TEST(AttentionBf16, PlansNameTheUnit) {
  const Case made = MakeBf16(F32({{5, 5}}));
  const std::string isa = IsaName(SelectedIsa());
  OnEveryUnit([&](Bf16Unit unit) {
    const std::string kernel = attention::PlanOnUnit(unit, made.problem).kernel;
    if (unit == Bf16Unit::kNone) {
      EXPECT_EQ(kernel, "fused f32 " + isa + ", operands rounded to bf16");
    } else {
      EXPECT_EQ(kernel, std::string("fused bf16 ") + Bf16UnitName(unit));
    }
  });
  Case relative = made;
  relative.problem.relative.keys = Tensor::Zeros({1, 3, 8}, DType::kF32, MemoryTag::kOther);
  EXPECT_EQ(PlanAttention(relative.problem).kernel,
            "fused f32 " + isa + ", operands rounded to bf16");
}

TEST(AttentionBf16, F64IsRefused) {
  const Case good = MakeCase(Options{});
  ExpectRefused(
      good, [](Case& c) { c.problem.precision = Precision::kBF16; }, ErrorKind::kUsage,
      "precision bf16 needs dtype f32");
}

}  // namespace
}  // namespace headlight
