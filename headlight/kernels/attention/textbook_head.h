// One head of one sequence over whole n x n matrices: a matrix product, a mask, a softmax, dropout,
// a product (Vaswani et al. 2017, section 3.2.1). All matrices have adjacent columns, and sizes
// above 0.
#pragma once

#include <algorithm>

#include "headlight/kernels/attention/attention_fused.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/gemm/linear.h"
#include "headlight/tensor/growing_tensor.h"

namespace headlight::attention {

// One worker's temporaries.
struct TextbookScratch {
  Precision precision = Precision::kF32;  // of the products
  PackedLinear packed;
  GrowingTensor positions{MemoryTag::kWorkspace};       // [Lq, reached rows of a table]
  GrowingTensor score_gradient{MemoryTag::kWorkspace};  // [Lq, Lk]
};

// One head of one sequence.
struct TextbookHead {
  const AttentionProblem& problem;
  int64_t sequence, head;
  SequenceRange range;
  RowIntervals intervals;          // of the mask
  Tensor query, key, value;        // [Lq, head_dim], [Lk, head_dim], [Lk, value_dim]
  Tensor weights, dropped, flags;  // [Lq, Lk]

  bool drops() const { return problem.dropout.rate > 0; }
  // What values are multiplied with.
  const Tensor& applied() const { return drops() ? dropped : weights; }
};

// Gradients of it. Those of keys and values, and of tables, are added to: heads of a group,
// and sequences, share them. Tables may be empty.
struct TextbookGradients {
  Tensor out, query, key, value;
  Tensor relative_keys, relative_values;  // [table rows, width]
};

// Fills the matrices and out [Lq, value_dim], and lse [1, Lq] unless it is empty. Returns how many
// scores were replaced.
int64_t TextbookForwardHead(TextbookHead& head, TextbookScratch& scratch, Tensor& out, Tensor& lse);
void TextbookBackwardHead(const TextbookHead& head, TextbookScratch& scratch,
                          TextbookGradients& gradients);

// The rows of a relative table (or its gradient) that the distances of a sequence reach, [rows,
// width]; empty for an empty table.
Tensor ReachedTableRows(const Tensor& table, int64_t head, const SequenceRange& range);

// Rows may lie apart.
template <typename T>
void FillZero(Tensor matrix) {
  const View<T> rows = matrix.view<T>();
  for (int64_t i = 0; i < rows.size(0); ++i) std::fill_n(rows.row(i), rows.size(1), T{0});
}

}  // namespace headlight::attention
