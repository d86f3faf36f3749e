// The fused backward pass of one key/value head: weights are computed again from lse, one block of
// queries against one block of keys at a time.
//
//   P = 2^(s * scale - lse)   D_i = dO_i . O_i
//   dV += P^T dO              dP = dO V^T
//   dS = P * (dP - D)         dQ = scale * dS K        dK += scale * dS^T Q
//
// dO stands for the output gradient times the head's gate; in D it is the output that has it.
// Relative keys and values add products in distance order (relative-inl.h) to each of these.
//
// With dropout factors F: dV += (P F)^T dO and dS = P * (dP F - D). (Dao et al. 2022, appendix
// B.4.)

#if defined(HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

#include "headlight/kernels/attention/blocks-inl.h"
#include "headlight/kernels/attention/modifier-inl.h"
#include "headlight/kernels/attention/relative-inl.h"
#ifdef HEADLIGHT_ATTENTION_BF16
#include "headlight/kernels/attention/bf16-backward-operands-inl.h"
#else
#include "headlight/kernels/attention/backward-operands-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

struct BackwardScratch {
  BackwardScratch(const HeadProblem& head, int64_t block_keys)
      : head_width(RoundUp(head.head_dim, kLanes)), value_width(RoundUp(head.value_dim, kLanes)) {
    const int64_t sizes[] = {kQueryBlock * kQueryStride,
                             kQueryBlock * kQueryStride,
                             BackwardOperands::kRowsHeld * kStripStride,
                             BackwardOperands::kRowsHeld * kStripStride,
                             kRows * head_width,
                             kQueryBlock,
                             kQueryBlock};
    float** const parts[] = {&rows.query,
                             &rows.out_gradient,
                             &rows.weights,
                             &rows.score_gradients,
                             &query_gradient,
                             &lse,
                             &mean};
    const int64_t operand_floats = BackwardOperands::Floats(head, block_keys);
    int64_t total = operand_floats;
    for (int64_t size : sizes) total += RoundUp(size, 16);
    const int64_t table_keys = block_keys, queries = kQueryBlock;
    const bool relative =
        head.relative_keys.rows.data != nullptr || head.relative_values.rows.data != nullptr;
    const int64_t distances = PackedTable::Count(queries, table_keys) + kRows;
    const int64_t relative_sizes[] = {kRows * kDistanceStride, kRows * kDistanceStride,
                                      kRows * kStripStride, distances * head_width,
                                      distances * value_width};
    float** const relative_parts[] = {&key_products, &value_products, &moved, &key_table_sums,
                                      &value_table_sums};
    for (int64_t size : relative_sizes) total += relative ? RoundUp(size, 16) : 0;
    total += PackedTable::Floats(head.relative_keys, head.head_dim, queries, table_keys) +
             PackedTable::Floats(head.relative_values, head.value_dim, queries, table_keys);
    float* at = WorkerScratch(total);
    operands = BackwardOperands::Place(head, block_keys, at);
    at += operand_floats;
    for (size_t i = 0; i < std::size(sizes); ++i) {
      *parts[i] = at;
      at += RoundUp(sizes[i], 16);
    }
    for (size_t i = 0; relative && i < std::size(relative_sizes); ++i) {
      *relative_parts[i] = at;
      at += RoundUp(relative_sizes[i], 16);
    }
    key_table = PackedTable::Place(head.relative_keys, head.head_dim, queries, table_keys, &at);
    value_table =
        PackedTable::Place(head.relative_values, head.value_dim, queries, table_keys, &at);
  }

  int64_t head_width, value_width;
  BackwardOperands operands;  // the key block, and sums of its gradients
  QueryRows rows;
  float* query_gradient;  // of a strip
  float *lse, *mean;      // of the query block: lse times log2 e, and D
  // Relative positions: tables of the query and key block; products of a strip; a strip in distance
  // order; gradients by distance.
  PackedTable key_table, value_table;
  float *key_products = nullptr, *value_products = nullptr, *moved = nullptr;
  float *key_table_sums = nullptr, *value_table_sums = nullptr;
  bool finite_query = true, finite_out_gradient = true;
};

// P and dS of NV vectors of keys of a strip, from its scores and dP, in place. Every row keeps
// every key.
template <int R, int NV>
HWY_INLINE void WeightsAndGradients(const HeadProblem& head, const float* lse, const float* mean,
                                    float* weights, float* gradients) {
  const D d;
  const V scale = hn::Set(d, head.scale * kLog2E);
  for (int r = 0; r < R; ++r) {
    const V row_lse = hn::Set(d, lse[r]), row_mean = hn::Set(d, mean[r]);
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) {
      const int64_t at = r * kStripStride + v * kLanes;
      const V weight = WeightOf(hn::LoadU(d, weights + at), scale, row_lse);
      const V gradient = hn::LoadU(d, gradients + at);
      hn::StoreU(weight, d, weights + at);
      hn::StoreU(hn::Mul(weight, hn::Sub(gradient, row_mean)), d, gradients + at);
    }
  }
}

// The same for NV vectors of keys from `key` with dropout.
template <int R, int NV>
HWY_NOINLINE void DroppedWeightsAndGradients(const HeadProblem& head, int64_t row, int64_t key,
                                             const float* lse, const float* mean, float* weights,
                                             float* gradients) {
  const D d;
  const V scale = hn::Set(d, head.scale * kLog2E);
  HWY_ALIGN float factors[R * kLanes];
  for (int v = 0; v < NV; ++v, weights += kLanes, gradients += kLanes) {
    DropoutFactors<R>(head, row, key + v * kLanes, factors, kLanes);
    for (int r = 0; r < R; ++r) {
      const int64_t at = r * kStripStride;
      const V weight = WeightOf(hn::LoadU(d, weights + at), scale, hn::Set(d, lse[r]));
      const V factor = hn::Load(d, factors + r * kLanes);
      const hn::Mask<D> stays = hn::Ne(factor, hn::Zero(d));
      const V gradient = hn::IfThenElseZero(stays, hn::Mul(hn::LoadU(d, gradients + at), factor));
      hn::StoreU(hn::IfThenElseZero(stays, hn::Mul(weight, factor)), d, weights + at);
      hn::StoreU(hn::Mul(weight, hn::Sub(gradient, hn::Set(d, mean[r]))), d, gradients + at);
    }
  }
}

// The same for one vector of keys from `key`, with masks, dropout and non-finite scores.
template <int R>
HWY_NOINLINE void ModifiedWeightsAndGradients(const HeadProblem& head, int64_t row, int64_t key,
                                              const float* lse, const float* mean, float* weights,
                                              float* gradients) {
  const D d;
  const V scale = hn::Set(d, head.scale * kLog2E);
  HWY_ALIGN float factors[R * kLanes];
  if (head.drops) DropoutFactors<R>(head, row, key, factors, kLanes);
  for (int r = 0; r < R; ++r) {
    V score = hn::LoadU(d, weights + r * kStripStride);
    V gradient = hn::LoadU(d, gradients + r * kStripStride);
    const hn::Mask<D> kept = KeptLanes(head, std::min(row + r, head.queries - 1), key);
    hn::Mask<D> passes = kept;
    if (head.replaces_nonfinite) {
      passes = hn::And(kept, hn::IsFinite(score));
      score = hn::IfThenElseZero(passes, score);
    }
    V weight = WeightOf(score, scale, hn::Set(d, lse[r]));
    weight = hn::IfThenElseZero(kept, weight);
    V dropped = weight;
    if (head.drops) {
      const V factor = hn::Load(d, factors + r * kLanes);
      const hn::Mask<D> stays = hn::Ne(factor, hn::Zero(d));
      gradient = hn::IfThenElseZero(stays, hn::Mul(gradient, factor));
      dropped = hn::IfThenElseZero(stays, hn::Mul(weight, factor));
    }
    gradient = hn::Mul(weight, hn::Sub(gradient, hn::Set(d, mean[r])));
    hn::StoreU(dropped, d, weights + r * kStripStride);
    hn::StoreU(hn::IfThenElseZero(passes, gradient), d, gradients + r * kStripStride);
  }
}

// One panel (NV vectors of keys) of a strip: P and dS. Keys [full_begin, full_end) are kept by
// every row.
struct BackwardPanels {
  int64_t row, in_block;           // of the strip's first row
  int64_t full_begin, full_end;    // keys
  int64_t strip_begin;             // first key of the strip, in the block
  int64_t key_place, value_place;  // of that key in the products with relative positions
  MutableMatrix bias_gradient;
};

// P and dS of a panel from its scores and dP, in place.
template <int R, int NV>
HWY_INLINE void PanelWeights(const HeadProblem& head, const BackwardPanels& strip, int64_t key,
                             const float* lse, const float* mean, float* weights,
                             float* gradients) {
  const int64_t row = strip.row, full_begin = strip.full_begin, full_end = strip.full_end;
  if (key >= full_begin && key + NV * kLanes <= full_end) {
    if (!head.drops) return WeightsAndGradients<R, NV>(head, lse, mean, weights, gradients);
    return DroppedWeightsAndGradients<R, NV>(head, row, key, lse, mean, weights, gradients);
  }
  for (int v = 0; v < NV; ++v) {
    const int64_t first = key + v * kLanes, at = v * kLanes;
    const bool full = first >= full_begin && first + kLanes <= full_end;
    if (full && head.drops) {
      DroppedWeightsAndGradients<R, 1>(head, row, first, lse, mean, weights + at, gradients + at);
    } else if (full) {
      WeightsAndGradients<R, 1>(head, lse, mean, weights + at, gradients + at);
    } else {
      ModifiedWeightsAndGradients<R>(head, row, first, lse, mean, weights + at, gradients + at);
    }
  }
}

// The same with softcap and bias.
template <int R, int NV>
HWY_NOINLINE void ModifiedPanelWeights(const HeadProblem& head, const BackwardPanels& strip,
                                       int64_t key, const float* lse, const float* mean,
                                       float* weights, float* gradients) {
  HWY_ALIGN float slopes[R * NV * kLanes];
  const PanelPlace panel{strip.row, key, R, NV};
  ModifyPanel(head, panel, weights, slopes);
  PanelWeights<R, NV>(head, strip, key, lse, mean, weights, gradients);
  UnmodifyGradients(head, panel, slopes, strip.bias_gradient, gradients);
}

// In the sums over queries output gradients count as 0 where one is not finite: adds what those
// give to the values of a panel that their rows keep, so that they reach no other.
inline HWY_NOINLINE void AddNonFiniteGradients(const BackwardHead& task, const PanelPlace& panel,
                                               int64_t in_block_key, const float* weights,
                                               const BackwardScratch& scratch) {
  const HeadProblem& head = task.problem;
  const int64_t keys = std::min(panel.vectors * kLanes, head.keys - panel.key);
  for (int64_t r = 0; r < panel.rows; ++r) {
    const int64_t i = panel.row + r;
    for (int64_t c = 0; c < head.value_dim; ++c) {
      const float gradient = head.gate * task.out_gradient.at(i, c);
      if (std::isfinite(gradient)) continue;
      for (int64_t j = 0; j < keys; ++j) {
        const int64_t key = panel.key + j;
        if (!head.Keeps(i, key) || head.Drops(i, key)) continue;
        const float added = weights[r * kStripStride + j] * gradient;
        scratch.operands.AddToValueGradient(in_block_key + j, c, added);
        if (task.relative_value_gradient.data != nullptr) {
          const int64_t distance = key - i - scratch.value_table.origin;
          scratch.value_table_sums[distance * scratch.value_width + c] += added;
        }
      }
    }
  }
}

template <int R, int NV>
HWY_INLINE void BackwardPanel(const BackwardHead& task, const BackwardScratch& scratch,
                              const BackwardPanels& strip, int64_t key, int64_t first_key) {
  const HeadProblem& head = task.problem;
  const BackwardOperands& operands = scratch.operands;
  const int64_t in_block = strip.in_block;
  const int64_t place = BackwardOperands::PanelPlace(in_block, first_key);
  float *weights = scratch.rows.weights + place, *gradients = scratch.rows.score_gradients + place;
  operands.PanelProducts<R, NV>(head, scratch.rows, in_block, first_key, weights, gradients);
  if (scratch.key_table.present()) {
    AddProducts<R>(scratch.key_products, strip.key_place + first_key - strip.strip_begin, NV,
                   weights);
  }
  if (scratch.value_table.present()) {
    AddProducts<R>(scratch.value_products, strip.value_place + first_key - strip.strip_begin, NV,
                   gradients);
  }
  const float *lse = scratch.lse + in_block, *mean = scratch.mean + in_block;
  if (head.modifier.any()) {
    ModifiedPanelWeights<R, NV>(head, strip, key, lse, mean, weights, gradients);
  } else {
    PanelWeights<R, NV>(head, strip, key, lse, mean, weights, gradients);
  }
  const int64_t rows = std::min<int64_t>(R, head.queries - strip.row);
  if (!scratch.finite_out_gradient) {
    AddNonFiniteGradients(task, {strip.row, key, rows, NV}, first_key, weights, scratch);
  }
  operands.TakePanel<R, NV>(in_block, rows, first_key, weights, gradients);
}

// Whether dQ is written, not added to. With a block list it begins as 0, and all blocks add.
inline bool FirstBlock(const HeadProblem& head, const KeyBlock& block) {
  return block.begin == 0 && !head.blocks.present();
}

// Strip of rows [row, row + R), `in_block` rows into its query block: P, dS and dQ.
template <int R>
HWY_NOINLINE StripRange BackwardStrip(const BackwardHead& task, const KeyBlock& block, int64_t row,
                                      int64_t in_block, const BackwardScratch& scratch) {
  const HeadProblem& head = task.problem;
  const StripRange range = RangeOfStrip(head, row, R, block.begin, block.count);
  const int64_t rows = std::min<int64_t>(R, head.queries - row);
  const bool first_block = FirstBlock(head, block);
  if (range.empty()) {
    if (first_block) {
      std::fill(scratch.query_gradient, scratch.query_gradient + rows * scratch.head_width, 0.0f);
      WriteGradient(scratch.query_gradient, scratch.head_width, rows, head.head_dim, 1, false,
                    task.query_gradient, row);
    }
    return range;
  }
  const bool all_modified = head.ChecksEveryScore();
  const int64_t first_key = range.first_vector * kLanes;
  const int64_t keys = range.last_vector * kLanes - first_key;
  BackwardPanels strip{row,
                       in_block,
                       all_modified ? std::numeric_limits<int64_t>::max() : range.full_begin,
                       range.full_end,
                       first_key,
                       0,
                       0,
                       task.bias_gradient};
  const StripDistances distances = DistancesOf(row, R, block.begin + first_key, keys);
  if (scratch.key_table.present()) {
    strip.key_place =
        DistanceProducts<R>(scratch.key_table, distances,
                            scratch.rows.query + in_block * kQueryStride, scratch.key_products);
  }
  if (scratch.value_table.present()) {
    strip.value_place = DistanceProducts<R>(scratch.value_table, distances,
                                            scratch.rows.out_gradient + in_block * kQueryStride,
                                            scratch.value_products);
  }
  for (int64_t vector = range.first_vector; vector < range.last_vector; vector += kTileVectors) {
    const int64_t first = vector * kLanes, key = block.begin + first;
    const int64_t vectors = std::min<int64_t>(kTileVectors, range.last_vector - vector);
    if (vectors == kTileVectors) {
      BackwardPanel<R, kTileVectors>(task, scratch, strip, key, first);
    } else if (vectors == 1) {
      BackwardPanel<R, 1>(task, scratch, strip, key, first);
    }
    if constexpr (kTileVectors > 2) {
      if (vectors == 2) {
        BackwardPanel<R, 2>(task, scratch, strip, key, first);
      } else if (vectors == 3) {
        BackwardPanel<R, 3>(task, scratch, strip, key, first);
      }
    }
  }
  scratch.operands.QueryGradient<R>(scratch.rows, in_block, first_key,
                                    std::min(range.last_vector * kLanes, block.count),
                                    scratch.query_gradient);
  if (scratch.key_table.present()) {
    MoveToDistances<R>(
        scratch.rows.score_gradients + BackwardOperands::PanelPlace(in_block, first_key), keys,
        scratch.moved);
    AddTableRows<R>(scratch.key_table, distances, scratch.moved, scratch.query_gradient);
  }
  WriteGradient(scratch.query_gradient, scratch.head_width, rows, head.head_dim, head.scale,
                !first_block, task.query_gradient, row);
  return range;
}

// Rows kQueryStride apart, times a factor; width is a multiple of kLanes.
inline void ScaleRows(float factor, int64_t rows, int64_t width, float* values) {
  const D d;
  for (int64_t i = 0; i < rows; ++i, values += kQueryStride) {
    for (int64_t c = 0; c < width; c += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, values + c), hn::Set(d, factor)), d, values + c);
    }
  }
}

// Rows of the query block: queries, output gradients, lse and D. Rows past the last query are zero.
inline void PackQueries(const BackwardHead& task, int64_t begin, int64_t rows, int64_t padded,
                        BackwardScratch& scratch) {
  const D d;
  const HeadProblem& head = task.problem;
  const int64_t head_width = scratch.head_width, value_width = scratch.value_width;
  scratch.finite_query = PackRows(head.query, begin, rows, head.head_dim, head_width,
                                  scratch.rows.query, kQueryStride);
  scratch.finite_out_gradient = PackRows(task.out_gradient, begin, rows, head.value_dim,
                                         value_width, scratch.rows.out_gradient, kQueryStride);
  for (int64_t i = 0; i < rows; ++i) {
    const float lse = task.lse[begin + i];
    scratch.lse[i] = lse == kNegativeInfinity ? 0 : lse * kLog2E;
    const float* gradient = scratch.rows.out_gradient + i * kQueryStride;
    V sum = hn::Zero(d);
    int64_t c = 0;
    if (task.out.column_stride == 1) {
      for (; c + kLanes <= head.value_dim; c += kLanes) {
        sum =
            hn::MulAdd(hn::LoadU(d, gradient + c), hn::LoadU(d, task.out.row(begin + i) + c), sum);
      }
    }
    float mean = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; c < head.value_dim; ++c) mean += gradient[c] * task.out.at(begin + i, c);
    scratch.mean[i] = mean;
  }
  if (head.gate != 1) ScaleRows(head.gate, rows, value_width, scratch.rows.out_gradient);
  for (int64_t i = rows; i < padded; ++i) {
    std::fill_n(scratch.rows.query + i * kQueryStride, head_width, 0.0f);
    std::fill_n(scratch.rows.out_gradient + i * kQueryStride, value_width, 0.0f);
  }
  std::fill(scratch.lse + rows, scratch.lse + padded, 0.0f);
  std::fill(scratch.mean + rows, scratch.mean + padded, 0.0f);
}

// What one strip adds to the gradients of the tables, by distance.
template <int R>
HWY_NOINLINE void AddTableGradients(const BackwardHead& task, const BackwardScratch& scratch,
                                    const StripRange& range, int64_t block_begin, int64_t row,
                                    int64_t in_block) {
  if (range.empty()) return;
  const int64_t first_key = range.first_vector * kLanes;
  const int64_t keys = range.last_vector * kLanes - first_key;
  const StripDistances distances = DistancesOf(row, R, block_begin + first_key, keys);
  const int64_t rows = std::min<int64_t>(R, task.problem.queries - row);
  const int64_t at = in_block * kStripStride + first_key;
  if (task.relative_key_gradient.data != nullptr) {
    MoveToDistances<R>(scratch.rows.score_gradients + at, keys, scratch.moved);
    AddToDistances(scratch.key_table, distances, rows, scratch.moved,
                   scratch.rows.query + in_block * kQueryStride, scratch.key_table_sums);
  }
  if (task.relative_value_gradient.data != nullptr) {
    MoveToDistances<R>(scratch.rows.weights + at, keys, scratch.moved);
    AddToDistances(scratch.value_table, distances, rows, scratch.moved,
                   scratch.rows.out_gradient + in_block * kQueryStride, scratch.value_table_sums);
  }
}

inline void ClearTableGradients(const BackwardScratch& scratch) {
  if (scratch.key_table.present()) {
    std::fill_n(scratch.key_table_sums, (scratch.key_table.count + kRows) * scratch.head_width,
                0.0f);
  }
  if (scratch.value_table.present()) {
    std::fill_n(scratch.value_table_sums, (scratch.value_table.count + kRows) * scratch.value_width,
                0.0f);
  }
}

inline void FoldTableGradients(const BackwardHead& task, const BackwardScratch& scratch) {
  const HeadProblem& head = task.problem;
  if (task.relative_key_gradient.data != nullptr) {
    FoldIntoTable(scratch.key_table, head.relative_keys, scratch.key_table_sums, head.scale,
                  task.relative_key_gradient);
  }
  if (task.relative_value_gradient.data != nullptr) {
    FoldIntoTable(scratch.value_table, head.relative_values, scratch.value_table_sums, 1,
                  task.relative_value_gradient);
  }
}

inline void BackwardQueryBlock(const BackwardHead& task, const KeyBlock& block, int64_t begin,
                               BackwardScratch& scratch) {
  const HeadProblem& head = task.problem;
  const int64_t rows = std::min(kQueryBlock, head.queries - begin);
  const bool empty = RangeOfStrip(head, begin, rows, block.begin, block.count).empty();
  if (empty && !FirstBlock(head, block)) return;
  if (!empty) {
    PackQueries(task, begin, rows, RoundUp(rows, kRows), scratch);
    scratch.operands.TakeQueries(head, scratch.rows, rows);
    if (scratch.key_table.present()) {
      scratch.key_table.Pack(head.relative_keys, begin, rows, block.begin, block.count, true);
    }
    if (scratch.value_table.present()) {
      scratch.value_table.Pack(head.relative_values, begin, rows, block.begin, block.count, true);
    }
    ClearTableGradients(scratch);
  }
  Strips strips;
  for (int64_t at = 0; at < rows; ++strips.count) {
    strips.first_row[strips.count] = at;
    StripRange& range = strips.ranges[strips.count];
    const int64_t strip = StripRows(rows - at);
    if (strip == kRows) {
      range = BackwardStrip<kRows>(task, block, begin + at, at, scratch);
    } else if (strip == kHalfRows) {
      range = BackwardStrip<kHalfRows>(task, block, begin + at, at, scratch);
    } else {
      range = BackwardStrip<kFewRows>(task, block, begin + at, at, scratch);
    }
    at += strip;
  }
  strips.first_row[strips.count] = rows;
  if (empty) return;
  // Packed rows were needed as they are for S and dP. In the sums over queries a masked weight is
  // 0, which must not meet NaN; a NaN that is kept has made dS NaN already.
  if (!scratch.finite_query) Sanitize(scratch.rows.query, rows, kQueryStride, scratch.head_width);
  if (!scratch.finite_out_gradient) {
    Sanitize(scratch.rows.out_gradient, rows, kQueryStride, scratch.value_width);
  }
  scratch.operands.AddKeyGradients(head, strips, scratch.rows);
  for (int64_t s = 0; s < strips.count; ++s) {
    const int64_t at = strips.first_row[s], strip = StripRows(rows - at);
    if (strip == kRows) {
      AddTableGradients<kRows>(task, scratch, strips.ranges[s], block.begin, begin + at, at);
    } else if (strip == kHalfRows) {
      AddTableGradients<kHalfRows>(task, scratch, strips.ranges[s], block.begin, begin + at, at);
    } else {
      AddTableGradients<kFewRows>(task, scratch, strips.ranges[s], block.begin, begin + at, at);
    }
  }
  FoldTableGradients(task, scratch);
}

// The query blocks that keep the key block which `block` is part of.
inline void BackwardListedQueries(const BackwardHead& task, const KeyBlock& block,
                                  BackwardScratch& scratch) {
  const BlockRows& blocks = task.problem.blocks;
  const int64_t* offsets = blocks.key_offsets + block.begin / blocks.key_block;
  BackwardHead part = task;
  for (int64_t at = offsets[0]; at < offsets[1]; ++at) {
    const int64_t first = blocks.query_blocks[at] * blocks.query_block;
    const int64_t last = std::min(first + blocks.query_block, task.problem.queries);
    part.problem = CutHead(task.problem, last, block.begin + block.count);
    for (int64_t query = first; query < last; query += kQueryBlock) {
      BackwardQueryBlock(part, block, query, scratch);
    }
  }
}

inline void BackwardKeyBlock(const BackwardTask& task, int64_t begin, int64_t count,
                             BackwardScratch& scratch) {
  const HeadProblem& head = task.heads[0].problem;
  const KeyBlock block{begin, count};
  scratch.operands.PackKeyBlock(head, begin, count);
  for (int64_t h = 0; h < task.head_count; ++h) {
    if (head.blocks.present()) {
      BackwardListedQueries(task.heads[h], block, scratch);
      continue;
    }
    for (int64_t query = 0; query < head.queries; query += kQueryBlock) {
      BackwardQueryBlock(task.heads[h], block, query, scratch);
    }
  }
  scratch.operands.WriteGradients(head, begin, count, task.key_gradient, task.value_gradient,
                                  scratch.rows);
}

inline void ZeroRows(const MutableMatrix& rows, int64_t begin, int64_t end, int64_t dim) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < dim; ++c) rows.row(i)[c * rows.column_stride] = 0;
  }
}

inline void Backward(const BackwardTask& task) {
  const HeadProblem& head = task.heads[0].problem;
  // Keys past the limit are masked for every query. Closed heads keep none.
  int64_t limit = 0;
  for (int64_t h = 0; h < task.head_count; ++h) {
    limit = std::max(limit, task.heads[h].problem.intervals.limit);
  }
  if (limit == 0 || head.blocks.present()) {
    for (int64_t h = 0; h < task.head_count; ++h) {
      ZeroRows(task.heads[h].query_gradient, 0, head.queries, head.head_dim);
    }
  }
  BackwardScratch scratch(head, std::min(limit, kKeyBlock));
  // Parts of at most kKeyBlock keys, none of which lies in two blocks of a list.
  const int64_t step = head.blocks.present() ? head.blocks.key_block : kKeyBlock;
  for (int64_t first = 0; first < limit; first += step) {
    const int64_t last = std::min(first + step, limit);
    for (int64_t begin = first; begin < last; begin += kKeyBlock) {
      BackwardKeyBlock(task, begin, std::min(kKeyBlock, last - begin), scratch);
    }
  }
  ZeroRows(task.key_gradient, limit, head.keys, head.head_dim);
  ZeroRows(task.value_gradient, limit, head.keys, head.value_dim);
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BACKWARD_INL_H_
