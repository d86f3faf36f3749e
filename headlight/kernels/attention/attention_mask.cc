#include "headlight/kernels/attention/attention_mask.h"

#include <algorithm>

#include "headlight/kernels/attention/attention_internal.h"

namespace headlight::attention {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;  // past every sequence's end

}  // namespace

PreparedMask::PreparedMask(const AttentionProblem& problem, For pass) : problem_(problem) {
  if (!problem.mask.query_documents.empty()) PrepareDocuments();
  if (problem.mask.blocks) PrepareBlocks(pass);
}

void PreparedMask::PrepareDocuments() {
  const Mask& mask = problem_.mask;
  begins_.resize(mask.query_documents.size());
  ends_.resize(mask.query_documents.size());
  for (int64_t s = 0; s < problem_.batch(); ++s) {
    const SequenceRange range = RangeOf(problem_, s);
    const int32_t* documents = mask.key_documents.data() + range.key_begin;
    // Numbers never decrease: both ends move on with the queries.
    int64_t begin = 0, end = 0;
    for (int64_t i = range.query_begin; i < range.query_begin + range.queries; ++i) {
      const size_t at = static_cast<size_t>(i);
      const int32_t document = mask.query_documents[at];
      while (begin < range.keys && documents[begin] < document) ++begin;
      end = std::max(begin, end);
      while (end < range.keys && documents[end] == document) ++end;
      begins_[at] = static_cast<int32_t>(begin);
      ends_[at] = static_cast<int32_t>(end);
    }
  }
}

void PreparedMask::PrepareBlocks(For pass) {
  const Mask::BlockList& blocks = *problem_.mask.blocks;
  first_row_.push_back(0);
  first_column_.push_back(0);
  for (int64_t s = 0; s < problem_.batch(); ++s) {
    const SequenceRange range = RangeOf(problem_, s);
    first_row_.push_back(first_row_.back() +
                         blocks.heads * BlockCount(range.queries, blocks.query_block));
    first_column_.push_back(first_column_.back() +
                            blocks.heads * BlockCount(range.keys, blocks.key_block));
  }
  if (pass == For::kForward) return;
  // Counting sort by column. Rows are visited in order, so query blocks ascend.
  column_offsets_.assign(static_cast<size_t>(first_column_.back()) + 1, 0);
  query_blocks_.resize(blocks.key_blocks.size());
  std::vector<int64_t> next;
  for (bool counting : {true, false}) {
    for (int64_t s = 0; s < problem_.batch(); ++s) {
      const SequenceRange range = RangeOf(problem_, s);
      const int64_t rows = BlockCount(range.queries, blocks.query_block);
      const int64_t columns = BlockCount(range.keys, blocks.key_block);
      for (int64_t r = 0; r < blocks.heads * rows; ++r) {
        const size_t row = static_cast<size_t>(first_row_[static_cast<size_t>(s)] + r);
        const int64_t first = first_column_[static_cast<size_t>(s)] + r / rows * columns;
        for (int64_t at = blocks.offsets[row]; at < blocks.offsets[row + 1]; ++at) {
          const size_t column =
              static_cast<size_t>(first + blocks.key_blocks[static_cast<size_t>(at)]);
          if (counting) {
            ++column_offsets_[column + 1];
          } else {
            query_blocks_[static_cast<size_t>(next[column]++)] = static_cast<int32_t>(r % rows);
          }
        }
      }
    }
    if (!counting) continue;
    for (size_t c = 1; c < column_offsets_.size(); ++c)
      column_offsets_[c] += column_offsets_[c - 1];
    next = column_offsets_;
  }
}

BlockRows PreparedMask::BlocksOf(int64_t sequence, int64_t head) const {
  if (!problem_.mask.blocks) return {};
  const Mask::BlockList& blocks = *problem_.mask.blocks;
  const SequenceRange range = RangeOf(problem_, sequence);
  const int64_t list = blocks.heads == 1 ? 0 : head;
  const int64_t row = first_row_[static_cast<size_t>(sequence)] +
                      list * BlockCount(range.queries, blocks.query_block);
  const int64_t column = first_column_[static_cast<size_t>(sequence)] +
                         list * BlockCount(range.keys, blocks.key_block);
  return {blocks.query_block,
          blocks.key_block,
          blocks.offsets.data() + row,
          blocks.key_blocks.data(),
          column_offsets_.empty() ? nullptr : column_offsets_.data() + column,
          query_blocks_.data()};
}

RowIntervals PreparedMask::IntervalsOf(int64_t sequence) const {
  const Mask& mask = problem_.mask;
  const SequenceRange range = RangeOf(problem_, sequence);
  const int64_t shift = PlaceShift(problem_, range);
  RowIntervals intervals{-kFar, kFar, range.keys};
  if (mask.causal != Mask::Causal::kNone) intervals.upper = shift + 1;
  if (mask.window) {
    // Sizes past every sequence's end would overflow the sums.
    intervals.lower = shift - std::min(mask.window->left, kFar);
    intervals.upper = std::min(intervals.upper, shift + std::min(mask.window->right, kFar) + 1);
  }
  if (!mask.key_lengths.empty()) {
    intervals.limit = mask.key_lengths[static_cast<size_t>(sequence)];
  }
  if (!begins_.empty()) {
    intervals.begins = begins_.data() + range.query_begin;
    intervals.ends = ends_.data() + range.query_begin;
  }
  return intervals;
}

// Queries [begin, end) begin a query block. Mean over the lists of heads.
int64_t PreparedMask::KeptByBlocks(int64_t sequence, int64_t begin, int64_t end) const {
  const Mask::BlockList& blocks = *problem_.mask.blocks;
  const int64_t rows = BlockCount(RangeOf(problem_, sequence).queries, blocks.query_block);
  int64_t kept = 0;
  for (int64_t list = 0; list < blocks.heads; ++list) {
    const int64_t* offsets =
        blocks.offsets.data() + first_row_[static_cast<size_t>(sequence)] + list * rows;
    kept += offsets[BlockCount(end, blocks.query_block)] - offsets[begin / blocks.query_block];
  }
  return std::max<int64_t>(kept * blocks.query_block * blocks.key_block / blocks.heads,
                           end - begin);
}

int64_t PreparedMask::KeptScores(int64_t sequence, int64_t begin, int64_t end) const {
  if (problem_.mask.blocks) return KeptByBlocks(sequence, begin, end);
  const RowIntervals intervals = IntervalsOf(sequence);
  if (begins_.empty()) {
    const int64_t middle = (begin + end) / 2;
    return (end - begin) * std::max<int64_t>(intervals.End(middle) - intervals.Begin(middle), 1);
  }
  int64_t kept = 0;
  for (int64_t i = begin; i < end; ++i) {
    kept += std::max<int64_t>(intervals.End(i) - intervals.Begin(i), 1);
  }
  return kept;
}

}  // namespace headlight::attention
