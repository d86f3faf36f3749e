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

// Scores of one row to weights, in place; returns their sum. `lse` in units of log2.
inline float WeightRow(float* scores, int64_t vectors, float scale, float lse) {
  const D d;
  V sum = hn::Zero(d);
  for (int64_t v = 0; v < vectors * kLanes; v += kLanes) {
    const V weight = Exp2(hn::MulSub(hn::LoadU(d, scores + v), hn::Set(d, scale), hn::Set(d, lse)));
    sum = hn::Add(sum, weight);
    hn::StoreU(weight, d, scores + v);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Adds what the weights of query i to the keys from `key` on give to its statistics.
inline void AddStatistics(const float* weights, int64_t vectors, int64_t i, int64_t key,
                          const float* key_set, const ProbeStatistics& to) {
  const D d;
  const V zero = hn::Zero(d);
  V information = zero, distance = zero, absolute = zero, mass = zero;
  V largest = zero, largest_distance = zero;
  for (int64_t v = 0; v < vectors; ++v) {
    const V weight = hn::LoadU(d, weights + v * kLanes);
    const V away = hn::Iota(d, static_cast<float>(key + v * kLanes - i));
    // ln of the smallest normal number in place of ln 0: 0 * it is 0.
    const V log = hn::Log(d, hn::Max(weight, hn::Set(d, 1.17549435e-38f)));
    information = hn::MulAdd(weight, log, information);
    distance = hn::MulAdd(weight, away, distance);
    absolute = hn::MulAdd(weight, hn::Abs(away), absolute);
    if (key_set != nullptr) {
      mass = hn::MulAdd(weight, hn::LoadU(d, key_set + v * kLanes), mass);
    }
    const hn::Mask<D> larger = hn::Gt(weight, largest);
    largest = hn::IfThenElse(larger, weight, largest);
    largest_distance = hn::IfThenElse(larger, away, largest_distance);
  }
  to.entropy[i] -= hn::GetLane(hn::SumOfLanes(d, information));
  to.distance[i] += hn::GetLane(hn::SumOfLanes(d, distance));
  to.absolute_distance[i] += hn::GetLane(hn::SumOfLanes(d, absolute));
  if (key_set != nullptr) to.set_mass[i] += hn::GetLane(hn::SumOfLanes(d, mass));
  HWY_ALIGN float weight_lanes[kLanes], distance_lanes[kLanes];
  hn::Store(largest, d, weight_lanes);
  hn::Store(largest_distance, d, distance_lanes);
  float most = to.largest_weight[i];
  int64_t most_key = to.largest_key[i];
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const int64_t lane_key = i + static_cast<int64_t>(distance_lanes[lane]);
    const bool first_of_equals = weight_lanes[lane] == most && most > 0 && lane_key < most_key;
    if (weight_lanes[lane] > most || first_of_equals) {
      most = weight_lanes[lane];
      most_key = lane_key;
    }
  }
  to.largest_weight[i] = most;
  to.largest_key[i] = static_cast<int32_t>(most_key);
}

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
inline void FinishProbe(const HeadProblem& head, const ProbeTask& task, int64_t i, float sum) {
  if (sum == 0) return;  // nothing to attend to
  const float inverse = 1 / sum;
  const ProbeStatistics& to = task.statistics;
  if (to.entropy != nullptr) {
    // -sum (w / S) ln (w / S) = (-sum w ln w) / S + ln S
    to.entropy[i] = to.entropy[i] * inverse + std::log(sum);
    to.distance[i] *= inverse;
    to.absolute_distance[i] *= inverse;
    to.largest_weight[i] *= inverse;
    if (to.set_mass != nullptr) to.set_mass[i] *= inverse;
    for (int64_t place = 0; place < to.top; ++place) to.top_weights[i * to.top + place] *= inverse;
  }
  for (int64_t j = 0; j < head.keys && task.weights.data != nullptr; ++j) {
    task.weights.row(i)[j * task.weights.column_stride] *= inverse;
  }
}

template <int R>
void ProbeStrip(const HeadProblem& head, const ProbeTask& task, const KeyBlock& block, int64_t row,
                const float* key_set, ForwardScratch& scratch) {
  const StripRange range = RangeOfStrip(head, row, R, block.begin, block.count);
  if (range.empty()) return;
  const int64_t rows = std::min<int64_t>(R, head.queries - row);
  scratch.operands.PackQueries<R>(head, row, rows);
  float largest[R];
  ScoreStrip<R>(head, block, range, row, scratch, largest);
  const int64_t first = range.first_vector * kLanes;
  const int64_t vectors = range.last_vector - range.first_vector;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t i = row + r;
    float* weights = scratch.strip + r * kStripStride + first;
    const float lse = task.lse[i] == kNegativeInfinity ? 0 : task.lse[i] * kLog2E;
    scratch.sum[i - task.begin] += WeightRow(weights, vectors, head.scale * kLog2E, lse);
    if (task.statistics.entropy != nullptr) {
      AddStatistics(weights, vectors, i, block.begin + first,
                    key_set == nullptr ? nullptr : key_set + first, task.statistics);
    }
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
  const bool wants_set = task.statistics.set_mass != nullptr;
  float key_set[kKeyBlock + kLanes] = {};
  for (int64_t j = 0; j < block.count && wants_set; ++j) {
    key_set[j] = task.key_set[begin + j] != 0 ? 1 : 0;
  }
  for (int64_t at = 0; at < rows; at += kTileRows) {
    ProbeStrip<kTileRows>(head, task, block, task.begin + at, wants_set ? key_set : nullptr,
                          scratch);
  }
}

// All keys of queries [task.begin, task.end).
inline void ProbeRows(const HeadProblem& head, const ProbeTask& task) {
  const int64_t rows = task.end - task.begin;
  const int64_t first_key = head.intervals.Begin(task.begin);
  const int64_t last_key = head.intervals.End(task.end - 1);
  const int64_t first_block = first_key / kKeyBlock * kKeyBlock;
  const int64_t most_keys = head.blocks.present() ? head.intervals.limit : last_key - first_block;
  ForwardScratch scratch(head, rows, std::clamp<int64_t>(most_keys, 0, kKeyBlock));
  std::fill_n(scratch.sum, rows, 0.0f);
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
    FinishProbe(head, task, i, scratch.sum[i - task.begin]);
  }
}

// The weights and statistics of queries [task.begin, task.end).
inline void Probe(const HeadProblem& head, const ProbeTask& task) {
  const ProbeStatistics& to = task.statistics;
  for (int64_t i = task.begin; i < task.end; ++i) {
    if (to.entropy != nullptr) {
      to.entropy[i] = to.distance[i] = to.absolute_distance[i] = to.largest_weight[i] = 0;
      to.largest_key[i] = -1;
      if (to.set_mass != nullptr) to.set_mass[i] = 0;
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
