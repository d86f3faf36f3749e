// Decoding: few queries against a cache, read in place and in splits.
#include <gtest/gtest.h>

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;
using attention::kDecodingKeys;
using attention::kDecodingQueries;

// About the ends of vectors, blocks and splits; and one query too many for decoding.
std::vector<Lengths> CacheLengths() {
  std::vector<Lengths> lengths;
  for (int64_t keys : {1, 2, 5, 16, 17, 63, 511, 513, 1023, 1024, 1025, 2100}) {
    lengths.push_back({1, keys});
  }
  for (int64_t queries = 2; queries <= kDecodingQueries + 1; ++queries) {
    lengths.push_back({queries, queries});
    lengths.push_back({queries, kDecodingKeys + 40});
  }
  return lengths;
}

TEST(AttentionDecoding, LikeReferenceForAnyWidth) {
  for (int64_t dim : {1, 7, 16, 20, 64, 129, 256}) {
    Options options = F32({{1, 1}, {1, 5}, {1, 1100}, {3, 70}}, dim);
    options.value_dim = dim == 256 ? 3 : dim + 1;
    options.heads = 6;
    options.kv_heads = 2;
    ExpectLikeReference(MakeCase(options));
  }
}

TEST(AttentionDecoding, LikeReferenceWithEveryMask) {
  Options options = F32(CacheLengths(), 24);
  options.heads = 4;
  options.kv_heads = 2;
  for (Mask::Causal causal :
       {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    Case made = MakeCase(options);
    made.problem.mask.causal = causal;
    ExpectLikeReference(made);
    made.problem.head_gates = {1, 0, -0.5, 2};
    made.problem.dropout.rate = 0.2;
    for (size_t s = 1; s < made.problem.key_offsets.size(); ++s) {
      const int64_t keys = made.problem.key_offsets[s] - made.problem.key_offsets[s - 1];
      made.problem.mask.key_lengths.push_back(s % 3 == 0 ? 0 : keys - keys / 3);
    }
    ExpectLikeReference(made);
    made.problem.mask.window = Mask::Window{30, 700};
    AddKeep(made, 0.7, 3);
    made.problem.softcap = 3;
    made.problem.bias.alibi_slopes = {0.5, 0.25, 0.1, 0.02};
    ExpectLikeReference(made);
  }
}

// What is masked reaches nobody; what is kept reaches its queries alone.
TEST(AttentionDecoding, NonFiniteValuesAndScores) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float bad : {kNaN, infinity, -infinity}) {
    for (int64_t key : {3, 600, 1099}) {
      Options options = F32({{1, 1100}, {2, 1100}}, 20);
      Case made = MakeCase(options);
      made.inputs.value.view<float>()(key, 0, 19) = bad;
      ExpectLikeReference(made);
      made.problem.mask.key_lengths = {key, key};
      ExpectLikeReference(made);
      made.problem.mask.key_lengths.clear();
      made.problem.nonfinite = NonFiniteScores::kReplaceByZero;
      made.inputs.key.view<float>()(key, 0, 19) = bad;
      ExpectLikeReference(made);
    }
  }
}

// Queries that share keys are computed together; each still sees its own alone.
TEST(AttentionDecoding, NonFiniteValuesThatSomeQueriesOfAGroupMask) {
  Options options = F32({{4, 4}, {3, 1100}}, 20);
  options.heads = 6;
  options.kv_heads = 2;
  for (int64_t key : {1, 3, 1102}) {  // of both sequences' tokens
    Case made = MakeCase(options);
    made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    made.inputs.value.view<float>()(key, 1, 0) = kNaN;
    ExpectLikeReference(made);
  }
}

TEST(AttentionDecoding, ClosingAHeadChangesNoBitOfItsGroup) {
  Options options = F32({{2, 1100}, {1, 70}}, 24);
  options.heads = 5;
  options.kv_heads = 1;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  const Tensor open = RunFused(made).outputs.out;
  for (const std::vector<double>& gates :
       {std::vector<double>{1, 0, 1, 1, 1}, {0, 1, 0, 0, 1}, {0, 0, 0, 0, 1}}) {
    made.problem.head_gates = gates;
    const Tensor out = RunFused(made).outputs.out;
    EXPECT_TRUE(SameBits(out.Slice(1, 4, 5), open.Slice(1, 4, 5)));
  }
}

TEST(AttentionDecoding, AnyStridesOfTheCache) {
  Options options = F32({{1, 1100}}, 20);
  Case made = MakeCase(options);
  const Results want = RunReference(made);
  for (Tensor* tensor : {&made.inputs.key, &made.inputs.value}) {
    *tensor = tensor->Transpose(0, 2).Clone(MemoryTag::kOther).Transpose(0, 2);
  }
  EXPECT_EQ(CompareWithReference(made, RunFused(made), want), "");
}

TEST(AttentionDecoding, IsPlannedForFewQueriesAndManyKeys) {
  const auto decodes = [](int64_t queries, int64_t keys, std::vector<int64_t> key_lengths = {}) {
    Case made = MakeCase(F32({{1, 9}, {queries, keys}}));
    made.problem.mask.key_lengths = std::move(key_lengths);
    return PlanAttention(made.problem).kernel.find("decoding") != std::string::npos;
  };
  EXPECT_TRUE(decodes(2, 9));
  EXPECT_FALSE(decodes(3, 9));
  EXPECT_TRUE(decodes(kDecodingQueries, kDecodingKeys));
  EXPECT_FALSE(decodes(kDecodingQueries + 1, kDecodingKeys));
  // What is past a sequence's keys does not count.
  EXPECT_FALSE(decodes(kDecodingQueries, kDecodingKeys, {9, 60}));
}

TEST(AttentionDecoding, SameBitsForAnyThreads) {
  Options options = F32(CacheLengths(), 32);
  options.heads = 4;
  options.kv_heads = 1;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectSameBitsForAnyThreads(made);
}

}  // namespace
}  // namespace headlight
