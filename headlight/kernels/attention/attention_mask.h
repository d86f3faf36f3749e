// What the mask of a problem keeps, worked out once per call for the fused kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/kernels/attention/attention_fused.h"

namespace headlight::attention {

class PreparedMask {
 public:
  enum class For { kForward, kBackward };

  // Keeps a reference to the problem, which is checked. Memory: O(tokens), with documents only, and
  // backward as much as a block list.
  PreparedMask(const AttentionProblem& problem, For pass);

  BlockRows BlocksOf(int64_t sequence, int64_t head) const;
  RowIntervals IntervalsOf(int64_t sequence) const;
  // About how many scores the queries [begin, end) of a sequence keep: what a task's work is
  // reckoned by. Exact for documents, about so for a block list; else as if every query kept as
  // many as the middle one.
  int64_t KeptScores(int64_t sequence, int64_t begin, int64_t end) const;

 private:
  void PrepareDocuments();
  void PrepareBlocks(For pass);
  int64_t KeptByBlocks(int64_t sequence, int64_t begin, int64_t end) const;

  const AttentionProblem& problem_;
  std::vector<int32_t> begins_, ends_;  // of each query token: the keys of its document
  // Block list: the first row and the first column of each sequence; and by column (sequence, head,
  // key block) what the list says by row.
  std::vector<int64_t> first_row_, first_column_;
  std::vector<int64_t> column_offsets_;
  std::vector<int32_t> query_blocks_;
};

}  // namespace headlight::attention
