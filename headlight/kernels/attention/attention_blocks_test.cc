// Block lists: kept blocks of scores, given by the caller.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

TEST(AttentionBlocks, LikeReferenceForAnySizesOfBlocks) {
  Options options = F32(AwkwardLengths(), 16);
  options.heads = 4;
  options.kv_heads = 2;
  for (const auto& [query_block, key_block] :
       std::vector<Lengths>{{1, 1}, {4, 16}, {12, 8}, {16, 5}, {64, 64}, {7, 1000}, {33, 20}}) {
    for (int64_t heads : {1, 4}) {
      Case made = MakeCase(options);
      AddBlocks(made, 0.5, {query_block, key_block, heads, {}, {}}, 3);
      ExpectLikeReference(made);
    }
  }
}

TEST(AttentionBlocks, LikeReferenceWithEveryOtherThing) {
  Options options = F32(AwkwardLengths(), 16);
  options.heads = 2;
  options.kv_heads = 1;
  for (Mask::Causal causal :
       {Mask::Causal::kNone, Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    for (bool more : {false, true}) {
      options.relative_max = more ? 20 : 0;
      Case made = MakeCase(options);
      AddBlocks(made, 0.6, {20, 24, 2, {}, {}}, 4);
      made.problem.mask.causal = causal;
      made.problem.dropout.rate = more ? 0.2 : 0;
      if (more) {
        AddKeep(made, 0.8, 5);
        AddBias(made, 0.1, 6);
        AddDocuments(made, 2, 7);
        made.problem.softcap = 3;
        made.problem.mask.window = Mask::Window{30, 8};
        for (size_t s = 1; s < made.problem.key_offsets.size(); ++s) {
          made.problem.mask.key_lengths.push_back(
              (made.problem.key_offsets[s] - made.problem.key_offsets[s - 1]) * 3 / 4);
        }
      }
      ExpectLikeReference(made);
    }
  }
}

TEST(AttentionBlocks, LongSequencesAndRunsPastTheKeyBlock) {
  Options options = F32({{70, 1300}, {1100, 90}, {0, 70}, {70, 0}}, 8);
  for (double share : {0.0, 0.1, 0.9, 1.0}) {
    for (int64_t block : {64, 1030}) {
      Case made = MakeCase(options);
      AddBlocks(made, share, {block, block, 1, {}, {}}, 5);
      ExpectLikeReference(made);
    }
  }
}

// Keys that end inside a block and a vector are followed by others, which are not kept.
TEST(AttentionBlocks, PoisonInSkippedBlocksNeverLeaks) {
  Case clean = MakeCase(F32({{90, 90}}, 12));
  clean.problem.mask.blocks = Mask::BlockList{30, 10, 1, {0, 3, 4, 7}, {0, 1, 5, 3, 0, 7, 8}};
  Case dirty = clean;
  std::vector<bool> kept_rows(90), kept_keys(90);
  for (int64_t j : {0, 1, 5, 3, 7, 8}) std::fill_n(kept_keys.begin() + j * 10, 10, true);
  for (Tensor* tensor : {&dirty.inputs.key, &dirty.inputs.value}) {
    *tensor = tensor->Clone(MemoryTag::kOther);
    for (int64_t j = 0; j < 90; ++j) {
      for (int64_t c = 0; c < 12 && !kept_keys[static_cast<size_t>(j)]; ++c) {
        tensor->view<float>()(j, 0, c) = kNaN;
      }
    }
  }
  OnEveryIsa([&] { EXPECT_TRUE(SameBits(RunFused(clean), RunFused(dirty))); });
  EXPECT_FALSE(FindNonFiniteScore(dirty.problem, dirty.inputs).has_value());
}

TEST(AttentionBlocks, SameBitsForAnyThreadsAndAnyBatch) {
  Options options = F32({{700, 700}, {130, 1100}, {30, 30}}, 16);
  options.heads = options.kv_heads = 2;
  Case made = MakeCase(options);
  AddBlocks(made, 0.3, {50, 64, 2, {}, {}}, 6);
  const Results first = ExpectSameBitsForAnyThreads(made);
  // The second sequence alone: rows 28 to 33 of the list.
  Case alone = made;
  alone.problem.query_offsets = {0, 130};
  alone.problem.key_offsets = {0, 1100};
  Mask::BlockList& blocks = *alone.problem.mask.blocks;
  const std::vector<int64_t> offsets(blocks.offsets.begin() + 28, blocks.offsets.begin() + 35);
  blocks.offsets = offsets;
  for (int64_t& offset : blocks.offsets) offset -= offsets.front();
  blocks.key_blocks = {blocks.key_blocks.begin() + offsets.front(),
                       blocks.key_blocks.begin() + offsets.back()};
  alone.inputs = {made.inputs.query.Slice(0, 700, 830), made.inputs.key.Slice(0, 700, 1800),
                  made.inputs.value.Slice(0, 700, 1800)};
  alone.out_gradient = made.out_gradient.Slice(0, 700, 830);
  const Results second = RunFused(alone);
  EXPECT_TRUE(SameBits(first.outputs.out.Slice(0, 700, 830), second.outputs.out));
  EXPECT_TRUE(SameBits(first.gradients.query.Slice(0, 700, 830), second.gradients.query));
  EXPECT_TRUE(SameBits(first.gradients.key.Slice(0, 700, 1800), second.gradients.key));
}

TEST(AttentionBlocks, ProbesLikeReference) {
  Options options = F32({{20, 20}, {137, 601}}, 16);
  options.heads = options.kv_heads = 3;
  Case made = MakeCase(options);
  AddBlocks(made, 0.4, {30, 50, 3, {}, {}}, 7);
  AttentionOutputs asked;
  asked.weights.push_back({1, 2, {}});
  asked.statistics = HeadStatistics{};
  asked.statistics->heads = {0, 2};
  asked.statistics->key_set.assign(621, 0);
  for (size_t j = 0; j < 621; j += 7) asked.statistics->key_set[j] = 1;
  ExpectProbesLikeReference(made, asked);
}

// A tenth of the blocks; masking without skipping would take all the time.
TEST(AttentionBlocks, WorkIsProportionalToTheKeptBlocks) {
  const Case dense = MakeCase(F32({{4096, 4096}}, 64));
  Case blocks = dense;
  AddBlocks(blocks, 0.1, {64, 64, 1, {}, {}}, 8);
  for (bool backward : {false, true}) {
    EXPECT_LT(TimeRatio(blocks, dense, backward, 0.25), 0.25) << backward;
  }
}

TEST(AttentionBlocks, BadListsAreRefused) {
  Case made = MakeCase(F32({{5, 9}, {3, 3}}));
  const auto expect = [&](const Mask::BlockList& blocks, const std::string& part) {
    made.problem.mask.blocks = blocks;
    try {
      CheckAttentionProblem(made.problem);
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  // Query blocks: 2 and 1; key blocks: 3 and 1.
  made.problem.mask.blocks = Mask::BlockList{4, 4, 1, {0, 2, 3, 4}, {0, 2, 1, 0}};
  EXPECT_NO_THROW(CheckAttentionProblem(made.problem));
  expect({0, 4, 1, {0}, {}}, "at least 1 token, found 0 x 4");
  expect({4, 4, 2, {0}, {}}, "for 1 or 1 heads, found 2");
  expect({4, 4, 1, {0, 2, 3}, {0, 2, 1}}, "must be 4 (rows + 1)");
  expect({4, 4, 1, {0, 2, 3, 5}, {0, 2, 1, 0}}, "to 4 (key blocks)");
  expect({4, 4, 1, {0, 2, 1, 4}, {0, 2, 1, 0}}, "not decreasing");
  expect({4, 4, 1, {0, 2, 3, 4}, {2, 0, 1, 0}}, "row 0 of a block list must ascend and be below 3");
  expect({4, 4, 1, {0, 2, 3, 4}, {0, 2, 1, 1}}, "row 2 of a block list must ascend and be below 1");
  expect({4, 4, 1, {0, 2, 3, 4}, {0, 2, -1, 0}}, "found -1 after -1");
}

TEST(PlantedFaults, OneBlockTooManyOrShifted) {
  Case made = MakeCase(F32({{90, 90}}, 8)), wrong = made;
  made.problem.mask.blocks = Mask::BlockList{30, 30, 1, {0, 1, 3, 4}, {0, 0, 2, 1}};
  const Results want = RunReference(made);
  for (const Mask::BlockList& blocks : {Mask::BlockList{30, 30, 1, {0, 1, 4, 5}, {0, 0, 1, 2, 1}},
                                        Mask::BlockList{30, 30, 1, {0, 1, 3, 4}, {0, 0, 1, 1}},
                                        Mask::BlockList{30, 29, 1, {0, 1, 3, 4}, {0, 0, 2, 1}},
                                        Mask::BlockList{31, 30, 1, {0, 1, 3, 4}, {0, 0, 2, 1}}}) {
    wrong.problem.mask.blocks = blocks;
    EXPECT_NE(CompareWithReference(made, RunFused(wrong), want), "");
  }
}

}  // namespace
}  // namespace headlight
