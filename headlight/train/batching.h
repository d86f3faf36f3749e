// From encoded texts to ragged batches: the order of an epoch, and its batches.
//
// The order is a function of (seed, epoch) and the lengths alone, so that a resumed run goes on
// where it was killed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/nn/ragged_batch.h"
#include "headlight/tensor/tensor.h"
#include "headlight/text/text_encoder.h"

namespace headlight {

enum class BatchOrder {
  kRandom,  // shuffled texts, cut into batches
  kBucket,  // texts of like length together: sorted within pools of 64 batches, batches shuffled
};

// One epoch: indices of texts, cut into batches of `batch` (the last one of random order, or of a
// pool, may be smaller).
class EpochBatches {
 public:
  EpochBatches(const EncodedDataset& texts, BatchOrder order, int64_t batch, uint64_t seed,
               int64_t epoch);
  // In data set order, for evaluation.
  static EpochBatches InOrder(int64_t texts, int64_t batch);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  // Indices of the texts of batch `index`.
  std::span<const int64_t> operator[](int64_t index) const;

 private:
  EpochBatches() = default;
  std::vector<int64_t> texts_;
  std::vector<int64_t> begins_{0};
};

// Fills batches, keeping one buffer for the token ids: a batch is valid until the next Fill.
class BatchBuilder {
 public:
  // Sample ids are the rows of the data set, which name a text for ever.
  const RaggedBatch& Fill(const EncodedDataset& texts, std::span<const int64_t> indices);

 private:
  Tensor buffer_;
  RaggedBatch batch_;
};

}  // namespace headlight
