// The fused forward pass of one head with few queries: keys and values are read where they lie, in
// splits that are merged afterwards.

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

// scores[0..kTogether) = q . k of as many keys from `key`, which exist.
template <class Rows>
HWY_INLINE void DotKeys(const Rows& keys, int64_t dim, const float* query, int64_t key,
                        float* scores) {
  const D d;
  const typename Rows::Element* rows[kTogether];
  V sums[kTogether];
  for (int64_t j = 0; j < kTogether; ++j) {
    rows[j] = keys.row(key + j);
    sums[j] = hn::Zero(d);
  }
  PrefetchElements(rows[0] + Rows::kAhead * keys.rows.row_stride, keys.rows.row_stride, kTogether,
                   dim);
  int64_t c = 0;
  for (; c + kLanes <= dim; c += kLanes) {
    const V q = hn::LoadU(d, query + c);
    for (int64_t j = 0; j < kTogether; ++j) {
      sums[j] = hn::MulAdd(q, Rows::Load(rows[j] + c), sums[j]);
    }
  }
  for (int64_t j = 0; j < kTogether; ++j) {
    if (c < dim) {
      const int64_t left = dim - c;
      sums[j] =
          hn::MulAdd(LoadPart(d, query + c, left), Rows::LoadFirst(rows[j] + c, left), sums[j]);
    }
  }
  SumLanes(sums, scores);
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

// Scores of query `row` against a range of the block into the strip, finished; returns the largest.
template <class Rows>
HWY_NOINLINE float ScoreInPlace(const HeadProblem& head, const Rows& keys, const KeyBlock& block,
                                const StripRange& range, int64_t row, ForwardScratch& scratch) {
  const D d;
  const int64_t first = range.first_vector * kLanes, last = range.last_vector * kLanes;
  const int64_t there = std::min(last, block.count);
  int64_t j = first;
  for (; j + kTogether <= there; j += kTogether) {
    DotKeys(keys, head.head_dim, scratch.operands.query, block.begin + j, scratch.strip + j);
  }
  for (; j < there; ++j)
    scratch.strip[j] = DotKey(keys, head.head_dim, scratch.operands.query, block.begin + j);
  std::fill(scratch.strip + there, scratch.strip + last, 0.0f);

  V largest = hn::Set(d, kNegativeInfinity);
  const bool all_modified = head.ChecksEveryScore();
  StripScores strip{row, &largest, 0, nullptr, 0, 0, head.modifier.any(), !all_modified};
  const int64_t full_begin = all_modified ? std::numeric_limits<int64_t>::max() : range.full_begin;
  for (j = first; j < last; j += kLanes) {
    FinishScores<1, 1>(head, block.begin + j, full_begin, range.full_end, scratch.strip + j, strip);
  }
  scratch.replaced += strip.replaced;
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// out += sum of weights[j] * value row j for keys [begin, end); false, with `out` as it was, where
// a value is not finite.
template <class Rows>
HWY_NOINLINE bool AddValuesInPlace(const Rows& values, int64_t columns, int64_t begin, int64_t end,
                                   const float* weights, float* out) {
  const D d;
  const V zero = hn::Zero(d);
  HWY_ALIGN float sums[kMostWidth];
  V tests[kTileVectors];  // NEON's vectors have a constructor that sets nothing: {} is not zero
  for (V& test : tests) test = zero;
  for (int64_t first = 0; first < columns; first += kPanel) {
    const int64_t vectors = std::min(kPanel, RoundUp(columns - first, kLanes)) / kLanes;
    V acc[kTileVectors];
    for (V& sum : acc) sum = zero;
    const auto add = [&](int64_t key, int v, V value) HWY_ATTR {
      acc[v] = hn::MulAdd(hn::Set(d, weights[key - begin]), value, acc[v]);
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
    for (int v = 0; v < vectors; ++v) hn::Store(acc[v], d, sums + first + v * kLanes);
  }
  for (const V& test : tests) {
    if (!hn::AllTrue(d, hn::Eq(test, zero))) return false;
  }
  for (int64_t c = 0; c < columns; c += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, out + c), hn::Load(d, sums + c)), d, out + c);
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

// Query `row` against one key block.
template <class Rows>
void ForwardQuery(const HeadProblem& head, const Rows& keys, const Rows& values,
                  const KeyBlock& block, int64_t row, ForwardScratch& scratch) {
  const StripRange range = RangeOfStrip(head, row, 1, block.begin, block.count);
  if (range.empty()) return;
  scratch.operands.PackStrip<1>(head, row, 1, 0);
  const float scale = head.scale * kLog2E;
  const float score = ScoreInPlace(head, keys, block, range, row, scratch);
  const float largest = RaiseLargest(score * scale, row, scratch);
  float sum = 0;
  ExponentiateStrip<1, StoreF32>(range, scale, &largest, scratch.strip, &sum, NoStatistics());
  scratch.sum[row] += sum;
  if (head.drops) DropStrip<1>(head, block, range, row, scratch.strip);
  const int64_t first = range.first_vector * kLanes;
  const int64_t last = std::min(range.last_vector * kLanes, block.count);
  float* out = scratch.out + row * scratch.value_width;
  if (AddValuesInPlace(values, head.value_dim, block.begin + first, block.begin + last,
                       scratch.strip + first, out)) {
    return;
  }
  // Some are not finite.
  const std::vector<float> packed = BlockValues(head, block);
  const Matrix block_values{packed.data(), head.value_dim, 1};
  scratch.operands.PackValues(block_values, head.value_dim, 0, block.count);
  scratch.operands.AddValues<1>(scratch.strip, first, last, true, out);
  AddNonFiniteValues(head, {block_values, 0}, block, range, {row, 1}, scratch.strip, out);
}

// Here all sums are added to, from zero.
inline void StartSums(int64_t rows, ForwardScratch& scratch) {
  StartRows(rows, scratch);
  std::fill_n(scratch.out, rows * scratch.value_width, 0.0f);
}

inline int64_t ForwardSplit(const HeadProblem& head, int64_t split, float* sums) {
  const int64_t first_key = split * kDecodingKeys;
  const int64_t last_key = std::min(first_key + kDecodingKeys, head.intervals.limit);
  ForwardScratch scratch(head, head.queries, kKeyBlock);
  StartSums(head.queries, scratch);
  for (int64_t begin = first_key; begin < last_key; begin += kKeyBlock) {
    const KeyBlock block{begin, std::min(kKeyBlock, last_key - begin)};
    for (int64_t row = 0; row < head.queries; ++row) {
      if (head.key_bf16.data != nullptr) {
        ForwardQuery(head, Bf16Rows{head.key_bf16}, Bf16Rows{head.value_bf16}, block, row, scratch);
      } else {
        ForwardQuery(head, F32Rows{head.key}, F32Rows{head.value}, block, row, scratch);
      }
    }
  }
  for (int64_t row = 0; row < head.queries; ++row) {
    *sums++ = scratch.largest[row];
    *sums++ = scratch.sum[row];
    sums = std::copy_n(scratch.out + row * scratch.value_width, head.value_dim, sums);
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
