// What the files of this folder share: checks, shapes, ranges. Not installed knowledge: callers use
// attention.h.
#pragma once

#include "headlight/base/cpu.h"
#include "headlight/kernels/attention/attention.h"

namespace headlight::attention {

struct SequenceRange {
  int64_t query_begin, queries;  // first query token, and how many
  int64_t key_begin, keys;
  int64_t sequence;
};
inline SequenceRange RangeOf(const AttentionProblem& problem, int64_t sequence) {
  const size_t s = static_cast<size_t>(sequence);
  return {problem.query_offsets[s], problem.query_offsets[s + 1] - problem.query_offsets[s],
          problem.key_offsets[s], problem.key_offsets[s + 1] - problem.key_offsets[s], sequence};
}

// Windows and ALiBi count query i as i + PlaceShift.
inline int64_t PlaceShift(const AttentionProblem& problem, const SequenceRange& range) {
  return problem.mask.causal == Mask::Causal::kAlignedToEnd ? range.keys - range.queries : 0;
}

inline int64_t BlockCount(int64_t length, int64_t block) { return (length + block - 1) / block; }

inline Shape QueryShape(const AttentionProblem& problem) {
  return {problem.query_tokens(), problem.heads, problem.head_dim};
}
inline Shape KeyShape(const AttentionProblem& problem) {
  return {problem.key_tokens(), problem.kv_heads, problem.head_dim};
}
inline Shape ValueShape(const AttentionProblem& problem) {
  return {problem.key_tokens(), problem.kv_heads, problem.value_dim};
}
inline Shape OutShape(const AttentionProblem& problem) {
  return {problem.query_tokens(), problem.heads, problem.value_dim};
}
inline Shape LseShape(const AttentionProblem& problem) {
  return {problem.heads, problem.query_tokens()};
}

// Bit q: whether query 8 * query_block + q keeps its weight of `key` (one Philox block).
uint32_t DropoutKeptBits(const DropoutStream& stream, int64_t query_block, int64_t key);

// Why the fused kernels do not run; empty when they do.
std::string FusedRefusal(const AttentionProblem& problem);

// How the fused kernels multiply where `unit` is what multiplies bf16.
struct ProductPlan {
  Bf16Unit unit = Bf16Unit::kNone;  // kNone: f32 products
  bool rounds = false;              // of copies of the operands that are rounded to bf16
};
ProductPlan PlanProducts(const AttentionProblem& problem, Bf16Unit unit);

// AttentionForward, AttentionBackward and PlanAttention where `unit`, which the machine has, is
// what multiplies bf16. For tests of each unit.
void ForwardOnUnit(Bf16Unit unit, const AttentionProblem& problem, const AttentionInputs& inputs,
                   AttentionOutputs& outputs);
void BackwardOnUnit(Bf16Unit unit, const AttentionProblem& problem, const AttentionInputs& inputs,
                    const AttentionOutputs& outputs, const Tensor& out_gradient,
                    AttentionGradients& gradients);
AttentionPlan PlanOnUnit(Bf16Unit unit, const AttentionProblem& problem);

// Whether a sequence has so few queries, and the problem so plain a structure, that keys and values
// may be read where they lie; and whether they are, given how the tensors lie.
bool MayDecode(const AttentionProblem& problem, int64_t sequence);
bool DecodesInPlace(const AttentionProblem& problem, const AttentionInputs& inputs,
                    int64_t sequence);

// All throw kShape or kUsage.
void CheckTensor(const AttentionProblem& problem, const char* name, const Tensor& tensor,
                 const Shape& shape);
// The same for a tensor of tokens, which may be padded: [batch, >= the longest, shape[1],
// shape[2]].
void CheckTokens(const AttentionProblem& problem, const char* name, const Tensor& tensor,
                 const Shape& shape, const std::vector<int64_t>& offsets);
void CheckInputs(const AttentionProblem& problem, const AttentionInputs& inputs);
void CheckLse(const AttentionProblem& problem, const Tensor& lse);
// Also allocates what the caller left empty.
void PrepareOutputs(const AttentionProblem& problem, AttentionOutputs& outputs);
void PrepareStatistics(const AttentionProblem& problem, HeadStatistics& statistics);
void CheckGradients(const AttentionProblem& problem, const Tensor& out_gradient,
                    const AttentionGradients& gradients);
// Fills the bias gradient, if wanted, with 0: what is masked is not visited.
void ZeroBiasGradient(AttentionGradients& gradients);
void CheckTableGradient(const AttentionProblem& problem, const char* name, const Tensor& table,
                        const Tensor& gradient);

}  // namespace headlight::attention
