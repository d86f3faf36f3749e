// Weights and statistics of one head: scores of a strip again, then each weight is
// 2^(score - lse), divided in the end by the row's sum: lse is rounded to f32, and where scores are
// large, its rounding would be seen in the weights. Memory does not grow with the keys.

#if defined(HEADLIGHT_KERNELS_ATTENTION_PROBE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_PROBE_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_PROBE_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_PROBE_INL_H_
#endif

#include "headlight/kernels/attention/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// Puts the weights of a query to the keys from `key` on where they belong among its largest, which
// descend: `weights_to` and `keys_to`. Keys come in order, so that the first of equals stays first.
inline void AddLargest(const float* weights, int64_t vectors, int64_t key, int64_t top,
                       float* weights_to, int32_t* keys_to) {
  const D d;
  for (int64_t v = 0; v < vectors * kLanes; v += kLanes) {
    const V least = hn::Set(d, weights_to[top - 1]);
    if (hn::AllFalse(d, hn::Gt(hn::LoadU(d, weights + v), least))) continue;
    for (int64_t lane = v; lane < v + kLanes; ++lane) {
      if (!(weights[lane] > weights_to[top - 1])) continue;
      int64_t place = top - 1;
      for (; place > 0 && weights_to[place - 1] < weights[lane]; --place) {
        weights_to[place] = weights_to[place - 1];
        keys_to[place] = keys_to[place - 1];
      }
      weights_to[place] = weights[lane];
      keys_to[place] = static_cast<int32_t>(key + lane);
    }
  }
}

// Divides what was summed up for query i by the sum of its weights, which is 1 but for rounding.
inline void FinishProbe(const HeadProblem& head, const ProbeTask& task, int64_t i,
                        const ForwardScratch& scratch) {
  const float sum = scratch.sum[i - task.begin];
  const ProbeStatistics& to = task.statistics;
  if (to.entropy != nullptr) {
    WriteStatistics(scratch.statistics[i - task.begin], sum, i, to);
  }
  if (sum == 0) return;  // nothing to attend to
  const float inverse = 1 / sum;
  for (int64_t place = 0; place < to.top; ++place) to.top_weights[i * to.top + place] *= inverse;
  for (int64_t j = 0; j < head.keys && task.weights.data != nullptr; ++j) {
    task.weights.row(i)[j * task.weights.column_stride] *= inverse;
  }
}

// An lse so large that what distinguishes it from the row's largest score is lost in its rounding
// is that score.
inline float UnroundedLse(float lse, float largest) {
  constexpr float kRounding = 4 * std::numeric_limits<float>::epsilon();
  return std::abs(lse) >= kExactScores && std::abs(lse - largest) <= kRounding * std::abs(lse)
             ? largest
             : lse;
}

template <int R>
void ProbeStrip(const HeadProblem& head, const ProbeTask& task, const KeyBlock& block, int64_t row,
                ForwardScratch& scratch) {
  const StripRange range =
      RangeOfStrip(head, row, R, block.begin, block.count, ForwardOperands::kFirstVectors);
  if (range.empty()) return;
  const int64_t rows = std::min<int64_t>(R, head.queries - row), at = row - task.begin;
  const float scale = head.scale * kLog2E;
  float largest[R], lses[R], sums[R];
  ScoreStrip<R>(head, block, range, row, at, scratch, largest);
  for (int64_t r = 0; r < R; ++r) {
    const float lse = r < rows ? task.lse[row + r] : 0;
    lses[r] = lse == kNegativeInfinity
                  ? 0
                  : RelativeTo(UnroundedLse(lse * kLog2E, largest[r] * scale), largest[r], scale,
                               range, scratch.strip + r * kStripStride);
  }
  if (scratch.statistics == nullptr) {
    ExponentiateStrip<R, StoreF32>(range, scale, lses, scratch.strip, sums, NoStatistics());
  } else {
    ExponentiateStrip<R, StoreF32>(
        range, scale, lses, scratch.strip, sums,
        StripStatistics{row, block.begin, scratch.key_set, scratch.statistics + at});
  }
  const int64_t first = range.first_vector * kLanes;
  const int64_t vectors = range.last_vector - range.first_vector;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t i = row + r;
    const float* weights = scratch.strip + r * kStripStride + first;
    scratch.sum[at + r] += sums[r];
    if (const ProbeStatistics& to = task.statistics; to.top > 0) {
      AddLargest(weights, vectors, block.begin + first, to.top, to.top_weights + i * to.top,
                 to.top_keys + i * to.top);
    }
    if (task.weights.data == nullptr) continue;
    float* to = task.weights.row(i) + (block.begin + first) * task.weights.column_stride;
    const int64_t keys = std::min(vectors * kLanes, block.count - first);
    for (int64_t j = 0; j < keys; ++j) to[j * task.weights.column_stride] = weights[j];
  }
}

inline void ProbeKeyBlock(const HeadProblem& head, const ProbeTask& task, int64_t begin,
                          int64_t count, ForwardScratch& scratch) {
  const int64_t rows = task.end - task.begin;
  const KeyBlock block{begin, count};
  scratch.operands.PackKeys(head, begin, count);
  if (scratch.key_table.present()) {
    scratch.key_table.Pack(head.relative_keys, task.begin, rows, begin, block.count, true);
  }
  if (scratch.key_set != nullptr) LoadKeySet(task.key_set, begin, count, scratch.key_set);
  ForStrips(rows, [&]<int R>(int64_t at, int64_t)
                      HWY_ATTR { ProbeStrip<R>(head, task, block, task.begin + at, scratch); });
}

// All keys of queries [task.begin, task.end).
inline void ProbeRows(const HeadProblem& head, const ProbeTask& task) {
  const int64_t rows = task.end - task.begin;
  const int64_t first_key = head.intervals.Begin(task.begin);
  const int64_t last_key = head.intervals.End(task.end - 1);
  const int64_t first_block = first_key / kKeyBlock * kKeyBlock;
  const int64_t most_keys = head.blocks.present() ? head.intervals.limit : last_key - first_block;
  ForwardScratch scratch(head, rows, std::clamp<int64_t>(most_keys, 0, kKeyBlock),
                         WithStatistics(task.statistics));
  StartQueries(head, task.begin, rows, scratch);
  if (head.blocks.present()) {
    ForKeyParts(head.blocks, task.begin, head.intervals.limit, [&](int64_t key, int64_t count) {
      if (key + count <= first_key || key >= last_key) return;
      ProbeKeyBlock(CutHead(head, task.end, key + count), task, key, count, scratch);
    });
  } else {
    for (int64_t begin = first_block; begin < last_key; begin += kKeyBlock) {
      ProbeKeyBlock(head, task, begin, std::min(kKeyBlock, last_key - begin), scratch);
    }
  }
  for (int64_t i = task.begin; i < task.end; ++i) {
    FinishProbe(head, task, i, scratch);
  }
}

// The weights and statistics of queries [task.begin, task.end).
inline void Probe(const HeadProblem& head, const ProbeTask& task) {
  const ProbeStatistics& to = task.statistics;
  for (int64_t i = task.begin; i < task.end; ++i) {
    if (to.top > 0) {
      std::fill_n(to.top_weights + i * to.top, to.top, 0.0f);
      std::fill_n(to.top_keys + i * to.top, to.top, -1);
    }
    for (int64_t j = 0; j < head.keys && task.weights.data != nullptr; ++j) {
      task.weights.row(i)[j * task.weights.column_stride] = 0;
    }
  }
  if (task.end == task.begin) return;
  if (!head.blocks.present()) return ProbeRows(head, task);
  ForQueryParts(head.blocks, task.begin, task.end, kForwardRows, [&](int64_t begin, int64_t end) {
    ProbeTask part = task;
    part.begin = begin;
    part.end = end;
    ProbeRows(head, part);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_PROBE_INL_H_
