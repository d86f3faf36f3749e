// The fused forward pass of one head: strips of kRows queries against packed key blocks.

#if defined(HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include "headlight/kernels/attention/blocks-inl.h"
#include "headlight/kernels/attention/modifier-inl.h"
#include "headlight/kernels/attention/relative-inl.h"
#include "headlight/kernels/attention/statistics-inl.h"
#ifdef HEADLIGHT_ATTENTION_BF16
#include "headlight/kernels/attention/bf16-forward-operands-inl.h"
#else
#include "headlight/kernels/attention/forward-operands-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// Workspace of a task, carved out of WorkerScratch. Its size does not grow with the sequence.
struct ForwardScratch {
  enum class With { kNothing, kStatistics, kStatisticsAndSet };

  ForwardScratch(const HeadProblem& head, int64_t rows, int64_t block_keys,
                 With with = With::kNothing)
      : value_width(RoundUp(head.value_dim, kLanes)) {
    const int64_t out_size = RoundUp(rows, kRows) * value_width;
    const int64_t row_size = RoundUp(RoundUp(rows, kRows) + 2 * kLanes, kLanes);
    const int64_t strip_size = kRows * kStripStride;
    const int64_t statistics_size =
        with == With::kNothing ? 0 : RoundUp(RoundUp(rows, kRows) * kStatisticsFloats, 16);
    const int64_t set_size = with == With::kStatisticsAndSet ? kKeyBlock + kLanes : 0;
    float* at =
        WorkerScratch(ForwardOperands::Floats(head, rows, block_keys) + out_size + 2 * row_size +
                      2 * strip_size + statistics_size + set_size + kRows * kDistanceStride +
                      PackedTable::Floats(head.relative_keys, head.head_dim, rows, block_keys) +
                      PackedTable::Floats(head.relative_values, head.value_dim, rows, block_keys));
    const auto take = [&at](int64_t floats) {
      float* taken = at;
      at += floats;
      return taken;
    };
    operands = ForwardOperands::Place(head, block_keys,
                                      take(ForwardOperands::Floats(head, rows, block_keys)));
    out = take(out_size);
    strip = take(strip_size);
    moved = take(strip_size);
    if (statistics_size > 0) statistics = reinterpret_cast<RowStatistics*>(take(statistics_size));
    if (set_size > 0) key_set = take(set_size);
    products = take(kRows * kDistanceStride);
    largest = take(row_size);
    sum = take(row_size);
    key_table = PackedTable::Place(head.relative_keys, head.head_dim, rows, block_keys, &at);
    value_table = PackedTable::Place(head.relative_values, head.value_dim, rows, block_keys, &at);
  }

  int64_t value_width;
  ForwardOperands operands;  // the key block and a strip of queries, packed
  float* out;                // [rows, value_width], not yet divided by sum; unset before a key
  float *largest, *sum;  // [rows]: largest score so far (times log2 e), sum of 2^(score - largest)
  float* strip;          // scores, then weights, of one strip
  float* moved;          // weights of one strip in distance order
  float* products;       // of one strip's queries with relative keys
  PackedTable key_table, value_table;
  // Of the task's rows, and the key block's part of the key set; nullptr: unwanted.
  RowStatistics* statistics = nullptr;
  float* key_set = nullptr;
  bool finite_values = true;
  int64_t replaced = 0;
};

// Masks a vector of each row of a strip, and replaces non-finite scores by 0 where that is asked
// for. Padded rows past the last query repeat it.
template <int R>
void ModifyScores(const HeadProblem& head, int64_t row, int64_t key, float* scores,
                  int64_t& replaced) {
  const D d;
  for (int r = 0; r < R; ++r) {
    const hn::Mask<D> kept = KeptLanes(head, std::min(row + r, head.queries - 1), key);
    float* at = scores + r * kStripStride;
    V value = hn::LoadU(d, at);
    if (head.replaces_nonfinite) {
      const hn::Mask<D> bad = hn::And(kept, hn::Not(hn::IsFinite(value)));
      if (row + r < head.queries) replaced += static_cast<int64_t>(hn::CountTrue(d, bad));
      value = hn::IfThenElse(bad, hn::Zero(d), value);
    }
    hn::StoreU(hn::IfThenElse(kept, value, hn::Set(d, kNegativeInfinity)), d, at);
  }
}

// The same where all rows keep the keys [begin, end) and nothing else masks.
template <int R>
HWY_INLINE void MaskScores(int64_t begin, int64_t end, int64_t key, float* scores) {
  const D d;
  const auto first = [&](int64_t keys) HWY_ATTR {
    return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(keys, 0, kLanes)));
  };
  const hn::Mask<D> kept = hn::And(first(end - key), hn::Not(first(begin - key)));
  for (int r = 0; r < R; ++r) {
    float* at = scores + r * kStripStride;
    hn::StoreU(hn::IfThenElse(kept, hn::LoadU(d, at), hn::Set(d, kNegativeInfinity)), d, at);
  }
}

struct StripScores {
  int64_t row;
  V* largest;  // of each row, lane by lane
  int64_t replaced;
  // Products with relative keys, and the place of the strip's first key among them; or nullptr.
  const float* products;
  int64_t place, first_key;
  bool modifies;  // by softcap or bias
  bool uniform;   // every row keeps the same keys
};

// The scores of NV vectors of keys after their product: modified, masked, and the running maximum
// of each row. Keys [full_begin, full_end) are kept by every row.
template <int R, int NV>
HWY_INLINE void FinishScores(const HeadProblem& head, int64_t key, int64_t full_begin,
                             int64_t full_end, float* scores, StripScores& strip) {
  const D d;
  if (strip.products != nullptr) {
    AddProducts<R>(strip.products, strip.place + key - strip.first_key, NV, scores);
  }
  if (strip.modifies) ModifyPanel(head, {strip.row, key, R, NV}, scores, nullptr);
  for (int v = 0; v < NV; ++v) {
    const int64_t first = key + v * kLanes;
    if (first < full_begin || first + kLanes > full_end) {
      if (strip.uniform) {
        MaskScores<R>(full_begin, full_end, first, scores + v * kLanes);
      } else {
        ModifyScores<R>(head, strip.row, first, scores + v * kLanes, strip.replaced);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    V largest = strip.largest[r];
    for (int v = 0; v < NV; ++v) {
      largest = hn::Max(hn::LoadU(d, scores + r * kStripStride + v * kLanes), largest);
    }
    strip.largest[r] = largest;
  }
}

// NV vectors of scores (unscaled) of a panel into the strip, and the running maximum of each row.
// `vector` and `key`: of the first one, in the block and absolute.
template <int R, int NV>
HWY_INLINE void ScorePanel(const HeadProblem& head, const ForwardOperands& operands, int64_t at,
                           int64_t vector, int64_t key, int64_t full_begin, int64_t full_end,
                           float* scores, StripScores& strip) {
  const bool modified = strip.products != nullptr || strip.modifies || key < full_begin ||
                        key + NV * kLanes > full_end;
  operands.Scores<R, NV>(head, at, vector, scores, modified ? nullptr : strip.largest);
  if (modified) FinishScores<R, NV>(head, key, full_begin, full_end, scores, strip);
}

// Scores of rows [row, row + R), `at` rows into the task, against the block; the largest of each
// row into `largest`.
template <int R>
HWY_NOINLINE void ScoreStrip(const HeadProblem& head, const KeyBlock& block,
                             const StripRange& range, int64_t row, int64_t at,
                             ForwardScratch& scratch, float* largest) {
  const D d;
  V most[R];
  for (int r = 0; r < R; ++r) most[r] = hn::Set(d, kNegativeInfinity);
  const int64_t first_key = block.begin + range.first_vector * kLanes;
  const bool all_modified = head.ChecksEveryScore();
  const bool uniform = !all_modified && head.intervals.Begin(row) == range.full_begin &&
                       head.intervals.End(std::min(row + R, head.queries) - 1) == range.full_end;
  StripScores strip{row, most, 0, nullptr, 0, first_key, head.modifier.any(), uniform};
  if (scratch.key_table.present()) {
    const int64_t keys = (range.last_vector - range.first_vector) * kLanes;
    strip.products = scratch.products;
    strip.place = DistanceProducts<R>(scratch.key_table, DistancesOf(row, R, first_key, keys),
                                      scratch.operands.StripQueries(at), scratch.products);
  }
  const ForwardOperands& operands = scratch.operands;
  const int64_t full_begin = all_modified ? std::numeric_limits<int64_t>::max() : range.full_begin;
  int64_t vectors = 0;
  for (int64_t vector = range.first_vector; vector < range.last_vector; vector += vectors) {
    const int64_t key = block.begin + vector * kLanes;
    float* scores = scratch.strip + vector * kLanes;
    vectors = std::min(kTileVectors - vector % kTileVectors, range.last_vector - vector);
    if (vectors == kTileVectors) {
      ScorePanel<R, kTileVectors>(head, operands, at, vector, key, full_begin, range.full_end,
                                  scores, strip);
    } else if (vectors == 1) {
      ScorePanel<R, 1>(head, operands, at, vector, key, full_begin, range.full_end, scores, strip);
    }
    if constexpr (kTileVectors > 2) {
      if (vectors == 2) {
        ScorePanel<R, 2>(head, operands, at, vector, key, full_begin, range.full_end, scores,
                         strip);
      } else if (vectors == 3) {
        ScorePanel<R, 3>(head, operands, at, vector, key, full_begin, range.full_end, scores,
                         strip);
      }
    }
  }
  scratch.replaced += strip.replaced;
  for (int r = 0; r < R; ++r) largest[r] = hn::GetLane(hn::MaxOfLanes(d, most[r]));
}

// Scores of the strip to 2^(score * scale - largest), in place, as Store stores them; their sum of
// each row; and what `statistics` makes of them.
template <int R, class Store, class Statistics>
HWY_NOINLINE void ExponentiateStrip(const StripRange& range, float scale, const float* largest,
                                    float* strip, float* sums, const Statistics& statistics) {
  const D d;
  const V scale_vector = hn::Set(d, scale);
  for (int r = 0; r < R; ++r) {
    float* scores = strip + r * kStripStride;
    const V most = hn::Set(d, largest[r]);
    V sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    auto row = statistics.Begin(r, range.first_vector * kLanes);
    const auto bounded = [&](const float* at) HWY_ATTR {
      return LeastOfExp2(hn::MulSub(hn::LoadU(d, at), scale_vector, most));
    };
    int64_t vector = range.first_vector;
    // Where a strip begins changes no bit: odd vectors belong to the second sum.
    if (vector % 2 != 0) {
      const V x1 = bounded(scores + vector * kLanes), p1 = Exp2Bounded(x1);
      row.Take(x1, p1);
      Store::One(p1, scores, vector * kLanes);
      sum1 = p1;
      ++vector;
    }
    for (; vector + 2 <= range.last_vector; vector += 2) {
      const float* at = scores + vector * kLanes;
      const V x0 = bounded(at), x1 = bounded(at + kLanes);
      const V p0 = Exp2Bounded(x0), p1 = Exp2Bounded(x1);
      row.Take(x0, p0);
      row.Take(x1, p1);
      Store::Two(p0, p1, scores, vector * kLanes);
      sum0 = hn::Add(sum0, p0);
      sum1 = hn::Add(sum1, p1);
    }
    if (vector < range.last_vector) {
      const V x0 = bounded(scores + vector * kLanes), p0 = Exp2Bounded(x0);
      row.Take(x0, p0);
      Store::One(p0, scores, vector * kLanes);
      sum0 = hn::Add(sum0, p0);
    }
    sums[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
    statistics.End(r, row);
  }
}

template <int R>
void DropStrip(const HeadProblem& head, const KeyBlock& block, const StripRange& range, int64_t row,
               float* strip) {
  const D d;
  HWY_ALIGN float factors[R * kLanes];
  for (int64_t vector = range.first_vector; vector < range.last_vector; ++vector) {
    DropoutFactors<R>(head, row, block.begin + vector * kLanes, factors, kLanes);
    for (int r = 0; r < R; ++r) {
      float* at = strip + r * kStripStride + vector * kLanes;
      hn::StoreU(hn::Mul(hn::LoadU(d, at), hn::Load(d, factors + r * kLanes)), d, at);
    }
  }
}

// The packed values hold 0 where a value is not finite: adds what such values give to the rows that
// keep them, so that they reach no other row.
struct BlockRowsOf {
  Matrix rows;
  int64_t begin;  // the row of the block's first key
};
struct StripPlace {
  int64_t row, rows;
};
inline void AddNonFiniteValues(const HeadProblem& head, const BlockRowsOf& values,
                               const KeyBlock& block, const StripRange& range,
                               const StripPlace& place, const float* strip, float* out) {
  const int64_t end = std::min(block.count, range.last_vector * kLanes);
  const int64_t width = RoundUp(head.value_dim, kLanes);
  for (int64_t j = range.first_vector * kLanes; j < end; ++j) {
    for (int64_t c = 0; c < head.value_dim; ++c) {
      const float value = values.rows.at(values.begin + j, c);
      if (std::isfinite(value)) continue;
      for (int64_t r = 0; r < place.rows && place.row + r < head.queries; ++r) {
        const int64_t row = place.row + r, key = block.begin + j;
        if (!head.Keeps(row, key) || head.Drops(row, key)) continue;
        out[r * width + c] += strip[r * kStripStride + j] * value;
      }
    }
  }
}

// Takes `score` (times log2 e) into the largest of row `at`; what was summed so far is then worth
// less. Returns what weights are relative to.
inline float RaiseLargest(float score, int64_t at, ForwardScratch& scratch) {
  const float before = scratch.largest[at], now = std::max(before, score);
  if (before != now && before != kNegativeInfinity) {
    const float factor = std::exp2(before - now);
    float* out = scratch.out + at * scratch.value_width;
    if (scratch.statistics != nullptr) {
      RaiseStatistics(now - before, factor, scratch.sum[at], scratch.statistics[at]);
    }
    scratch.sum[at] *= factor;
    for (int64_t c = 0; c < scratch.value_width; ++c) out[c] *= factor;
  }
  scratch.largest[at] = now;
  return now == kNegativeInfinity ? 0 : now;
}

// From here on a score times scale is rounded by 1 or more, and beyond 2^31 by more than exp2
// takes.
constexpr float kExactScores = 16777216;  // 2^24

// What the weights of a row of a strip are to be relative to, given the row's `largest` score so
// far times scale: that; or, of scores that large, what is left of it after `score`, the largest in
// this strip, was subtracted from them in place.
inline float RelativeTo(float largest, float score, float scale, const StripRange& range,
                        float* scores) {
  if (!(std::abs(largest) >= kExactScores) || !std::isfinite(largest)) return largest;
  const D d;
  for (int64_t v = range.first_vector; v < range.last_vector; ++v) {
    float* at = scores + v * kLanes;
    hn::StoreU(hn::Sub(hn::LoadU(d, at), hn::Set(d, score)), d, at);
  }
  return std::max(0.0f, largest - score * scale);
}

// Rows [row, row + R) of the task against one key block. `at` = row - task.begin.
template <int R>
void ForwardStrip(const HeadProblem& head, const KeyBlock& block, int64_t row, int64_t at,
                  ForwardScratch& scratch) {
  const StripRange range =
      RangeOfStrip(head, row, R, block.begin, block.count, ForwardOperands::kFirstVectors);
  if (range.empty()) return;
  float largest[R], sums[R];
  ScoreStrip<R>(head, block, range, row, at, scratch, largest);
  const float scale = head.scale * kLog2E;
  bool add = false;
  for (int r = 0; r < R; ++r) {
    add |= scratch.largest[at + r] != kNegativeInfinity;
    largest[r] = RelativeTo(RaiseLargest(largest[r] * scale, at + r, scratch), largest[r], scale,
                            range, scratch.strip + r * kStripStride);
  }
  const bool kept = head.drops || !scratch.finite_values;  // somebody reads f32 weights
  const auto exponentiate = [&](const auto& statistics) HWY_ATTR {
    if (kept) {
      ExponentiateStrip<R, StoreF32>(range, scale, largest, scratch.strip, sums, statistics);
    } else {
      ExponentiateStrip<R, StoreOperands>(range, scale, largest, scratch.strip, sums, statistics);
    }
  };
  if (scratch.statistics == nullptr) {
    exponentiate(NoStatistics());
  } else {
    exponentiate(StripStatistics{row, block.begin, scratch.key_set, scratch.statistics + at});
  }
  for (int r = 0; r < R; ++r) scratch.sum[at + r] += sums[r];
  if (head.drops) DropStrip<R>(head, block, range, row, scratch.strip);
  float* out = scratch.out + at * scratch.value_width;
  if (!scratch.finite_values) {
    if (!add) std::fill_n(out, R * scratch.value_width, 0.0f);
    AddNonFiniteValues(head, {head.value, block.begin}, block, range, {row, R}, scratch.strip, out);
    add = true;
  }
  const int64_t first_key = range.first_vector * kLanes;
  if (kept) RoundStrip<R>(first_key, range.last_vector * kLanes, scratch.strip);
  scratch.operands.AddValues<R>(scratch.strip, first_key,
                                std::min(range.last_vector * kLanes, block.count), add, out);
  if (scratch.value_table.present()) {
    const int64_t keys = (range.last_vector - range.first_vector) * kLanes;
    MoveToDistances<R>(scratch.strip + first_key, keys, scratch.moved);
    AddTableRows<R>(scratch.value_table, DistancesOf(row, R, block.begin + first_key, keys),
                    scratch.moved, out);
  }
}

inline ForwardScratch::With WithStatistics(const ProbeStatistics& wanted) {
  using With = ForwardScratch::With;
  if (wanted.entropy == nullptr) return With::kNothing;
  return wanted.set_mass == nullptr ? With::kStatistics : With::kStatisticsAndSet;
}

// lse = (largest + log2 sum) ln 2 of the strip `at` rows into the task; -inf of a row without keys.
inline void WriteLse(const ForwardScratch& scratch, int64_t at, int64_t rows, float* to) {
  const D d;
  HWY_ALIGN float lses[kRows + kLanes];
  for (int64_t i = 0; i < rows; i += kLanes) {
    const V sum = hn::LoadU(d, scratch.sum + at + i);
    const V lse =
        hn::MulAdd(hn::LoadU(d, scratch.largest + at + i), hn::Set(d, kLn2), hn::Log(d, sum));
    // Log is only for finite numbers: a NaN is carried here.
    const V carried = hn::IfThenElse(hn::IsNaN(sum), sum, lse);
    const hn::Mask<D> nothing = hn::Eq(sum, hn::Zero(d));
    hn::StoreU(hn::IfThenElse(nothing, hn::Set(d, kNegativeInfinity), carried), d, lses + i);
  }
  std::copy(lses, lses + rows, to);
}

// out = gate * sums / sum, and what else is asked for, of the strip `at` rows into the task; a row
// without keys gives 0.
inline void FinishRows(const HeadProblem& head, const ForwardTask& task, int64_t at, int64_t rows,
                       const ForwardScratch& scratch) {
  const D d;
  HWY_ALIGN float inverses[kRows + kLanes];
  for (int64_t i = 0; i < rows; i += kLanes) {
    const V sum = hn::LoadU(d, scratch.sum + at + i);
    const hn::Mask<D> nothing = hn::Eq(sum, hn::Zero(d));
    hn::StoreU(hn::IfThenElse(nothing, hn::Zero(d), hn::Div(hn::Set(d, head.gate), sum)), d,
               inverses + i);
  }
  if (task.lse != nullptr) WriteLse(scratch, at, rows, task.lse + task.begin + at);
  for (int64_t i = at; i < at + rows && scratch.statistics != nullptr; ++i) {
    WriteStatistics(scratch.statistics[i], scratch.sum[i], task.begin + i, task.statistics);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const float* from = scratch.out + (at + i) * scratch.value_width;
    float* to = task.out.row(task.begin + at + i);
    const V inverse = hn::Set(d, inverses[i]);
    int64_t c = 0;
    if (scratch.sum[at + i] == 0) {  // no key: nothing was summed up
      for (; c < head.value_dim; ++c) to[c * task.out.column_stride] = 0;
    }
    if (task.out.column_stride == 1) {
      for (; c + kLanes <= head.value_dim; c += kLanes) {
        hn::StoreU(hn::Mul(hn::LoadU(d, from + c), inverse), d, to + c);
      }
    }
    for (; c < head.value_dim; ++c) to[c * task.out.column_stride] = from[c] * inverses[i];
  }
}

inline void StartRows(int64_t rows, ForwardScratch& scratch) {
  const int64_t padded = RoundUp(rows, kRows);
  std::fill(scratch.largest, scratch.largest + padded + 2 * kLanes, kNegativeInfinity);
  std::fill(scratch.sum, scratch.sum + padded + 2 * kLanes, 0.0f);
  if (scratch.statistics != nullptr) std::fill_n(scratch.statistics, padded, RowStatistics());
}

// The same of queries [begin, begin + rows), and packs those.
inline void StartQueries(const HeadProblem& head, int64_t begin, int64_t rows,
                         ForwardScratch& scratch) {
  StartRows(rows, scratch);
  scratch.operands.PackQueries(head, begin, rows);
}

// Calls function.operator()<R>(at, rows) for each strip of `rows` queries: R rows, of which `rows`
// are there.
template <typename Function>
HWY_INLINE void ForStrips(int64_t rows, const Function& function) {
  for (int64_t at = 0; at < rows;) {
    const int64_t strip = StripRows(rows - at), there = std::min(strip, rows - at);
    if (strip == kRows) {
      function.template operator()<kRows>(at, there);
    } else if (strip == kFewRows) {
      function.template operator()<kFewRows>(at, there);
    } else if constexpr (kHalfRows != kFewRows) {
      function.template operator()<kHalfRows>(at, there);
    }
    at += strip;
  }
}

// The task's rows against keys [begin, begin + count); the last block finishes them.
inline void ForwardKeyBlock(const HeadProblem& head, const ForwardTask& task, int64_t begin,
                            int64_t count, bool finishes, ForwardScratch& scratch) {
  const int64_t rows = task.end - task.begin;
  const KeyBlock block{begin, count};
  scratch.operands.PackKeys(head, begin, count);
  scratch.finite_values = scratch.operands.PackValues(head.value, head.value_dim, begin, count);
  if (scratch.key_set != nullptr) LoadKeySet(task.key_set, begin, count, scratch.key_set);
  if (scratch.key_table.present()) {
    scratch.key_table.Pack(head.relative_keys, task.begin, rows, begin, block.count, true);
  }
  if (scratch.value_table.present()) {
    scratch.value_table.Pack(head.relative_values, task.begin, rows, begin, block.count, false);
  }
  ForStrips(rows, [&]<int R>(int64_t at, int64_t there) HWY_ATTR {
    ForwardStrip<R>(head, block, task.begin + at, at, scratch);
    if (finishes) FinishRows(head, task, at, there, scratch);
  });
}

// With a block list: one query block at a time, against the runs of keys that it keeps.
inline int64_t ForwardBlocks(const HeadProblem& head, const ForwardTask& task) {
  int64_t replaced = 0;
  ForQueryParts(head.blocks, task.begin, task.end, kForwardRows, [&](int64_t begin, int64_t end) {
    ForwardTask part = task;
    part.begin = begin;
    part.end = end;
    ForwardScratch scratch(head, end - begin, std::min(head.intervals.limit, kKeyBlock),
                           WithStatistics(task.statistics));
    StartQueries(head, begin, end - begin, scratch);
    const int64_t first_key = head.intervals.Begin(begin), last_key = head.intervals.End(end - 1);
    ForKeyParts(head.blocks, begin, head.intervals.limit, [&](int64_t key, int64_t count) {
      if (key + count <= first_key || key >= last_key) return;
      ForwardKeyBlock(CutHead(head, end, key + count), part, key, count, false, scratch);
    });
    ForStrips(end - begin, [&]<int R>(int64_t at, int64_t there)
                               HWY_ATTR { FinishRows(head, part, at, there, scratch); });
    replaced += scratch.replaced;
  });
  return replaced;
}

inline int64_t Forward(const HeadProblem& head, const ForwardTask& task) {
  const int64_t rows = task.end - task.begin;
  if (rows == 0) return 0;
  if (head.blocks.present()) return ForwardBlocks(head, task);
  const int64_t first_key = head.intervals.Begin(task.begin);
  const int64_t last_key = head.intervals.End(task.end - 1);
  const int64_t first_block = first_key / kKeyBlock * kKeyBlock;
  ForwardScratch scratch(head, rows, std::clamp<int64_t>(last_key - first_block, 0, kKeyBlock),
                         WithStatistics(task.statistics));
  StartQueries(head, task.begin, rows, scratch);
  // Blocks lie at multiples of kKeyBlock, whatever the mask skips.
  // At least one, so that rows without any key are finished too.
  const int64_t block_count =
      std::max<int64_t>((last_key - first_block + kKeyBlock - 1) / kKeyBlock, 1);
  for (int64_t b = 0; b < block_count; ++b) {
    const int64_t begin = first_block + b * kKeyBlock;
    ForwardKeyBlock(head, task, begin, std::clamp<int64_t>(last_key - begin, 0, kKeyBlock),
                    b + 1 == block_count, scratch);
  }
  return scratch.replaced;
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_FORWARD_INL_H_
