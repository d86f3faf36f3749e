// The textbook implementations against the reference and the fused kernels, within the bounds that
// the fused kernels have to keep, on every ISA.
#include "headlight/kernels/attention/attention_implementation.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/memory.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;
using Implementation = AttentionImplementation;

constexpr Implementation kTextbook[] = {Implementation::kNaive, Implementation::kPerHead};

Results RunPass(Implementation implementation, const Case& made) {
  Results results{MakeOutputs(made), MakeGradients(made)};
  AttentionPass pass;
  pass.Forward(implementation, made.problem, made.inputs, results.outputs);
  pass.Backward(made.problem, made.inputs, results.outputs.out, made.out_gradient,
                results.gradients);
  return results;
}

void ExpectTextbooksLikeReference(const Case& made) {
  const Results want = RunReference(made);
  OnEveryIsa([&] {
    for (const Implementation implementation : kTextbook) {
      EXPECT_EQ(CompareWithReference(made, RunPass(implementation, made), want), "")
          << Name(implementation);
    }
  });
}

bool SameResults(const Results& a, const Results& b) {
  const AttentionGradients &x = a.gradients, &y = b.gradients;
  return SameBits(a.outputs.out, b.outputs.out) && SameBits(a.outputs.lse, b.outputs.lse) &&
         SameBits(x.query, y.query) && SameBits(x.key, y.key) && SameBits(x.value, y.value) &&
         SameBits(x.relative_keys, y.relative_keys) &&
         SameBits(x.relative_values, y.relative_values);
}

std::vector<Lengths> AwkwardLengths() {
  std::vector<Lengths> lengths;
  for (int64_t n : {1, 2, 7, 8, 9, 16, 17, 33, 0, 61}) lengths.push_back({n, n});
  lengths.insert(lengths.end(), {{1, 33}, {33, 1}, {7, 64}, {50, 13}, {0, 4}, {3, 0}});
  return lengths;
}

TEST(TextbookAttention, LengthsWidthsAndGroups) {
  for (int64_t dim : {1, 5, 17}) {
    Options options = F32(AwkwardLengths(), dim);
    options.value_dim = dim + 3;
    options.heads = 4;
    for (int64_t kv_heads : {1, 2, 4}) {
      options.kv_heads = kv_heads;
      ExpectTextbooksLikeReference(MakeCase(options));
    }
  }
  ExpectTextbooksLikeReference(
      MakeCase(F32({{130, 70}, {1, 300}}, 300)));  // wider than the fused ones go
}

TEST(TextbookAttention, Masks) {
  Options options = F32(AwkwardLengths(), 8);
  options.heads = options.kv_heads = 2;
  for (Mask::Causal causal :
       {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    for (int parts = 0; parts < 8; ++parts) {  // window, key lengths, keep matrix
      Case made = MakeCase(options);
      made.problem.mask.causal = causal;
      if (parts & 1) made.problem.mask.window = Mask::Window{6, 2};
      for (size_t s = 1; (parts & 2) && s < made.problem.key_offsets.size(); ++s) {
        made.problem.mask.key_lengths.push_back(
            (made.problem.key_offsets[s] - made.problem.key_offsets[s - 1]) * 2 / 3);
      }
      if (parts & 4) AddKeep(made, 0.4, 5);
      ExpectTextbooksLikeReference(made);
    }
  }
  Case far = MakeCase(options);  // sizes past every end must not overflow
  far.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  far.problem.mask.window = Mask::Window{INT64_MAX, INT64_MAX};
  ExpectTextbooksLikeReference(far);
}

TEST(TextbookAttention, DropoutWithTheSameDraws) {
  Options options = F32(AwkwardLengths(), 8);
  options.heads = 4;
  options.kv_heads = 2;
  Case made = MakeCase(options);
  made.problem.dropout.rate = 0.3;
  made.problem.dropout.seed = 0x123456789abcdefu;
  made.problem.dropout.step = 7;
  ExpectTextbooksLikeReference(made);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectTextbooksLikeReference(made);
  Case other = made;
  other.problem.dropout.step = 8;
  EXPECT_NE(CompareWithReference(made, RunPass(Implementation::kNaive, other), RunReference(made)),
            "");
}

TEST(TextbookAttention, RelativePositions) {
  for (int64_t longest : {4, 70}) {  // with and without clamping
    Options options = F32(AwkwardLengths(), 8);
    options.heads = options.kv_heads = 2;
    options.value_dim = 12;
    options.relative_max = longest;
    ExpectTextbooksLikeReference(MakeCase(options));
    options.kv_heads = 1;
    Case mixed = MakeCase(options);
    mixed.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    mixed.problem.mask.window = Mask::Window{9, 0};
    mixed.problem.dropout.rate = 0.2;
    ExpectTextbooksLikeReference(mixed);
    Case keys_only = MakeCase(options);
    keys_only.problem.relative.values = Tensor();
    ExpectTextbooksLikeReference(keys_only);
  }
}

TEST(TextbookAttention, LargeScores) {
  Options options = F32({{20, 40}, {3, 200}}, 32);
  options.heads = options.kv_heads = 4;
  options.magnitude = 70;
  Case made = MakeCase(options);
  made.problem.scale = 1 / std::pow(32.0, 0.25);
  ExpectTextbooksLikeReference(made);
  made.problem.scale = -0.1;  // which the fused kernels leave to the reference
  ExpectTextbooksLikeReference(made);
}

TEST(TextbookAttention, NonFiniteScoresReplaced) {
  Options options = F32({{9, 9}, {33, 40}}, 16);
  options.heads = options.kv_heads = 2;
  Case made = MakeCase(options);
  made.problem.nonfinite = NonFiniteScores::kReplaceByZero;
  made.inputs.query.view<float>()(3, 1, 2) = kNaN;
  made.inputs.key.view<float>()(20, 0, 5) = std::numeric_limits<float>::infinity();
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectTextbooksLikeReference(made);
  EXPECT_GT(RunPass(Implementation::kNaive, made).outputs.replaced_scores, 0);
}

// What is hidden never leaks, and what is not comes out as NaN, forward and backward.
TEST(TextbookAttention, NonFiniteInputs) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float poison : {kNaN, kInfinity}) {
    for (const bool hidden : {true, false}) {
      Options options = F32({{9, 9}, {20, 20}}, 8);
      options.heads = options.kv_heads = 2;
      options.relative_max = 6;
      Case made = MakeCase(options);
      made.problem.dropout.rate = 0.2;
      made.problem.mask.causal = Mask::Causal::kAlignedToStart;
      if (hidden) {
        made.problem.mask.key_lengths = {8, 17};
        for (int64_t c = 0; c < 8; ++c) {  // keys 8 and 17..19 of their sequences
          for (int64_t token : {8, 26, 28}) {
            made.inputs.key.view<float>()(token, 1, c) = poison;
            made.inputs.value.view<float>()(token, 0, c) = poison;
          }
        }
      } else {
        made.inputs.value.view<float>()(4, 0, 3) = poison;
        made.inputs.query.view<float>()(12, 1, 2) = kNaN;
        made.out_gradient.view<float>()(20, 1, 2) = poison;
      }
      ExpectTextbooksLikeReference(made);
      const Results results = RunPass(Implementation::kNaive, made);
      bool finite = true;
      for (const double value : Values(results.outputs.out)) finite &= std::isfinite(value);
      EXPECT_EQ(finite, hidden);
    }
  }
}

TEST(TextbookAttention, Alibi) {
  for (const Mask::Causal causal : {Mask::Causal::kNone, Mask::Causal::kAlignedToEnd}) {
    Options options = F32({{9, 9}, {12, 20}}, 8);
    options.heads = options.kv_heads = 3;
    Case made = MakeCase(options);
    made.problem.bias.alibi_slopes = AlibiSlopes(3);
    made.problem.mask.causal = causal;
    ExpectTextbooksLikeReference(made);
  }
}

TEST(TextbookAttention, RefusesWhatItDoesNotCompute) {
  const auto expect_refused = [](const char* what, const auto& change) {
    Case made = MakeCase(F32({{5, 5}}));
    change(made.problem);
    for (const Implementation implementation : kTextbook) {
      try {
        RunPass(implementation, made);
        ADD_FAILURE() << what;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUsage);
        EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
      }
    }
  };
  expect_refused("document boundaries", [](AttentionProblem& problem) {
    problem.mask.query_documents = problem.mask.key_documents = {0, 0, 1, 1, 1};
  });
  expect_refused("block lists", [](AttentionProblem& problem) {
    problem.mask.blocks = Mask::BlockList{64, 64, 1, {0, 1}, {0}};
  });
  expect_refused("a softcap", [](AttentionProblem& problem) { problem.softcap = 5; });
  expect_refused("an additive bias", [](AttentionProblem& problem) {
    problem.bias.additive =
        Tensor::Zeros({1, problem.heads, 5, 5}, problem.dtype, MemoryTag::kOther);
  });
  expect_refused("gates", [](AttentionProblem& problem) {
    problem.head_gates.assign(static_cast<size_t>(problem.heads), 0.5);
  });
  Case padded = MakeCase(F32({{5, 5}}));
  padded.inputs.key = padded.inputs.key.Reshape({1, 5, padded.problem.kv_heads, 8});
  for (const Implementation implementation : kTextbook) {
    EXPECT_THROW(RunPass(implementation, padded), Error);
  }
}

TEST(TextbookAttention, QueriesWithNothingToAttendTo) {
  Case made = MakeCase(F32({{5, 5}, {3, 3}}));
  AddKeep(made, 1, 1);
  for (int64_t j = 0; j < 5; ++j) made.keep[static_cast<size_t>(2 * 5 + j)] = 0;
  made.problem.mask.keep.data = made.keep.data();
  for (int64_t c = 0; c < 8; ++c) {  // of the query that sees nothing
    made.inputs.query.view<float>()(2, 0, c) = kNaN;
    made.out_gradient.view<float>()(2, 0, c) = kNaN;
  }
  ExpectTextbooksLikeReference(made);
  const Results results = RunPass(Implementation::kPerHead, made);
  for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(results.outputs.out.view<float>()(2, 0, c), 0);
  EXPECT_EQ(results.outputs.lse.view<float>()(0, 2), -std::numeric_limits<float>::infinity());
}

TEST(TextbookAttention, F64IsTheReferenceUpToRounding) {
  Options options;
  options.lengths = AwkwardLengths();
  options.heads = 4;
  options.kv_heads = 2;
  options.relative_max = 5;
  Case made = MakeCase(options);
  made.problem.dropout.rate = 0.2;
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  const Results want = RunReference(made);
  for (const Implementation implementation : kTextbook) {
    const Results got = RunPass(implementation, made);
    // Sums of at most 64 keys and 61 queries of magnitude 10, over 16 sequences: 1e3 * 2^-52.
    const double tolerance = 1e-12;
    EXPECT_EQ(Difference("out", got.outputs.out, want.outputs.out, tolerance), "");
    EXPECT_EQ(Difference("lse", got.outputs.lse, want.outputs.lse, tolerance), "");
    EXPECT_EQ(Difference("query", got.gradients.query, want.gradients.query, tolerance), "");
    EXPECT_EQ(Difference("key", got.gradients.key, want.gradients.key, tolerance), "");
    EXPECT_EQ(Difference("value", got.gradients.value, want.gradients.value, tolerance), "");
    EXPECT_EQ(
        Difference("table", got.gradients.relative_keys, want.gradients.relative_keys, tolerance),
        "");
    EXPECT_EQ(Difference("table", got.gradients.relative_values, want.gradients.relative_values,
                         tolerance),
              "");
  }
}

Case SameBitsCase() {
  Options options = F32({{40, 40}, {1, 1}, {0, 0}, {200, 200}, {65, 30}, {16, 16}}, 24);
  options.heads = 4;
  options.kv_heads = 2;
  options.relative_max = 20;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  made.problem.dropout.rate = 0.2;
  return made;
}

TEST(TextbookAttention, SameBitsForAnyNumberOfThreadsAndAnyRun) {
  const int threads = NumThreads();
  for (const bool tables : {true, false}) {
    Case made = SameBitsCase();
    if (!tables) made.problem.relative = {};
    for (const Implementation implementation : kTextbook) {
      SetNumThreads(1);
      const Results first = RunPass(implementation, made);
      for (int count : {1, 2, 3, 8}) {
        SetNumThreads(count);
        EXPECT_TRUE(SameResults(RunPass(implementation, made), first)) << count;
      }
    }
  }
  SetNumThreads(threads);
}

TEST(TextbookAttention, SameBitsAloneAndInABatch) {
  const Case made = SameBitsCase();
  const int64_t first = 41, last = 241;  // the sequence of 200
  Case alone = made;
  alone.problem.query_offsets = alone.problem.key_offsets = {0, last - first};
  alone.problem.dropout.sample_ids = {made.problem.dropout.sample_ids[3]};
  alone.inputs = {made.inputs.query.Slice(0, first, last), made.inputs.key.Slice(0, first, last),
                  made.inputs.value.Slice(0, first, last)};
  alone.out_gradient = made.out_gradient.Slice(0, first, last);
  for (const Implementation implementation : kTextbook) {
    const Results together = RunPass(implementation, made), own = RunPass(implementation, alone);
    EXPECT_TRUE(SameBits(together.outputs.out.Slice(0, first, last), own.outputs.out));
    EXPECT_TRUE(SameBits(together.gradients.query.Slice(0, first, last), own.gradients.query));
    EXPECT_TRUE(SameBits(together.gradients.key.Slice(0, first, last), own.gradients.key));
    EXPECT_TRUE(SameBits(together.gradients.value.Slice(0, first, last), own.gradients.value));
  }
}

// One AttentionPass serves problems of any size in turn, and every implementation.
TEST(AttentionPass, IsUsedAgain) {
  AttentionPass pass;
  for (const Implementation implementation :
       {Implementation::kNaive, Implementation::kFused, Implementation::kPerHead}) {
    for (const Lengths lengths : {Lengths{30, 30}, {5, 5}, {0, 0}, {40, 20}}) {
      const Case made = MakeCase(F32({lengths}));
      Results results{MakeOutputs(made), MakeGradients(made)};
      pass.Forward(implementation, made.problem, made.inputs, results.outputs);
      pass.Backward(made.problem, made.inputs, results.outputs.out, made.out_gradient,
                    results.gradients);
      EXPECT_EQ(CompareWithReference(made, results, RunReference(made)), "");
    }
  }
}

// Batches of nothing, of queries without keys and of keys without queries; tensors may then have no
// buffer.
TEST(AttentionPass, NothingToAttendWithOrTo) {
  for (const auto& lengths : std::vector<std::vector<Lengths>>{
           {}, {{0, 0}}, {{3, 0}}, {{0, 3}}, {{0, 0}, {3, 0}, {0, 2}}}) {
    Case made = MakeCase(F32(lengths));
    for (Tensor* tensor : {&made.inputs.query, &made.inputs.key, &made.inputs.value}) {
      if (tensor->elements() == 0) *tensor = Tensor();
    }
    if (made.out_gradient.elements() == 0) made.out_gradient = Tensor();
    const Results want = RunReference(made);
    for (const Implementation implementation : kTextbook) {
      EXPECT_EQ(CompareWithReference(made, RunPass(implementation, made), want), "");
    }
  }
}

TEST(AttentionPass, FusedIsBitwiseTheFusedKernels) {
  const Case made = SameBitsCase();
  EXPECT_TRUE(SameResults(RunPass(Implementation::kFused, made), RunFused(made)));
  // And so it is where the caller wants no lse.
  Results results{{}, MakeGradients(made)};
  AttentionPass pass;
  pass.Forward(Implementation::kFused, made.problem, made.inputs, results.outputs);
  pass.Backward(made.problem, made.inputs, results.outputs.out, made.out_gradient,
                results.gradients);
  EXPECT_TRUE(SameBits(results.gradients.key, RunFused(made).gradients.key));
}

TEST(AttentionPass, TextbookMatricesAreActivations) {
  Options options = F32({{100, 100}, {40, 60}});
  options.heads = options.kv_heads = 3;
  const Case made = MakeCase(options);
  const auto growth = [&](Implementation implementation, double rate) {
    Case dropping = made;
    dropping.problem.dropout.rate = rate;
    AttentionOutputs outputs = MakeOutputs(made);
    outputs.out = Tensor::Zeros(made.out_gradient.shape(), DType::kF32, MemoryTag::kOther);
    const int64_t before = MemoryOf(MemoryTag::kActivations).now;
    AttentionPass pass;
    pass.Forward(implementation, dropping.problem, made.inputs, outputs);
    return MemoryOf(MemoryTag::kActivations).now - before;
  };
  constexpr int64_t kScores = 3 * (100 * 100 + 40 * 60), kSlack = 4096;
  EXPECT_LE(growth(Implementation::kFused, 0), 3 * 140 * 4 + kSlack);
  for (const Implementation implementation : kTextbook) {
    EXPECT_GE(growth(implementation, 0), kScores * 5);  // weights and flags
    EXPECT_LE(growth(implementation, 0), kScores * 5 + kSlack);
    EXPECT_GE(growth(implementation, 0.1), kScores * 9);
  }
}

TEST(AttentionPass, ProbesAreThoseOfTheFusedKernels) {
  Options options = F32({{20, 20}, {7, 7}});
  options.heads = options.kv_heads = 3;
  const Case made = MakeCase(options);
  const auto ask = [] {
    AttentionOutputs outputs;
    outputs.weights.push_back({1, 2, {}});
    outputs.statistics.emplace();
    outputs.statistics->heads = {0, 2};
    return outputs;
  };
  AttentionOutputs want = ask();
  AttentionForward(made.problem, made.inputs, want);
  for (const Implementation implementation : kTextbook) {
    AttentionOutputs got = ask(), plain;
    AttentionPass pass;
    pass.Forward(implementation, made.problem, made.inputs, got);
    EXPECT_TRUE(SameBits(got.weights[0].weights, want.weights[0].weights));
    EXPECT_TRUE(SameBits(got.statistics->entropy, want.statistics->entropy));
    pass.Forward(implementation, made.problem, made.inputs, plain);
    EXPECT_TRUE(SameBits(got.out, plain.out));
  }
}

TEST(AttentionPass, NamesAndRefusals) {
  Case made = MakeCase(F32({{5, 5}}));
  EXPECT_EQ(AttentionKernelName(Implementation::kFused, made.problem),
            PlanAttention(made.problem).kernel);
  EXPECT_EQ(AttentionKernelName(Implementation::kNaive, made.problem), "naive f32");
  EXPECT_EQ(AttentionKernelName(Implementation::kPerHead, made.problem), "per-head f32");
  made.inputs.key = made.inputs.key.Transpose(0, 2).Clone(MemoryTag::kOther).Transpose(0, 2);
  for (const Implementation implementation : kTextbook) {
    try {
      RunPass(implementation, made);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kShape);
      EXPECT_EQ(std::string(error.what()), std::string("attention ") + Name(implementation) +
                                               ": columns of key must be adjacent, found stride 5");
    }
    Case bad = MakeCase(F32({{5, 5}}));
    bad.problem.kv_heads = 2;
    EXPECT_THROW(RunPass(implementation, bad), Error);
  }
}

// A fault in the textbook's own helpers would show: the comparison rejects a mask and a scale that
// are off.
TEST(AttentionPass, PlantedFaultsAreRejected) {
  Case made = MakeCase(F32({{8, 8}, {16, 16}}));
  made.problem.mask.window = Mask::Window{3, 1};
  const Results want = RunReference(made);
  for (const Implementation implementation : kTextbook) {
    Case wrong = made;
    wrong.problem.mask.window = Mask::Window{3, 2};
    EXPECT_NE(CompareWithReference(made, RunPass(implementation, wrong), want), "");
    wrong = made;
    wrong.problem.scale = 0.36;  // not 1 / sqrt(8)
    EXPECT_NE(CompareWithReference(made, RunPass(implementation, wrong), want), "");
  }
}

}  // namespace
}  // namespace headlight
