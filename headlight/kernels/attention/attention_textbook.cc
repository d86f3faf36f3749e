// The loops over heads and sequences: all at once, or one head after another.
#include "headlight/kernels/attention/attention_textbook.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_mask.h"
#include "headlight/kernels/attention/textbook_head.h"

namespace headlight::attention {
namespace {

void CheckColumns(const Textbook& textbook, const char* name, const Tensor& tensor) {
  if (tensor.empty()) return;
  if (tensor.shape().rank() != 3) {
    throw Error(ErrorKind::kShape, "attention {}: {} must be [tokens, heads, width], found {}",
                Name(textbook.implementation), name, tensor.shape().ToString());
  }
  if (tensor.stride(2) == 1) return;
  throw Error(ErrorKind::kShape, "attention {}: columns of {} must be adjacent, found stride {}",
              Name(textbook.implementation), name, tensor.stride(2));
}

// Rows of lse that attend to nothing.
template <typename T>
void FillHidden(Tensor lse) {
  const View<T> rows = lse.view<T>();
  for (int64_t h = 0; h < rows.size(0); ++h) {
    std::fill_n(rows.row(h), rows.size(1), -std::numeric_limits<T>::infinity());
  }
}

// All heads of [tokens, heads, width].
template <typename T>
void FillHeadsZero(const Tensor& tensor) {
  if (tensor.empty()) return;
  for (int64_t head = 0; head < tensor.size(1); ++head) FillZero<T>(tensor.Select(1, head));
}

// Some heads' tensors of all tokens, [tokens, width] each.
struct HeadRows {
  Tensor query, key, value;
};

// One pass over all heads and sequences.
template <typename T>
class Pass {
 public:
  Pass(const Textbook& textbook, const AttentionProblem& problem, const AttentionInputs& inputs)
      : textbook_(textbook),
        problem_(problem),
        inputs_(inputs),
        mask_(problem, PreparedMask::For::kForward),
        copies_(textbook.implementation == AttentionImplementation::kPerHead),
        scratch_(static_cast<size_t>(NumThreads())) {
    for (TextbookScratch& scratch : scratch_) scratch.precision = problem.precision;
    for (int64_t s = 0; s < problem.batch(); ++s) {
      const SequenceRange range = RangeOf(problem, s);
      first_score_.push_back(scores_);
      scores_ += problem.heads * range.queries * range.keys;
    }
  }

  void Forward(AttentionOutputs& outputs);
  void Backward(const Tensor& out_gradient, AttentionGradients& gradients);

 private:
  using Body = std::function<void(int64_t share, TextbookScratch& scratch)>;
  // Shares run side by side; where there are too few of them, the products inside do.
  void RunShares(int64_t shares, const Body& body) {
    if (shares >= NumThreads()) {
      ParallelFor(shares, [&](int64_t share, int worker) {
        body(share, scratch_[static_cast<size_t>(worker)]);
      });
    } else {
      RunInOrder(shares, body);
    }
  }
  void RunInOrder(int64_t shares, const Body& body) {
    for (int64_t share = 0; share < shares; ++share) body(share, scratch_[0]);
  }

  int64_t group() const { return problem_.heads / problem_.kv_heads; }
  // A head as a window on [tokens, heads, width], or as a copy.
  Tensor RowsOf(const Tensor& tensor, int64_t head) const {
    const Tensor rows = tensor.Select(1, head);
    return copies_ ? rows.Clone(MemoryTag::kWorkspace) : rows;
  }
  HeadRows RowsOfHead(int64_t head) const {
    return {RowsOf(inputs_.query, head), RowsOf(inputs_.key, head / group()),
            RowsOf(inputs_.value, head / group())};
  }

  Tensor QueriesOf(const Tensor& rows, int64_t sequence) const {
    const SequenceRange range = RangeOf(problem_, sequence);
    return rows.Slice(0, range.query_begin, range.query_begin + range.queries);
  }
  Tensor KeysOf(const Tensor& rows, int64_t sequence) const {
    const SequenceRange range = RangeOf(problem_, sequence);
    return rows.Slice(0, range.key_begin, range.key_begin + range.keys);
  }
  TextbookHead ShareOf(const HeadRows& rows, int64_t sequence, int64_t head) const;

  void ForwardShareOf(const HeadRows& rows, int64_t sequence, int64_t head,
                      TextbookScratch& scratch, const Tensor& out);
  void BackwardShareOf(const HeadRows& rows, int64_t sequence, int64_t head,
                       TextbookScratch& scratch, const TextbookGradients& gradients);
  void BackwardNaive(const Tensor& out_gradient, AttentionGradients& gradients);
  void BackwardPerHead(const Tensor& out_gradient, AttentionGradients& gradients);

  const Textbook& textbook_;
  const AttentionProblem& problem_;
  const AttentionInputs& inputs_;
  const PreparedMask mask_;
  const bool copies_;
  std::vector<int64_t> first_score_;  // of each sequence, in the matrices
  int64_t scores_ = 0;
  std::vector<TextbookScratch> scratch_;  // of each worker
  Tensor lse_;                            // of the caller; may be empty
  std::atomic<int64_t> replaced_{0};
};

template <typename T>
TextbookHead Pass<T>::ShareOf(const HeadRows& rows, int64_t sequence, int64_t head) const {
  const SequenceRange range = RangeOf(problem_, sequence);
  const int64_t size = range.queries * range.keys;
  const int64_t first = first_score_[static_cast<size_t>(sequence)] + head * size;
  const auto matrix = [&](const GrowingTensor& whole) {
    return whole.tensor().Slice(0, first, first + size).Reshape({range.queries, range.keys});
  };
  const AttentionPass::Matrices& matrices = textbook_.matrices;
  return {problem_,
          sequence,
          head,
          range,
          mask_.IntervalsOf(sequence),
          QueriesOf(rows.query, sequence),
          KeysOf(rows.key, sequence),
          KeysOf(rows.value, sequence),
          matrix(matrices.weights),
          problem_.dropout.rate > 0 ? matrix(matrices.dropped) : Tensor(),
          matrix(matrices.flags)};
}

template <typename T>
void Pass<T>::ForwardShareOf(const HeadRows& rows, int64_t sequence, int64_t head,
                             TextbookScratch& scratch, const Tensor& out) {
  const SequenceRange range = RangeOf(problem_, sequence);
  if (range.queries == 0) return;
  Tensor out_rows = QueriesOf(out, sequence);
  Tensor lse;
  if (!lse_.empty()) {
    lse = lse_.Slice(0, head, head + 1)
              .Slice(1, range.query_begin, range.query_begin + range.queries);
  }
  if (range.keys == 0) {
    FillZero<T>(out_rows);
    if (!lse.empty()) FillHidden<T>(lse);
    return;
  }
  TextbookHead share = ShareOf(rows, sequence, head);
  replaced_ += TextbookForwardHead(share, scratch, out_rows, lse);
}

template <typename T>
void Pass<T>::Forward(AttentionOutputs& outputs) {
  lse_ = outputs.lse;
  if (scores_ == 0) {
    FillHeadsZero<T>(outputs.out);
    if (!lse_.empty()) FillHidden<T>(lse_);
    return;
  }
  AttentionPass::Matrices& matrices = textbook_.matrices;
  matrices.weights.Get({scores_}, problem_.dtype);
  matrices.flags.Get({scores_}, DType::kU8);
  if (problem_.dropout.rate > 0) matrices.dropped.Get({scores_}, problem_.dtype);
  const int64_t batch = problem_.batch();
  if (!copies_) {
    RunShares(batch * problem_.heads, [&](int64_t share, TextbookScratch& scratch) {
      const int64_t sequence = share / problem_.heads, head = share % problem_.heads;
      ForwardShareOf(RowsOfHead(head), sequence, head, scratch, outputs.out.Select(1, head));
    });
  } else {
    for (int64_t head = 0; head < problem_.heads; ++head) {
      const HeadRows rows = RowsOfHead(head);
      const Tensor out = Tensor::Uninitialized({problem_.query_tokens(), problem_.value_dim},
                                               problem_.dtype, MemoryTag::kWorkspace);
      RunShares(batch, [&](int64_t sequence, TextbookScratch& scratch) {
        ForwardShareOf(rows, sequence, head, scratch, out);
      });
      outputs.out.Select(1, head).CopyFrom(out);
    }
  }
  outputs.replaced_scores = replaced_;
}

// `gradients` are those of the head over all tokens.
template <typename T>
void Pass<T>::BackwardShareOf(const HeadRows& rows, int64_t sequence, int64_t head,
                              TextbookScratch& scratch, const TextbookGradients& gradients) {
  const SequenceRange range = RangeOf(problem_, sequence);
  if (range.queries == 0) return;
  const Tensor query = QueriesOf(gradients.query, sequence);
  if (range.keys == 0) return FillZero<T>(query);
  TextbookGradients own{QueriesOf(gradients.out, sequence),
                        query,
                        KeysOf(gradients.key, sequence),
                        KeysOf(gradients.value, sequence),
                        ReachedTableRows(gradients.relative_keys, head, range),
                        ReachedTableRows(gradients.relative_values, head, range)};
  TextbookBackwardHead(ShareOf(rows, sequence, head), scratch, own);
}

// A task is a key/value head of a sequence, so that its group adds to one gradient in order; where
// tables have gradients, sequences follow one another too, and heads that share a table.
template <typename T>
void Pass<T>::BackwardNaive(const Tensor& out_gradient, AttentionGradients& gradients) {
  const auto run = [&](int64_t sequence, int64_t kv_head, TextbookScratch& scratch) {
    for (int64_t head = kv_head * group(); head < (kv_head + 1) * group(); ++head) {
      BackwardShareOf(RowsOfHead(head), sequence, head, scratch,
                      {out_gradient.Select(1, head), gradients.query.Select(1, head),
                       gradients.key.Select(1, kv_head), gradients.value.Select(1, kv_head),
                       gradients.relative_keys, gradients.relative_values});
    }
  };
  const int64_t kv_heads = problem_.kv_heads;
  bool tables = false, shared = false;
  for (const Tensor* table : {&gradients.relative_keys, &gradients.relative_values}) {
    tables = tables || !table->empty();
    shared = shared || (!table->empty() && table->size(0) == 1);
  }
  if (!tables) {
    return RunShares(problem_.batch() * kv_heads, [&](int64_t share, TextbookScratch& scratch) {
      run(share / kv_heads, share % kv_heads, scratch);
    });
  }
  for (int64_t sequence = 0; sequence < problem_.batch(); ++sequence) {
    const auto body = [&](int64_t kv_head, TextbookScratch& scratch) {
      run(sequence, kv_head, scratch);
    };
    shared ? RunInOrder(kv_heads, body) : RunShares(kv_heads, body);
  }
}

template <typename T>
void AddRows(const Tensor& from, Tensor to) {
  for (int64_t i = 0; i < to.size(0); ++i) {
    const T* row = from.view<T>().row(i);
    for (int64_t c = 0; c < to.size(1); ++c) to.view<T>().row(i)[c] += row[c];
  }
}

template <typename T>
void Pass<T>::BackwardPerHead(const Tensor& out_gradient, AttentionGradients& gradients) {
  const bool tables = !gradients.relative_keys.empty() || !gradients.relative_values.empty();
  const auto zeros = [](const Tensor& like) {
    return Tensor::Zeros(like.shape(), like.dtype(), MemoryTag::kWorkspace);
  };
  for (int64_t head = 0; head < problem_.heads; ++head) {
    const HeadRows rows = RowsOfHead(head);
    const TextbookGradients own{
        RowsOf(out_gradient, head), zeros(rows.query),       zeros(rows.key),
        zeros(rows.value),          gradients.relative_keys, gradients.relative_values};
    const auto body = [&](int64_t sequence, TextbookScratch& scratch) {
      BackwardShareOf(rows, sequence, head, scratch, own);
    };
    tables ? RunInOrder(problem_.batch(), body) : RunShares(problem_.batch(), body);
    gradients.query.Select(1, head).CopyFrom(own.query);
    AddRows<T>(own.key, gradients.key.Select(1, head / group()));
    AddRows<T>(own.value, gradients.value.Select(1, head / group()));
  }
}

template <typename T>
void Pass<T>::Backward(const Tensor& out_gradient, AttentionGradients& gradients) {
  FillHeadsZero<T>(gradients.key);
  FillHeadsZero<T>(gradients.value);
  if (scores_ == 0) return FillHeadsZero<T>(gradients.query);
  if (copies_) {
    BackwardPerHead(out_gradient, gradients);
  } else {
    BackwardNaive(out_gradient, gradients);
  }
}

}  // namespace

void TextbookForward(const Textbook& textbook, const AttentionProblem& problem,
                     const AttentionInputs& inputs, AttentionOutputs& outputs) {
  CheckColumns(textbook, "query", inputs.query);
  CheckColumns(textbook, "key", inputs.key);
  CheckColumns(textbook, "value", inputs.value);
  CheckColumns(textbook, "out", outputs.out);
  DispatchFloat(problem.dtype,
                [&]<typename T>() { Pass<T>(textbook, problem, inputs).Forward(outputs); });
}

void TextbookBackward(const Textbook& textbook, const AttentionProblem& problem,
                      const AttentionInputs& inputs, const Tensor& out_gradient,
                      AttentionGradients& gradients) {
  CheckColumns(textbook, "out gradient", out_gradient);
  CheckColumns(textbook, "query gradient", gradients.query);
  CheckColumns(textbook, "key gradient", gradients.key);
  CheckColumns(textbook, "value gradient", gradients.value);
  DispatchFloat(problem.dtype, [&]<typename T>() {
    Pass<T>(textbook, problem, inputs).Backward(out_gradient, gradients);
  });
}

}  // namespace headlight::attention
