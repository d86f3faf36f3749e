// Few queries against a long cache of keys and values, shared out.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/kernels/attention/head_problem.h"

namespace headlight::attention {

// The sequences of a problem that decode. Their key/value heads and splits of keys are the shares
// of work; then each head merges its splits.
class DecodingWork {
 public:
  // `stored`: the tensors in bf16, whose keys and values are read; or null.
  DecodingWork(const AttentionProblem& problem, const AttentionInputs& inputs,
               const AttentionInputs* stored, const PreparedMask& mask);

  int64_t shares() const { return shares_; }
  int64_t merges() const { return static_cast<int64_t>(sequences_.size()) * problem_.heads; }
  bool Has(int64_t sequence) const;

  // Returns the number of replaced scores.
  int64_t RunShare(int64_t number) const;

  void Merge(int64_t number, AttentionOutputs& outputs, Tensor& lse) const;

 private:
  struct Sequence {
    int64_t sequence;
    int64_t splits;
    int64_t first_share;  // of kv_heads * splits
    float* sums;          // [heads][splits][SplitFloats]
  };

  HeadProblem Head(int64_t sequence, int64_t head) const;

  const AttentionProblem& problem_;
  const AttentionInputs& inputs_;
  const AttentionInputs* stored_;
  const PreparedMask& mask_;
  std::vector<Sequence> sequences_;
  int64_t shares_ = 0;
  Tensor sums_;
};

}  // namespace headlight::attention
