// Documents: attention within segments of one row.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

TEST(AttentionDocuments, LikeReferenceWithEveryOtherMask) {
  Options options = F32(AwkwardLengths(), 16);
  options.heads = 4;
  options.kv_heads = 2;
  uint64_t seed = 1;
  for (Mask::Causal causal :
       {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    for (bool window : {false, true}) {
      for (bool lengths_and_keep : {false, true}) {
        Case made = MakeCase(options);
        AddDocuments(made, 4, ++seed);
        made.problem.mask.causal = causal;
        if (window) made.problem.mask.window = Mask::Window{6, 2};
        for (size_t s = 1; lengths_and_keep && s < made.problem.key_offsets.size(); ++s) {
          made.problem.mask.key_lengths.push_back(
              (made.problem.key_offsets[s] - made.problem.key_offsets[s - 1]) * 2 / 3);
        }
        if (lengths_and_keep) AddKeep(made, 0.5, seed);
        ExpectLikeReference(made);
      }
    }
  }
}

TEST(AttentionDocuments, PastTheKeyBlockWithDropoutAndRelativePositions) {
  Options options = F32({{1100, 1100}, {70, 1031}, {0, 5}, {5, 0}}, 8);
  for (int64_t documents : {1, 2, 5, 400}) {
    Case made = MakeCase(options);
    AddDocuments(made, documents, 3);
    ExpectLikeReference(made);
  }
  options.lengths = {{600, 600}, {50, 80}};
  options.relative_max = 30;
  Case made = MakeCase(options);
  AddDocuments(made, 5, 4);
  made.problem.dropout.rate = 0.2;
  ExpectLikeReference(made);
}

// Queries whose document has no keys, between others whose keys share a tile of the sums over
// queries: what another problem left in the workspace must not be taken for their weights.
TEST(AttentionDocuments, QueriesWithoutKeysBetweenOthers) {
  Options options = F32({{128, 20}}, 16);
  options.magnitude = 3;
  Case before = MakeCase(options);
  for (int64_t rows : {12, 32}) {
    options.magnitude = 1;
    Case made = MakeCase(options);
    Mask& mask = made.problem.mask;
    for (int64_t i = 0; i < 128; ++i) {
      mask.query_documents.push_back(i < rows ? 0 : i < 3 * rows ? 1 : 2);
    }
    for (int64_t j = 0; j < 20; ++j) mask.key_documents.push_back(j < 5 ? 0 : 2);
    const Results want = RunReference(made);
    OnEveryIsa([&] {
      RunFused(before);
      EXPECT_EQ(CompareWithReference(made, RunFused(made), want), "");
    });
    made.problem.precision = before.problem.precision = Precision::kBF16;
    OnEveryUnit([&](Bf16Unit unit) {
      RunOnUnit(before, unit);
      EXPECT_EQ(CompareWithReference(made, RunOnUnit(made, unit), want), "");
    });
    before.problem.precision = Precision::kF32;
  }
}

// One document is no mask, and one document per sequence is a batch of sequences: a row of packed
// documents gives each document the numbers that it has alone.
TEST(AttentionDocuments, OneDocumentIsBitwiseNoMask) {
  const Case plain = MakeCase(F32({{61, 61}, {530, 530}}, 24));
  Case one = plain;
  one.problem.mask.query_documents.assign(591, 7);
  one.problem.mask.key_documents.assign(591, 7);
  OnEveryIsa([&] { EXPECT_TRUE(SameBits(RunFused(plain), RunFused(one))); });
}

TEST(AttentionDocuments, PackedRowLikeItsDocumentsAlone) {
  const std::vector<Lengths> lengths = {{40, 40}, {1, 1}, {530, 530}, {65, 65}};
  const Case apart = MakeCase(F32(lengths, 24));
  Case packed = apart;
  packed.problem.query_offsets = packed.problem.key_offsets = {0, 636};
  for (size_t s = 0; s < lengths.size(); ++s) {
    packed.problem.mask.query_documents.insert(packed.problem.mask.query_documents.end(),
                                               static_cast<size_t>(lengths[s].queries),
                                               static_cast<int32_t>(s));
  }
  packed.problem.mask.key_documents = packed.problem.mask.query_documents;
  const Results want = RunReference(apart);
  OnEveryIsa([&] { EXPECT_EQ(CompareWithReference(packed, RunFused(packed), want), ""); });
}

// NaN in one document reaches no other, forward and backward.
TEST(AttentionDocuments, PoisonStaysInItsDocument) {
  Case clean = MakeCase(F32({{90, 90}}, 12));
  clean.problem.mask.query_documents.assign(90, 0);
  std::fill_n(clean.problem.mask.query_documents.begin() + 37, 53, 1);
  clean.problem.mask.key_documents = clean.problem.mask.query_documents;
  Case dirty = clean;
  for (Tensor* tensor :
       {&dirty.inputs.query, &dirty.inputs.key, &dirty.inputs.value, &dirty.out_gradient}) {
    *tensor = tensor->Clone(MemoryTag::kOther);
    for (int64_t i = 37; i < 90; ++i) tensor->view<float>()(i, 0, 3) = kNaN;
  }
  OnEveryIsa([&] {
    const Results a = RunFused(clean), b = RunFused(dirty);
    EXPECT_TRUE(SameBits(a.outputs.out.Slice(0, 0, 37), b.outputs.out.Slice(0, 0, 37)));
    EXPECT_TRUE(SameBits(a.gradients.query.Slice(0, 0, 37), b.gradients.query.Slice(0, 0, 37)));
    EXPECT_TRUE(SameBits(a.gradients.key.Slice(0, 0, 37), b.gradients.key.Slice(0, 0, 37)));
    EXPECT_TRUE(SameBits(a.gradients.value.Slice(0, 0, 37), b.gradients.value.Slice(0, 0, 37)));
    EXPECT_TRUE(std::isnan(b.outputs.out.view<float>()(40, 0, 0)));
  });
  const auto found = FindNonFiniteScore(dirty.problem, dirty.inputs);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->query, 37);
  EXPECT_EQ(found->key, 37);
}

TEST(AttentionDocuments, SameBitsForAnyThreadsAndStatisticsLikeReference) {
  Case made = MakeCase(F32({{700, 700}, {30, 30}}, 16));
  AddDocuments(made, 9, 6);
  ExpectSameBitsForAnyThreads(made);
  AttentionOutputs asked;
  asked.weights.push_back({0, 0, {}});
  asked.statistics = HeadStatistics{};
  asked.statistics->heads = {0};
  ExpectProbesLikeReference(made, asked);
}

// 16 documents need a sixteenth of the scores; masking without skipping would take all the time.
TEST(AttentionDocuments, WorkIsProportionalToTheKeptKeys) {
  const int64_t n = 4096;
  Case dense = MakeCase(F32({{n, n}}, 64)), documents = dense;
  for (int64_t i = 0; i < n; ++i) {
    documents.problem.mask.query_documents.push_back(static_cast<int32_t>(i / (n / 16)));
  }
  documents.problem.mask.key_documents = documents.problem.mask.query_documents;
  for (bool backward : {false, true}) {
    EXPECT_LT(TimeRatio(documents, dense, backward, 0.25), 0.25) << backward;
  }
}

TEST(AttentionDocuments, BadNumbersAreRefused) {
  Case made = MakeCase(F32({{3, 3}, {2, 2}}));
  const auto expect = [&](std::vector<int32_t> queries, std::vector<int32_t> keys,
                          const std::string& part) {
    made.problem.mask.query_documents = std::move(queries);
    made.problem.mask.key_documents = std::move(keys);
    try {
      CheckAttentionProblem(made.problem);
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kShape);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect({0, 0, 1, 0, 0}, {}, "key_documents must be 5");
  expect({0, 0, 1}, {0, 0, 1, 0, 0}, "query_documents must be 5");
  expect({0, 0, 1, 1, 0}, {0, 0, 1, 0, 0}, "found 0 after 1 in sequence 1");
  made.problem.mask.query_documents = made.problem.mask.key_documents = {0, 1, 1, 0, 0};
  EXPECT_NO_THROW(CheckAttentionProblem(made.problem));
}

TEST(PlantedFaults, DocumentShiftedByOne) {
  Case made = MakeCase(F32({{40, 40}}, 8)), wrong = made;
  made.problem.mask.query_documents.assign(40, 0);
  std::fill_n(made.problem.mask.query_documents.begin() + 17, 23, 1);
  made.problem.mask.key_documents = made.problem.mask.query_documents;
  wrong.problem.mask = made.problem.mask;
  wrong.problem.mask.key_documents[17] = 0;
  EXPECT_NE(CompareWithReference(made, RunFused(wrong), RunReference(made)), "");
}

}  // namespace
}  // namespace headlight
