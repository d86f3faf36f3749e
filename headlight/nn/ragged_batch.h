// RaggedBatch: texts of different lengths, one after another, with no padding between.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/tensor/tensor.h"

namespace headlight {

// Where each sequence of a batch lies: rows [offsets[i], offsets[i + 1]) of a [tokens, features]
// activation. Does not own. `sample_ids` names each sequence for dropout (the mask of a text
// depends on its id, not on its slot in the batch); it may be empty where no dropout is on.
struct RaggedLayout {
  std::span<const int64_t> offsets;
  std::span<const int64_t> sample_ids;

  int64_t batch() const { return offsets.empty() ? 0 : static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return offsets.empty() ? 0 : offsets.back(); }
  int64_t begin(int64_t sequence) const { return offsets[static_cast<size_t>(sequence)]; }
  int64_t length(int64_t sequence) const {
    return offsets[static_cast<size_t>(sequence) + 1] - offsets[static_cast<size_t>(sequence)];
  }
  int64_t longest() const;
  // Sum of squared lengths: what attention costs.
  int64_t pairs() const;
};

struct RaggedBatch {
  Tensor ids;                       // i32 [tokens], values in [0, vocabulary)
  std::vector<int64_t> offsets;     // batch + 1, from 0 to tokens, ascending; empty texts are legal
  std::vector<int64_t> sample_ids;  // batch, or empty when the model does not train
  std::vector<int32_t> labels;      // batch, or empty when there are none

  RaggedLayout layout() const { return {offsets, sample_ids}; }
  int64_t batch() const { return layout().batch(); }
  int64_t tokens() const { return layout().tokens(); }
};

// Concatenates sequences of ids; sample ids are 0, 1, ... in that order unless set afterwards.
RaggedBatch MakeRaggedBatch(const std::vector<std::vector<int32_t>>& sequences);

// Throws kShape unless offsets start at 0 and ascend, and sample_ids is empty or has one per
// sequence.
void CheckLayout(const RaggedLayout& layout);
// CheckLayout, and: ids i32 [tokens] within [0, vocabulary), labels empty or one per sequence.
// Throws kShape.
void CheckBatch(const RaggedBatch& batch, int64_t vocabulary);

}  // namespace headlight
