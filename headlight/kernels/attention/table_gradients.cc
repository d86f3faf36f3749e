#include "headlight/kernels/attention/table_gradients.h"

#include <algorithm>

#include "headlight/base/threads.h"

namespace headlight::attention {

TableGradients::TableGradients(const AttentionProblem& problem, AttentionGradients& gradients)
    : heads_(problem.heads) {
  for (Tensor* total : {&gradients.relative_keys, &gradients.relative_values}) {
    if (total->empty()) continue;
    tables_.push_back({total, total->size(1) * total->size(2), {}});
    sequence_floats_ += heads_ * tables_.back().floats;
  }
}

int64_t TableGradients::WaveOf(int64_t batch) const {
  constexpr int64_t kMostFloats = 4 << 20;  // 16 MiB
  if (sequence_floats_ == 0) return batch;
  return std::clamp<int64_t>(kMostFloats / sequence_floats_, 1, std::max<int64_t>(batch, 1));
}

void TableGradients::BeginWave(int64_t sequences) {
  sequences_ = sequences;
  for (Table& table : tables_) {
    table.sums =
        Tensor::Zeros({sequences * heads_, table.floats}, DType::kF32, MemoryTag::kWorkspace);
  }
}

MutableMatrix TableGradients::Of(const Tensor& total, int64_t sequence, int64_t head) {
  for (Table& table : tables_) {
    if (table.total != &total) continue;
    float* sums = table.sums.data<float>() + (sequence * heads_ + head) * table.floats;
    return {sums, total.size(2), 1};
  }
  return {};
}

void TableGradients::EndWave() {
  for (Table& table : tables_) {
    Tensor& total = *table.total;
    const int64_t width = total.size(2);
    ParallelFor(total.size(1), [&](int64_t row, int) {
      for (int64_t s = 0; s < sequences_ * heads_; ++s) {
        const int64_t head = total.size(0) == 1 ? 0 : s % heads_;
        const float* from = table.sums.data<float>() + s * table.floats + row * width;
        float* to = total.data<float>() + head * total.stride(0) + row * total.stride(1);
        for (int64_t c = 0; c < width; ++c) to[c] += from[c];
      }
    });
  }
}

}  // namespace headlight::attention
