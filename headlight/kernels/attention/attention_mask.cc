#include "headlight/kernels/attention/attention_mask.h"

#include <algorithm>

#include "headlight/kernels/attention/attention_internal.h"

namespace headlight::attention {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;  // past every sequence's end

}  // namespace

PreparedMask::PreparedMask(const AttentionProblem& problem) : problem_(problem) {
  const Mask& mask = problem.mask;
  if (mask.query_documents.empty()) return;
  begins_.resize(mask.query_documents.size());
  ends_.resize(mask.query_documents.size());
  for (int64_t s = 0; s < problem.batch(); ++s) {
    const SequenceRange range = RangeOf(problem, s);
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

int64_t PreparedMask::KeptScores(int64_t sequence, int64_t begin, int64_t end) const {
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
