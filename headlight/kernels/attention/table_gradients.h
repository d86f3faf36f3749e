// Sums of the gradients of relative-position tables.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/kernels/attention/attention_fused.h"
#include "headlight/tensor/tensor.h"

namespace headlight::attention {

// Gradients of the tables of relative positions: each head of each sequence sums its own, then they
// are added in the order of sequences and heads. A wave of sequences at a time bounds the memory.
class TableGradients {
 public:
  TableGradients(const AttentionProblem& problem, AttentionGradients& gradients);

  // Sequences of one wave.
  int64_t WaveOf(int64_t batch) const;

  void BeginWave(int64_t sequences);
  // The sums of one head of the wave's sequence; none when `total` is not a wanted gradient.
  MutableMatrix Of(const Tensor& total, int64_t sequence, int64_t head);
  void EndWave();

 private:
  struct Table {
    Tensor* total;
    int64_t floats;  // of one head
    Tensor sums;     // [wave * heads, floats]
  };
  int64_t heads_, sequences_ = 0, sequence_floats_ = 0;
  std::vector<Table> tables_;
};

}  // namespace headlight::attention
