#include "headlight/nn/ragged_batch.h"

#include <algorithm>

#include "headlight/base/error.h"

namespace headlight {

int64_t RaggedLayout::longest() const {
  int64_t result = 0;
  for (int64_t i = 0; i < batch(); ++i) result = std::max(result, length(i));
  return result;
}

int64_t RaggedLayout::pairs() const {
  int64_t result = 0;
  for (int64_t i = 0; i < batch(); ++i) result += length(i) * length(i);
  return result;
}

RaggedBatch MakeRaggedBatch(const std::vector<std::vector<int32_t>>& sequences) {
  RaggedBatch batch;
  batch.offsets.push_back(0);
  for (const std::vector<int32_t>& sequence : sequences) {
    batch.sample_ids.push_back(batch.batch());
    batch.offsets.push_back(batch.offsets.back() + static_cast<int64_t>(sequence.size()));
  }
  batch.ids = Tensor::Uninitialized({batch.tokens()}, DType::kI32, MemoryTag::kActivations);
  int32_t* target = batch.ids.data<int32_t>();
  for (const std::vector<int32_t>& sequence : sequences) {
    target = std::copy(sequence.begin(), sequence.end(), target);
  }
  return batch;
}

void CheckLayout(const RaggedLayout& layout) {
  if (layout.offsets.empty() || layout.offsets[0] != 0) {
    throw Error(ErrorKind::kShape, "batch: offsets must start with 0, found {}",
                layout.offsets.empty() ? "none" : "another value");
  }
  for (int64_t i = 0; i < layout.batch(); ++i) {
    if (layout.length(i) < 0) {
      throw Error(ErrorKind::kShape, "batch: offsets must ascend, found {} after {}",
                  layout.begin(i + 1), layout.begin(i));
    }
  }
  const auto ids = static_cast<int64_t>(layout.sample_ids.size());
  if (ids != 0 && ids != layout.batch()) {
    throw Error(ErrorKind::kShape, "batch: needs one sample id for each of {} sequences, found {}",
                layout.batch(), ids);
  }
}

void CheckBatch(const RaggedBatch& batch, int64_t vocabulary) {
  CheckLayout(batch.layout());
  if (batch.ids.dtype() != DType::kI32 || batch.ids.shape().rank() != 1 ||
      batch.ids.elements() != batch.tokens() || !batch.ids.IsContiguous()) {
    throw Error(ErrorKind::kShape, "batch: ids must be i32 [{}], found {} {}", batch.tokens(),
                DTypeName(batch.ids.dtype()), batch.ids.shape().ToString());
  }
  const auto labels = static_cast<int64_t>(batch.labels.size());
  if (labels != 0 && labels != batch.batch()) {
    throw Error(ErrorKind::kShape, "batch: needs one label for each of {} sequences, found {}",
                batch.batch(), labels);
  }
  if (batch.tokens() == 0) return;
  const int32_t* ids = batch.ids.data<int32_t>();
  for (int64_t i = 0; i < batch.tokens(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      throw Error(ErrorKind::kShape, "batch: token {} must lie in [0, {}), found {}", i, vocabulary,
                  ids[i]);
    }
  }
}

}  // namespace headlight
