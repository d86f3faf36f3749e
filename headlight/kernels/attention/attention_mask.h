// What the mask of a problem keeps, worked out once per call for the fused kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/kernels/attention/attention_fused.h"

namespace headlight::attention {

class PreparedMask {
 public:
  // Keeps a reference to the problem, which is checked. Memory: O(tokens), and only with documents.
  explicit PreparedMask(const AttentionProblem& problem);

  RowIntervals IntervalsOf(int64_t sequence) const;
  // About how many scores the queries [begin, end) of a sequence keep: what a task's work is
  // reckoned by. Exact for documents; else as if every query kept as many as the middle one.
  int64_t KeptScores(int64_t sequence, int64_t begin, int64_t end) const;

 private:
  const AttentionProblem& problem_;
  std::vector<int32_t> begins_, ends_;  // of each query token: the keys of its document
};

}  // namespace headlight::attention
