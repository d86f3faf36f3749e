#include "headlight/train/batching.h"

#include <algorithm>
#include <numeric>

#include "headlight/base/random.h"

namespace headlight {
namespace {

constexpr int64_t kPoolBatches = 64;
// Streams of a run's seed, far from those that initialisation and dropout use.
constexpr uint64_t kShuffleStream = uint64_t{1} << 40;

int64_t Length(const EncodedDataset& texts, int64_t text) {
  return texts.offsets[static_cast<size_t>(text) + 1] - texts.offsets[static_cast<size_t>(text)];
}

std::vector<int64_t> Iota(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), int64_t{0});
  return values;
}

// Where batches of `batch` begin in a run of `count` texts that starts at `begin`.
void CutIntoBatches(int64_t begin, int64_t count, int64_t batch, std::vector<int64_t>& ends) {
  for (int64_t made = 0; made < count; made += batch) {
    ends.push_back(begin + std::min(made + batch, count));
  }
}

}  // namespace

EpochBatches::EpochBatches(const EncodedDataset& texts, BatchOrder order, int64_t batch,
                           uint64_t seed, int64_t epoch)
    : texts_(Iota(texts.size())) {
  RandomStream random(seed, kShuffleStream + static_cast<uint64_t>(epoch));
  random.Shuffle(texts_);
  if (order == BatchOrder::kRandom) {
    CutIntoBatches(0, texts.size(), batch, begins_);
    return;
  }
  std::vector<std::vector<int64_t>> batches;
  const int64_t pool = kPoolBatches * batch;
  for (int64_t begin = 0; begin < texts.size(); begin += pool) {
    const int64_t end = std::min(begin + pool, texts.size());
    std::stable_sort(texts_.begin() + begin, texts_.begin() + end,
                     [&](int64_t a, int64_t b) { return Length(texts, a) < Length(texts, b); });
    std::vector<int64_t> ends;
    CutIntoBatches(begin, end - begin, batch, ends);
    int64_t start = begin;
    for (const int64_t stop : ends) {
      batches.emplace_back(texts_.begin() + start, texts_.begin() + stop);
      start = stop;
    }
  }
  random.Shuffle(batches);
  texts_.clear();
  for (const std::vector<int64_t>& members : batches) {
    texts_.insert(texts_.end(), members.begin(), members.end());
    begins_.push_back(static_cast<int64_t>(texts_.size()));
  }
}

EpochBatches EpochBatches::InOrder(int64_t texts, int64_t batch) {
  EpochBatches result;
  result.texts_ = Iota(texts);
  CutIntoBatches(0, texts, batch, result.begins_);
  return result;
}

std::span<const int64_t> EpochBatches::operator[](int64_t index) const {
  const auto begin = static_cast<size_t>(begins_[static_cast<size_t>(index)]);
  const auto end = static_cast<size_t>(begins_[static_cast<size_t>(index) + 1]);
  return std::span(texts_).subspan(begin, end - begin);
}

const RaggedBatch& BatchBuilder::Fill(const EncodedDataset& texts,
                                      std::span<const int64_t> indices) {
  int64_t tokens = 0;
  for (const int64_t text : indices) tokens += Length(texts, text);
  if (buffer_.empty() || buffer_.elements() < tokens) {
    // Half as much again, so that a few longer batches do not each allocate.
    buffer_ = Tensor::Uninitialized({tokens + tokens / 2}, DType::kI32, MemoryTag::kWorkspace);
  }
  batch_.ids = buffer_.Slice(0, 0, tokens);
  batch_.offsets.assign(1, 0);
  batch_.sample_ids.clear();
  batch_.labels.clear();
  int32_t* out = batch_.ids.data<int32_t>();
  for (const int64_t index : indices) {
    const auto text = static_cast<size_t>(index);
    const auto begin = texts.ids.begin() + texts.offsets[text];
    const auto end = texts.ids.begin() + texts.offsets[text + 1];
    out = std::copy(begin, end, out);
    batch_.offsets.push_back(batch_.offsets.back() + (end - begin));
    batch_.sample_ids.push_back(texts.rows[text]);
    if (!texts.labels.empty()) batch_.labels.push_back(texts.labels[text]);
  }
  return batch_;
}

}  // namespace headlight
