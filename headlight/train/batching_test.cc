#include "headlight/train/batching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace headlight {
namespace {

// Text i has i % 7 + 1 tokens, all of them 10 * i.
EncodedDataset Texts(int64_t count) {
  EncodedDataset texts;
  for (int64_t i = 0; i < count; ++i) {
    texts.ids.insert(texts.ids.end(), static_cast<size_t>(i % 7 + 1), static_cast<int32_t>(10 * i));
    texts.offsets.push_back(static_cast<int64_t>(texts.ids.size()));
    texts.labels.push_back(static_cast<int32_t>(i % 3));
    texts.rows.push_back(100 + i);
  }
  return texts;
}

std::vector<int64_t> Flatten(const EpochBatches& batches) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < batches.size(); ++i) {
    all.insert(all.end(), batches[i].begin(), batches[i].end());
  }
  return all;
}

TEST(Batching, EveryOrderHoldsEachTextOnce) {
  const EncodedDataset texts = Texts(101);
  for (const BatchOrder order : {BatchOrder::kRandom, BatchOrder::kBucket}) {
    const EpochBatches batches(texts, order, 4, 1, 0);
    const std::vector<int64_t> all = Flatten(batches);
    EXPECT_EQ(all.size(), 101u);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 101u);
    EXPECT_EQ(batches.size(), 26);
  }
}

TEST(Batching, OrderIsAFunctionOfSeedAndEpoch) {
  const EncodedDataset texts = Texts(50);
  for (const BatchOrder order : {BatchOrder::kRandom, BatchOrder::kBucket}) {
    const std::vector<int64_t> one = Flatten(EpochBatches(texts, order, 4, 1, 0));
    EXPECT_EQ(one, Flatten(EpochBatches(texts, order, 4, 1, 0)));
    EXPECT_NE(one, Flatten(EpochBatches(texts, order, 4, 1, 1)));
    EXPECT_NE(one, Flatten(EpochBatches(texts, order, 4, 2, 0)));
    EXPECT_FALSE(std::is_sorted(one.begin(), one.end()));
  }
}

TEST(Batching, BucketsHoldTextsOfLikeLength) {
  const EncodedDataset texts = Texts(140);
  const EpochBatches batches(texts, BatchOrder::kBucket, 5, 1, 0);
  for (int64_t i = 0; i < batches.size(); ++i) {
    int64_t shortest = 100;
    int64_t longest = 0;
    for (const int64_t text : batches[i]) {
      shortest = std::min(shortest, text % 7 + 1);
      longest = std::max(longest, text % 7 + 1);
    }
    EXPECT_LE(longest - shortest, 1);
  }
}

TEST(Batching, FillCopiesTextsOneAfterAnother) {
  const EncodedDataset texts = Texts(20);
  BatchBuilder builder;
  const std::vector<int64_t> chosen = {9, 0, 5};  // of 3, 1 and 6 tokens
  const RaggedBatch& batch = builder.Fill(texts, chosen);
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 3, 4, 10}));
  EXPECT_EQ(batch.sample_ids, (std::vector<int64_t>{109, 100, 105}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{0, 0, 2}));
  ASSERT_EQ(batch.ids.elements(), 10);
  EXPECT_EQ(batch.ids.data<int32_t>()[2], 90);
  EXPECT_EQ(batch.ids.data<int32_t>()[3], 0);
  EXPECT_EQ(batch.ids.data<int32_t>()[9], 50);
}

TEST(Batching, FillKeepsItsBuffer) {
  const EncodedDataset texts = Texts(20);
  BatchBuilder builder;
  const std::vector<int64_t> longer = {6, 13};
  const std::vector<int64_t> shorter = {0, 6};
  const auto* before = builder.Fill(texts, longer).ids.bytes();
  EXPECT_EQ(builder.Fill(texts, shorter).ids.bytes(), before);
}

TEST(Batching, InOrderIsInOrder) {
  const EpochBatches batches = EpochBatches::InOrder(10, 4);
  ASSERT_EQ(batches.size(), 3);
  EXPECT_EQ(batches[2].size(), 2u);
  EXPECT_EQ(batches[2][1], 9);
  EXPECT_EQ(EpochBatches::InOrder(0, 4).size(), 0);
}

}  // namespace
}  // namespace headlight
