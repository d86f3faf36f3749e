// The fused forward pass of one head with few queries: keys and values are read where they lie, in
// splits that are merged afterwards.

#if defined(HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_DECODING_INL_H_
#endif

#include "headlight/kernels/attention/forward-inl.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

using headlight::HWY_NAMESPACE::LoadPart;

// scores[0..kTogether) = q . k of as many keys from `key`, which exist.
constexpr int64_t kTogether = 4;
HWY_INLINE void DotKeys(const HeadProblem& head, const float* query, int64_t key, float* scores) {
  const D d;
  const float* rows[kTogether];
  V sums[kTogether];
  for (int64_t j = 0; j < kTogether; ++j) {
    rows[j] = head.key.row(key + j);
    sums[j] = hn::Zero(d);
  }
  PrefetchRows(rows[0] + kPrefetchRows * head.key.row_stride, head.key.row_stride, kTogether,
               head.head_dim);
  int64_t c = 0;
  for (; c + kLanes <= head.head_dim; c += kLanes) {
    const V q = hn::LoadU(d, query + c);
    for (int64_t j = 0; j < kTogether; ++j) {
      sums[j] = hn::MulAdd(q, hn::LoadU(d, rows[j] + c), sums[j]);
    }
  }
  for (int64_t j = 0; j < kTogether; ++j) {
    if (c < head.head_dim) {
      const int64_t left = head.head_dim - c;
      sums[j] = hn::MulAdd(LoadPart(d, query + c, left), LoadPart(d, rows[j] + c, left), sums[j]);
    }
    scores[j] = hn::GetLane(hn::SumOfLanes(d, sums[j]));
  }
}

// The same for one key, in the same order of additions.
HWY_INLINE float DotKey(const HeadProblem& head, const float* query, int64_t key) {
  const D d;
  const float* row = head.key.row(key);
  V sum = hn::Zero(d);
  int64_t c = 0;
  for (; c + kLanes <= head.head_dim; c += kLanes) {
    sum = hn::MulAdd(hn::LoadU(d, query + c), hn::LoadU(d, row + c), sum);
  }
  if (c < head.head_dim) {
    const int64_t left = head.head_dim - c;
    sum = hn::MulAdd(LoadPart(d, query + c, left), LoadPart(d, row + c, left), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Scores of query `row` against a range of the block into the strip, finished; returns the largest.
inline HWY_NOINLINE float ScoreInPlace(const HeadProblem& head, const KeyBlock& block,
                                       const StripRange& range, int64_t row,
                                       ForwardScratch& scratch) {
  const D d;
  const int64_t first = range.first_vector * kLanes, last = range.last_vector * kLanes;
  const int64_t there = std::min(last, block.count);
  int64_t j = first;
  for (; j + kTogether <= there; j += kTogether) {
    DotKeys(head, scratch.operands.query, block.begin + j, scratch.strip + j);
  }
  for (; j < there; ++j) scratch.strip[j] = DotKey(head, scratch.operands.query, block.begin + j);
  std::fill(scratch.strip + there, scratch.strip + last, 0.0f);

  V largest = hn::Set(d, kNegativeInfinity);
  StripScores strip{row, &largest, 0, nullptr, 0, 0, head.modifier.any()};
  const int64_t full_begin =
      head.ChecksEveryScore() ? std::numeric_limits<int64_t>::max() : range.full_begin;
  for (j = first; j < last; j += kLanes) {
    FinishScores<1, 1>(head, block.begin + j, full_begin, range.full_end, scratch.strip + j, strip);
  }
  scratch.replaced += strip.replaced;
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// out += sum of weights[j] * value row j for keys [begin, end); false, with `out` as it was, where
// a value is not finite.
inline HWY_NOINLINE bool AddValuesInPlace(const HeadProblem& head, int64_t begin, int64_t end,
                                          const float* weights, float* out) {
  const D d;
  const V zero = hn::Zero(d);
  const int64_t columns = head.value_dim;
  HWY_ALIGN float sums[kMostWidth];
  V test = zero;
  for (int64_t first = 0; first < columns; first += kPanel) {
    const int64_t vectors = std::min(kPanel, RoundUp(columns - first, kLanes)) / kLanes;
    V acc[kTileVectors] = {};
    const auto add = [&](int64_t key, int v, V value) HWY_ATTR {
      acc[v] = hn::MulAdd(hn::Set(d, weights[key - begin]), value, acc[v]);
      test = hn::MulAdd(value, zero, test);
    };
    if (first + kPanel <= columns) {
      for (int64_t key = begin; key < end; ++key) {
        const float* row = head.value.row(key) + first;
        PrefetchRows(row + kPrefetchRows * head.value.row_stride, 0, 1, kPanel);
        for (int v = 0; v < kTileVectors; ++v) add(key, v, hn::LoadU(d, row + v * kLanes));
      }
    } else {
      for (int64_t key = begin; key < end; ++key) {
        const float* row = head.value.row(key) + first;
        for (int v = 0; v < vectors; ++v) {
          const int64_t left = std::min(kLanes, columns - first - v * kLanes);
          add(key, v,
              left == kLanes ? hn::LoadU(d, row + v * kLanes)
                             : LoadPart(d, row + v * kLanes, left));
        }
      }
    }
    for (int v = 0; v < vectors; ++v) hn::Store(acc[v], d, sums + first + v * kLanes);
  }
  if (!hn::AllTrue(d, hn::Eq(test, zero))) return false;
  for (int64_t c = 0; c < columns; c += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, out + c), hn::Load(d, sums + c)), d, out + c);
  }
  return true;
}

// Query `row` against one key block.
inline void ForwardQuery(const HeadProblem& head, const KeyBlock& block, int64_t row,
                         ForwardScratch& scratch) {
  const StripRange range = RangeOfStrip(head, row, 1, block.begin, block.count);
  if (range.empty()) return;
  scratch.operands.PackQueries<1>(head, row, 1);
  const float scale = head.scale * kLog2E;
  const float score = ScoreInPlace(head, block, range, row, scratch);
  const float largest = RaiseLargest(score * scale, row, scratch);
  float sum = 0;
  ExponentiateStrip<1, StoreF32>(range, scale, &largest, scratch.strip, &sum);
  scratch.sum[row] += sum;
  if (head.drops) DropStrip<1>(head, block, range, row, scratch.strip);
  const int64_t first = range.first_vector * kLanes;
  const int64_t last = std::min(range.last_vector * kLanes, block.count);
  float* out = scratch.out + row * scratch.value_width;
  if (AddValuesInPlace(head, block.begin + first, block.begin + last, scratch.strip + first, out)) {
    return;
  }
  scratch.operands.PackValues(head, block.begin, block.count);
  scratch.operands.AddValues<1>(scratch.strip, first, last, true, out);
  AddNonFiniteValues(head, block, range, row, 1, scratch.strip, out, scratch.value_width);
}

inline int64_t ForwardSplit(const HeadProblem& head, int64_t split, float* sums) {
  const int64_t first_key = split * kDecodingKeys;
  const int64_t last_key = std::min(first_key + kDecodingKeys, head.intervals.limit);
  ForwardScratch scratch(head, head.queries, kKeyBlock);
  StartRows(head.queries, scratch);
  for (int64_t begin = first_key; begin < last_key; begin += kKeyBlock) {
    const KeyBlock block{begin, std::min(kKeyBlock, last_key - begin)};
    for (int64_t row = 0; row < head.queries; ++row) ForwardQuery(head, block, row, scratch);
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
  StartRows(head.queries, scratch);
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
