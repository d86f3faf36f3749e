// The fused forward pass of heads with few queries, all that share keys: keys and values are read
// where they lie, in splits that are merged afterwards.

#if defined(HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
#endif

#include <vector>

#include "headlight/kernels/attention/forward-inl.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

using headlight::HWY_NAMESPACE::LoadPart;

// Rows of keys or values as they lie in memory.
struct F32Rows {
  using Element = float;
  static constexpr int64_t kAhead = kPrefetchRows;  // rows that are fetched before their use
  static HWY_INLINE V Load(const float* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE V LoadFirst(const float* from, int64_t count) {
    return LoadPart(D(), from, count);
  }

  Matrix rows;
  const float* row(int64_t i) const { return rows.row(i); }
};

struct Bf16Rows {
  using Element = uint16_t;
  static constexpr int64_t kAhead = 2 * kPrefetchRows;
  static HWY_INLINE V Load(const uint16_t* from) {
    const DU du;
    const auto wide = hn::PromoteTo(du, hn::LoadU(hn::Rebind<uint16_t, D>(), from));
    return hn::BitCast(D(), hn::ShiftLeft<16>(wide));
  }
  static HWY_INLINE V LoadFirst(const uint16_t* from, int64_t count) {
    HWY_ALIGN uint16_t buffer[kLanes] = {};
    std::copy_n(from, count, buffer);
    return Load(buffer);
  }

  Bf16Matrix rows;
  const uint16_t* row(int64_t i) const { return rows.row(i); }
};

template <class Element>
HWY_INLINE void PrefetchElements(const Element* row, int64_t stride, int64_t rows, int64_t dim) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(Element));
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    for (int64_t c = 0; c < dim; c += kLine) hwy::Prefetch(row + c);
  }
}

constexpr int64_t kTogether = 4;

// scores[j] = the sum of the lanes of sums[j]. A whole vector is written.
HWY_INLINE void SumLanes(const V (&sums)[kTogether], float* scores) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t j = 0; j < kTogether; ++j) scores[j] = hn::GetLane(sums[j]);
#else
  const D d;
  // Every 128 bits of `all` hold partial sums of the four.
  const hn::Repartition<double, D> d64;
  const auto halves = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto first = halves(sums[0], sums[1]), second = halves(sums[2], sums[3]);
  V all = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first, second)),
                  hn::BitCast(d, hn::InterleaveUpper(d64, first, second)));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  all = hn::Add(all, hn::SwapAdjacentBlocks(all));
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2
  all = hn::Add(all, hn::ReverseBlocks(d, all));
#endif
  hn::StoreU(all, d, scores);
#endif
}

// scores[r][0..kTogether) = q_r . k of R queries and as many keys from `key`, which exist.
template <int R, class Rows>
HWY_INLINE void DotKeys(const Rows& keys, int64_t dim, const float* queries, int64_t key,
                        float* scores) {
  const D d;
  const typename Rows::Element* rows[kTogether];
  V sums[R][kTogether];
  for (int64_t j = 0; j < kTogether; ++j) rows[j] = keys.row(key + j);
  for (int r = 0; r < R; ++r) {
    for (V& sum : sums[r]) sum = hn::Zero(d);
  }
  PrefetchElements(rows[0] + Rows::kAhead * keys.rows.row_stride, keys.rows.row_stride, kTogether,
                   dim);
  const auto add = [&](int64_t c, const auto& load_query, const auto& load_key) HWY_ATTR {
    V k[kTogether];
    for (int64_t j = 0; j < kTogether; ++j) k[j] = load_key(rows[j] + c);
    for (int r = 0; r < R; ++r) {
      const V q = load_query(queries + r * kQueryStride + c);
      for (int64_t j = 0; j < kTogether; ++j) sums[r][j] = hn::MulAdd(q, k[j], sums[r][j]);
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= dim; c += kLanes) {
    add(
        c, [&](const float* q) HWY_ATTR { return hn::LoadU(d, q); },
        [&](const auto* k) HWY_ATTR { return Rows::Load(k); });
  }
  if (const int64_t left = dim - c; left > 0) {
    add(
        c, [&](const float* q) HWY_ATTR { return LoadPart(d, q, left); },
        [&](const auto* k) HWY_ATTR { return Rows::LoadFirst(k, left); });
  }
  for (int r = 0; r < R; ++r) SumLanes(sums[r], scores + r * kStripStride);
}

// The same for one key, in the same order of additions.
template <class Rows>
HWY_INLINE float DotKey(const Rows& keys, int64_t dim, const float* query, int64_t key) {
  const D d;
  const typename Rows::Element* row = keys.row(key);
  V sum = hn::Zero(d);
  int64_t c = 0;
  for (; c + kLanes <= dim; c += kLanes) {
    sum = hn::MulAdd(hn::LoadU(d, query + c), Rows::Load(row + c), sum);
  }
  if (c < dim) {
    const int64_t left = dim - c;
    sum = hn::MulAdd(LoadPart(d, query + c, left), Rows::LoadFirst(row + c, left), sum);
  }
  const V sums[kTogether] = {sum, sum, sum, sum};
  HWY_ALIGN float scores[kTogether + kLanes];
  SumLanes(sums, scores);
  return scores[0];
}

// A query that decodes: its place in the scratch, and which keys of the block it looks at.
struct DecodingRow {
  const HeadProblem* head;
  int64_t row, at;
  StripRange range;
};

// Vectors of keys that one of the rows looks at.
template <int R>
StripRange RangeOfRows(const DecodingRow* rows) {
  StripRange all = rows[0].range;
  for (int r = 1; r < R; ++r) {
    all.first_vector = std::min(all.first_vector, rows[r].range.first_vector);
    all.last_vector = std::max(all.last_vector, rows[r].range.last_vector);
  }
  return all;
}

// Scores of R queries against vectors `all` of the block into the strip, as their products left
// them. A key is read once for all of them.
template <int R, class Rows>
HWY_NOINLINE void ScoreInPlace(const DecodingRow* queries, const Rows& keys, const KeyBlock& block,
                               const StripRange& all, ForwardScratch& scratch) {
  const int64_t dim = queries[0].head->head_dim, width = RoundUp(dim, kLanes);
  float* packed = scratch.operands.queries;
  for (int r = 0; r < R; ++r) {
    PackRows(queries[r].head->query, queries[r].row, 1, dim, width, packed + r * kQueryStride,
             kQueryStride);
  }
  const int64_t first = all.first_vector * kLanes, last = all.last_vector * kLanes;
  const int64_t there = std::min(last, block.count);
  int64_t j = first;
  for (; j + kTogether <= there; j += kTogether) {
    DotKeys<R>(keys, dim, packed, block.begin + j, scratch.strip + j);
  }
  for (int r = 0; r < R; ++r) {
    float* scores = scratch.strip + r * kStripStride;
    for (int64_t key = j; key < there; ++key) {
      scores[key] = DotKey(keys, dim, packed + r * kQueryStride, block.begin + key);
    }
    std::fill(scores + there, scores + last, 0.0f);
  }
}

// Finishes the scores of one query; returns the largest.
inline float FinishRowScores(const DecodingRow& query, const KeyBlock& block, float* scores,
                             int64_t& replaced) {
  const D d;
  const HeadProblem& head = *query.head;
  const StripRange& range = query.range;
  V largest = hn::Set(d, kNegativeInfinity);
  const bool all_modified = head.ChecksEveryScore();
  StripScores strip{query.row, &largest, 0, nullptr, 0, 0, head.modifier.any(), !all_modified};
  const int64_t full_begin = all_modified ? std::numeric_limits<int64_t>::max() : range.full_begin;
  for (int64_t v = range.first_vector; v < range.last_vector; ++v) {
    const int64_t j = v * kLanes;
    FinishScores<1, 1>(head, block.begin + j, full_begin, range.full_end, scores + j, strip);
  }
  replaced += strip.replaced;
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// The scores of one query to weights, and what it has summed up so far to what they are relative
// to. Vectors of `all` that it does not look at get zeros.
inline void WeighRow(const DecodingRow& query, const KeyBlock& block, const StripRange& all,
                     float* strip, ForwardScratch& scratch) {
  const HeadProblem& head = *query.head;
  const StripRange& range = query.range;
  const float scale = head.scale * kLog2E;
  const float score = FinishRowScores(query, block, strip, scratch.replaced);
  const float largest =
      RelativeTo(RaiseLargest(score * scale, query.at, scratch), score, scale, range, strip);
  float sum = 0;
  ExponentiateStrip<1, StoreF32>(range, scale, &largest, strip, &sum, NoStatistics());
  scratch.sum[query.at] += sum;
  if (head.drops) DropStrip<1>(head, block, range, query.row, strip);
  std::fill(strip + all.first_vector * kLanes, strip + range.first_vector * kLanes, 0.0f);
  std::fill(strip + range.last_vector * kLanes, strip + all.last_vector * kLanes, 0.0f);
}

// out[at of a query] += sum of its weights[j] * value row j for keys [begin, end); false, with
// `out` as it was, where a value is not finite. A value is read once for all of them.
template <int R, class Rows>
HWY_NOINLINE bool AddValuesInPlace(const DecodingRow* queries, const Rows& values, int64_t begin,
                                   int64_t end, const float* weights, ForwardScratch& scratch) {
  const D d;
  const V zero = hn::Zero(d);
  const int64_t columns = queries[0].head->value_dim;
  HWY_ALIGN float sums[R][kMostWidth];
  V tests[kTileVectors];  // NEON's vectors have a constructor that sets nothing: {} is not zero
  for (V& test : tests) test = zero;
  for (int64_t first = 0; first < columns; first += kPanel) {
    const int64_t vectors = std::min(kPanel, RoundUp(columns - first, kLanes)) / kLanes;
    V acc[R][kTileVectors];
    for (int r = 0; r < R; ++r) {
      for (V& sum : acc[r]) sum = zero;
    }
    const auto add = [&](int64_t key, int v, V value) HWY_ATTR {
      for (int r = 0; r < R; ++r) {
        acc[r][v] =
            hn::MulAdd(hn::Set(d, weights[r * kStripStride + key - begin]), value, acc[r][v]);
      }
      tests[v] = hn::MulAdd(value, zero, tests[v]);
    };
    if (first + kPanel <= columns) {
      for (int64_t key = begin; key < end; ++key) {
        const typename Rows::Element* row = values.row(key) + first;
        PrefetchElements(row + Rows::kAhead * values.rows.row_stride, 0, 1, kPanel);
        for (int v = 0; v < kTileVectors; ++v) add(key, v, Rows::Load(row + v * kLanes));
      }
    } else {
      for (int64_t key = begin; key < end; ++key) {
        const typename Rows::Element* row = values.row(key) + first;
        for (int v = 0; v < vectors; ++v) {
          const int64_t left = std::min(kLanes, columns - first - v * kLanes);
          add(key, v,
              left == kLanes ? Rows::Load(row + v * kLanes)
                             : Rows::LoadFirst(row + v * kLanes, left));
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < vectors; ++v) hn::Store(acc[r][v], d, sums[r] + first + v * kLanes);
    }
  }
  for (const V& test : tests) {
    if (!hn::AllTrue(d, hn::Eq(test, zero))) return false;
  }
  for (int r = 0; r < R; ++r) {
    float* out = scratch.out + queries[r].at * scratch.value_width;
    for (int64_t c = 0; c < columns; c += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, out + c), hn::Load(d, sums[r] + c)), d, out + c);
    }
  }
  return true;
}

// The values of a block in f32, packed as rows.
inline std::vector<float> BlockValues(const HeadProblem& head, const KeyBlock& block) {
  std::vector<float> values;
  for (int64_t j = block.begin; j < block.begin + block.count; ++j) {
    for (int64_t c = 0; c < head.value_dim; ++c) {
      values.push_back(head.value_bf16.data == nullptr
                           ? head.value.at(j, c)
                           : hn::GetLane(Bf16Rows::LoadFirst(head.value_bf16.row(j) + c, 1)));
    }
  }
  return values;
}

// R queries that share keys and values against one key block.
template <int R, class Rows>
void ForwardQueries(const DecodingRow* queries, const Rows& keys, const Rows& values,
                    const KeyBlock& block, ForwardScratch& scratch) {
  const StripRange all = RangeOfRows<R>(queries);
  ScoreInPlace<R>(queries, keys, block, all, scratch);
  for (int r = 0; r < R; ++r) {
    WeighRow(queries[r], block, all, scratch.strip + r * kStripStride, scratch);
  }
  const int64_t first = all.first_vector * kLanes;
  const int64_t last = std::min(all.last_vector * kLanes, block.count);
  if (AddValuesInPlace<R>(queries, values, block.begin + first, block.begin + last,
                          scratch.strip + first, scratch)) {
    return;
  }
  // Some are not finite.
  const std::vector<float> packed = BlockValues(*queries[0].head, block);
  const Matrix block_values{packed.data(), queries[0].head->value_dim, 1};
  scratch.operands.PackValues(block_values, queries[0].head->value_dim, 0, block.count);
  for (int r = 0; r < R; ++r) {
    const DecodingRow& query = queries[r];
    const float* strip = scratch.strip + r * kStripStride;
    float* out = scratch.out + query.at * scratch.value_width;
    scratch.operands.AddValues<1>(strip, first, last, true, out);
    AddNonFiniteValues(*query.head, {block_values, 0}, block, query.range, {query.row, 1}, strip,
                       out);
  }
}

template <class Rows>
void ForwardAllQueries(const std::vector<DecodingRow>& queries, const Rows& keys,
                       const Rows& values, const KeyBlock& block, ForwardScratch& scratch) {
  size_t at = 0, left = queries.size();
  const auto run = [&]<int R>() HWY_ATTR {
    for (; left >= R; at += R, left -= R) {
      ForwardQueries<R>(&queries[at], keys, values, block, scratch);
    }
  };
  if constexpr (kTileVectors > 2) run.template operator()<4>();
  run.template operator()<2>();
  run.template operator()<1>();
}

// Here all sums are added to, from zero.
inline void StartSums(int64_t rows, ForwardScratch& scratch) {
  StartRows(rows, scratch);
  std::fill_n(scratch.out, rows * scratch.value_width, 0.0f);
}

inline int64_t ForwardSplit(const DecodingGroup& group, int64_t split) {
  const HeadProblem& any = group.heads[0];
  const int64_t count = group.head_count * any.queries;
  int64_t limit = 0;  // a closed head keeps no key
  for (int64_t h = 0; h < group.head_count; ++h) {
    limit = std::max(limit, group.heads[h].intervals.limit);
  }
  const int64_t first_key = split * kDecodingKeys;
  const int64_t last_key = std::min(first_key + kDecodingKeys, limit);
  ForwardScratch scratch(any, count, kKeyBlock);
  StartSums(count, scratch);
  std::vector<DecodingRow> queries;
  for (int64_t begin = first_key; begin < last_key; begin += kKeyBlock) {
    const KeyBlock block{begin, std::min(kKeyBlock, last_key - begin)};
    queries.clear();
    for (int64_t at = 0; at < count; ++at) {
      const HeadProblem& head = group.heads[at / any.queries];
      const int64_t row = at % any.queries;
      const StripRange range = RangeOfStrip(head, row, 1, block.begin, block.count);
      if (!range.empty()) queries.push_back({&head, row, at, range});
    }
    if (any.key_bf16.data != nullptr) {
      ForwardAllQueries(queries, Bf16Rows{any.key_bf16}, Bf16Rows{any.value_bf16}, block, scratch);
    } else {
      ForwardAllQueries(queries, F32Rows{any.key}, F32Rows{any.value}, block, scratch);
    }
  }
  for (int64_t at = 0; at < count; ++at) {
    float* sums =
        group.sums + at / any.queries * group.head_stride + at % any.queries * (2 + any.value_dim);
    *sums++ = scratch.largest[at];
    *sums++ = scratch.sum[at];
    std::copy_n(scratch.out + at * scratch.value_width, any.value_dim, sums);
  }
  return scratch.replaced;
}

inline void MergeSplits(const HeadProblem& head, const ForwardTask& task, const float* sums,
                        int64_t splits) {
  ForwardScratch scratch(head, head.queries, 0);
  StartSums(head.queries, scratch);
  for (int64_t split = 0; split < splits; ++split) {
    for (int64_t row = 0; row < head.queries; ++row, sums += 2 + head.value_dim) {
      const float largest = sums[0], sum = sums[1];
      if (sum == 0) continue;  // keeps no key
      const float relative_to = RaiseLargest(largest, row, scratch);
      // A sum of NaN may have no largest.
      const float factor = largest == relative_to || largest == kNegativeInfinity
                               ? 1
                               : std::exp2(largest - relative_to);
      float* out = scratch.out + row * scratch.value_width;
      scratch.sum[row] += factor * sum;
      for (int64_t c = 0; c < head.value_dim; ++c) out[c] += factor * sums[2 + c];
    }
  }
  FinishRows(head, task, 0, head.queries, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
