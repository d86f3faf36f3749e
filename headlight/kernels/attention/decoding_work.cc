#include "headlight/kernels/attention/decoding_work.h"

#include <algorithm>
#include <iterator>

namespace headlight::attention {
namespace {

Bf16Matrix Bf16Rows(const Tensor& tensor, const SequenceRange& range, int64_t head) {
  const bool padded = tensor.shape().rank() == 4;
  const int64_t first = padded ? range.sequence : range.key_begin;
  const BFloat16* data =
      tensor.data<BFloat16>() + first * tensor.stride(0) + head * tensor.stride(padded ? 2 : 1);
  return {reinterpret_cast<const uint16_t*>(data), tensor.stride(padded ? 1 : 0)};
}

}  // namespace

bool MayDecode(const AttentionProblem& problem, int64_t sequence) {
  const SequenceRange range = RangeOf(problem, sequence);
  const std::vector<int64_t>& lengths = problem.mask.key_lengths;
  const int64_t keys = lengths.empty() ? range.keys : lengths[static_cast<size_t>(sequence)];
  return DecodingPays(range.queries, keys) && !problem.mask.blocks &&
         problem.relative.keys.empty() && problem.relative.values.empty();
}

bool DecodesInPlace(const AttentionProblem& problem, const AttentionInputs& inputs,
                    int64_t sequence) {
  const auto adjacent = [](const Tensor& tensor) {
    return tensor.empty() || tensor.stride(tensor.shape().rank() - 1) == 1;
  };
  return MayDecode(problem, sequence) && RangeOf(problem, sequence).queries > 0 &&
         adjacent(inputs.key) && adjacent(inputs.value) &&
         (inputs.key.empty() || inputs.key.dtype() != DType::kF16);
}

DecodingWork::DecodingWork(const AttentionProblem& problem, const AttentionInputs& inputs,
                           const AttentionInputs* stored, const PreparedMask& mask)
    : problem_(problem), inputs_(inputs), stored_(stored), mask_(mask) {
  int64_t floats = 0;
  for (int64_t s = 0; s < problem.batch(); ++s) {
    if (!DecodesInPlace(problem, stored == nullptr ? inputs : *stored, s)) continue;
    const HeadProblem head = Head(s, 0);
    const int64_t limit = mask.IntervalsOf(s).limit;
    const int64_t splits = std::max<int64_t>(BlockCount(limit, kDecodingKeys), 1);
    sequences_.push_back({s, splits, shares_, nullptr});
    shares_ += problem.kv_heads * splits;
    floats += problem.heads * splits * SplitFloats(head);
  }
  if (floats == 0) return;
  sums_ = Tensor::Uninitialized({floats}, DType::kF32, MemoryTag::kWorkspace);
  float* at = sums_.data<float>();
  for (Sequence& each : sequences_) {
    each.sums = at;
    at += problem.heads * each.splits * SplitFloats(Head(each.sequence, 0));
  }
}

bool DecodingWork::Has(int64_t sequence) const {
  return std::any_of(sequences_.begin(), sequences_.end(),
                     [&](const Sequence& each) { return each.sequence == sequence; });
}

int64_t DecodingWork::RunShare(int64_t number) const {
  const auto after = std::upper_bound(
      sequences_.begin(), sequences_.end(), number,
      [](int64_t share, const Sequence& each) { return share < each.first_share; });
  const Sequence& each = *std::prev(after);
  const int64_t share = number - each.first_share;
  const int64_t split = share % each.splits, group = problem_.heads / problem_.kv_heads;
  const int64_t first_head = share / each.splits * group;
  std::vector<HeadProblem> heads;
  for (int64_t h = 0; h < group; ++h) heads.push_back(Head(each.sequence, first_head + h));
  const int64_t floats = SplitFloats(heads[0]);
  return FusedForwardSplit(
      {heads.data(), group, each.sums + (first_head * each.splits + split) * floats,
       each.splits * floats},
      split);
}

void DecodingWork::Merge(int64_t number, AttentionOutputs& outputs, Tensor& lse) const {
  const Sequence& each = sequences_[static_cast<size_t>(number / problem_.heads)];
  const int64_t head_number = number % problem_.heads;
  const SequenceRange range = RangeOf(problem_, each.sequence);
  const HeadProblem head = Head(each.sequence, head_number);
  ForwardTask task;
  task.end = range.queries;
  task.out = QueryRows(outputs.out, range, head_number);
  if (!lse.empty()) task.lse = LseOf(lse, range.query_begin, head_number);
  FusedMergeSplits(head, task, each.sums + head_number * each.splits * SplitFloats(head),
                   each.splits);
}

HeadProblem DecodingWork::Head(int64_t sequence, int64_t head) const {
  HeadProblem made = ProblemOf(problem_, inputs_, mask_, sequence, head);
  if (stored_ != nullptr) {
    const int64_t kv_head = head / (problem_.heads / problem_.kv_heads);
    const SequenceRange range = RangeOf(problem_, sequence);
    if (range.keys == 0) return made;  // there may be no tensor
    made.key_bf16 = Bf16Rows(stored_->key, range, kv_head);
    made.value_bf16 = Bf16Rows(stored_->value, range, kv_head);
  }
  return made;
}

}  // namespace headlight::attention
