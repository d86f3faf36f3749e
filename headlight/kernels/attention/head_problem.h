// One head of one sequence as the fused kernels see it: plain pointers into the tensors of a
// problem. Tensors are checked and f32.
#pragma once

#include <cstdint>

#include "headlight/kernels/attention/attention_fused.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_mask.h"

namespace headlight::attention {

// Rows of one head of a sequence whose first token is `first_token`, ragged or padded.
template <typename M, typename T>
M RowsOf(T& tensor, int64_t sequence, int64_t first_token, int64_t head) {
  if (tensor.empty()) return {};
  auto* data = tensor.template data<float>();
  if (tensor.shape().rank() == 4) {
    return {data + sequence * tensor.stride(0) + head * tensor.stride(2), tensor.stride(1),
            tensor.stride(3)};
  }
  return {data + first_token * tensor.stride(0) + head * tensor.stride(1), tensor.stride(0),
          tensor.stride(2)};
}

inline Matrix QueryRows(const Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<Matrix>(tensor, range.sequence, range.query_begin, head);
}
inline MutableMatrix QueryRows(Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<MutableMatrix>(tensor, range.sequence, range.query_begin, head);
}
inline Matrix KeyRows(const Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<Matrix>(tensor, range.sequence, range.key_begin, head);
}
inline MutableMatrix KeyRows(Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<MutableMatrix>(tensor, range.sequence, range.key_begin, head);
}

template <typename T>
auto LseOf(T& lse, int64_t first_token, int64_t head) {
  return lse.template data<float>() + head * lse.stride(0) + first_token;
}

// [queries, keys] of one head of a tensor [batch, heads, query_len, key_len].
template <typename M, typename T>
M ScoresOf(T& tensor, int64_t sequence, int64_t head) {
  if (tensor.empty()) return {};
  return {tensor.template data<float>() + sequence * tensor.stride(0) + head * tensor.stride(1),
          tensor.stride(2), tensor.stride(3)};
}

// `unit` and what decodes bf16 are left to the caller.
HeadProblem ProblemOf(const AttentionProblem& problem, const AttentionInputs& inputs,
                      const PreparedMask& mask, int64_t sequence, int64_t head);

}  // namespace headlight::attention
