// Operands in bf16: how rows of f32 become rows and pairs (bf16-inl.h), in files that include
// bf16-target-inl.h.

#ifndef HEADLIGHT_KERNELS_ATTENTION_BF16_OPERANDS_INL_H_
#define HEADLIGHT_KERNELS_ATTENTION_BF16_OPERANDS_INL_H_

#include "headlight/kernels/attention/tile-inl.h"
#include "headlight/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

using headlight::HWY_NAMESPACE::FirstLanes;
using headlight::HWY_NAMESPACE::kPairDepth;
using headlight::HWY_NAMESPACE::kPairTile;
using headlight::HWY_NAMESPACE::MultiplyPairTiles;
using headlight::HWY_NAMESPACE::PairProduct;
using headlight::HWY_NAMESPACE::PairsOf;
using headlight::HWY_NAMESPACE::RoundedPairs;
using headlight::HWY_NAMESPACE::RoundToBf16;
using headlight::HWY_NAMESPACE::TileRegisters;
using headlight::HWY_NAMESPACE::TransposePairs;

static_assert(kLanes == kPairTile && kPanel % (2 * kPairTile) == 0);

// bf16 from row to row of packed queries and output gradients: whole cache lines, an odd number.
constexpr int64_t kRoundedStride = kMostWidth + 32;
// Transposed operands lie in panels of this many columns (two tiles).
constexpr int64_t kPairPanel = 2 * kPairTile;
// The largest number of bf16.
constexpr float kLargestBf16 = 3.38953138925153547590470800371487866880e+38f;

inline int64_t PairDepth(int64_t depth) { return RoundUp(depth, kPairDepth); }

// One or two tiles high and wide.
HWY_INLINE void MultiplyTiles(Bf16Unit unit, int64_t row_tiles, int64_t column_tiles,
                              const PairProduct& product) {
  if (unit == Bf16Unit::kAmx) {
    MultiplyPairTiles<Bf16Unit::kAmx>(row_tiles, column_tiles, product);
  } else {
    MultiplyPairTiles<Bf16Unit::kAvx512Bf16>(row_tiles, column_tiles, product);
  }
}

// The same for `columns` columns, a multiple of kPairTile.
HWY_INLINE void MultiplyColumns(Bf16Unit unit, int64_t row_tiles, int64_t columns,
                                PairProduct product) {
  for (; columns > 0; columns -= kPairPanel) {
    MultiplyTiles(unit, row_tiles, std::min(columns, kPairPanel) / kPairTile, product);
    product.b += kPairPanel;
    product.c += kPairPanel;
  }
}

// Row i of m with adjacent columns: where it lies, or gathered into `buffer`.
HWY_INLINE const float* AdjacentRow(const Matrix& m, int64_t i, int64_t dim, float* buffer) {
  if (m.column_stride == 1) return m.row(i);
  for (int64_t c = 0; c < dim; ++c) buffer[c] = m.at(i, c);
  return buffer;
}

// Rows [begin, begin + count) of m, rounded, columns past dim zero up to whole kPairDepth; rows up
// to `padded` zero. Rows of `out` are `stride` apart.
inline void RoundRows(const Matrix& m, int64_t begin, int64_t count, int64_t padded, int64_t dim,
                      uint16_t* out, int64_t stride = kRoundedStride) {
  HWY_ALIGN float buffer[kMostWidth];
  const int64_t depth = PairDepth(dim);
  for (int64_t i = 0; i < count; ++i) {
    const float* row = AdjacentRow(m, begin + i, dim, buffer);
    // A row to come: rows of a fused buffer lie kilobytes apart.
    if (m.column_stride == 1) PrefetchRows(row + kRows * m.row_stride, m.row_stride, 1, dim);
    RoundToBf16(row, dim, depth, out + i * stride);
  }
  for (int64_t i = count; i < padded; ++i) std::fill_n(out + i * stride, depth, uint16_t{0});
}

// out[panel][c / 2][key in panel]: rows [begin, begin + count) of m, transposed, in panels of
// kPairPanel, whose last ones are filled up with zeros to a multiple of kPanel.
inline void PackTransposedPairs(const Matrix& m, int64_t begin, int64_t count, int64_t dim,
                                uint32_t* out) {
  HWY_ALIGN float buffer[kPairTile * kMostWidth];
  const int64_t depth = PairDepth(dim);
  const int64_t padded = RoundUp(count, kPanel);
  for (int64_t first = 0; first < padded; first += kPairTile) {
    const float* rows[kPairTile];
    const int64_t there = std::clamp<int64_t>(count - first, 0, kPairTile);
    for (int64_t r = 0; r < there; ++r) {
      rows[r] = AdjacentRow(m, begin + first + r, dim, buffer + r * kMostWidth);
    }
    if (there > 0 && m.column_stride == 1) {
      PrefetchRows(rows[0] + kPairTile * m.row_stride, m.row_stride, there, dim);
    }
    uint32_t* panel = out + first / kPairPanel * (kPairPanel * depth / 2) + first % kPairPanel;
    for (int64_t c = 0; c < depth; c += kPairDepth) {
      __m512i tile[kPairTile];
      for (int64_t r = 0; r < kPairTile; ++r) {
        tile[r] = r < there ? RoundedPairs(rows[r] + c, dim - c) : _mm512_setzero_si512();
      }
      TransposePairs(tile);
      for (int64_t r = 0; r < kPairTile; ++r) {
        _mm512_storeu_si512(panel + (c / 2 + r) * kPairPanel, tile[r]);
      }
    }
  }
}

// What is not finite becomes 0, and finite numbers stay finite when they are rounded.
HWY_INLINE __m512 Bounded(__m512 x) {
  const __m512 largest = _mm512_set1_ps(kLargestBf16);
  const __m512 inf = _mm512_set1_ps(std::numeric_limits<float>::infinity());
  const __mmask16 finite = _mm512_cmp_ps_mask(_mm512_abs_ps(x), inf, _CMP_LT_OQ);
  return _mm512_maskz_max_ps(finite, _mm512_min_ps(x, largest),
                             _mm512_sub_ps(_mm512_setzero_ps(), largest));
}

// out[i / 2][c]: pairs of neighbouring rows [begin, begin + count) of m, zeros to whole kPairDepth
// rows and to `width` columns, a multiple of kPairTile. With `bounded`, what it says above.
// Returns whether all were bounded already.
template <bool kBounded>
inline bool PackPairs(const Matrix& m, int64_t begin, int64_t count, int64_t dim, int64_t width,
                      uint32_t* out) {
  HWY_ALIGN float buffers[2][kMostWidth];
  const __m512 largest = _mm512_set1_ps(kLargestBf16);
  __mmask16 beyond = 0;
  const int64_t padded = PairDepth(count);
  for (int64_t i = 0; i < padded; i += 2, out += width) {
    if (i >= count) {
      std::fill_n(out, width, uint32_t{0});
      continue;
    }
    const float* first = AdjacentRow(m, begin + i, dim, buffers[0]);
    const bool two = i + 1 < count;
    const float* second = two ? AdjacentRow(m, begin + i + 1, dim, buffers[1]) : first;
    if (m.column_stride == 1) {
      PrefetchRows(first + kPrefetchRows * m.row_stride, m.row_stride, 2, dim);
    }
    for (int64_t c = 0; c < width; c += kPairTile) {
      const __mmask16 lanes = FirstLanes(dim - c);
      __m512 low = _mm512_maskz_loadu_ps(lanes, first + c);
      __m512 high = _mm512_maskz_loadu_ps(two ? lanes : __mmask16{0}, second + c);
      if constexpr (kBounded) {
        low = Bounded(low);
        high = Bounded(high);
      } else {
        beyond |= _mm512_cmp_ps_mask(_mm512_abs_ps(low), largest, _CMP_NLE_UQ) |
                  _mm512_cmp_ps_mask(_mm512_abs_ps(high), largest, _CMP_NLE_UQ);
      }
      _mm512_storeu_si512(out + c, PairsOf(low, high));
    }
  }
  return beyond == 0;
}

// The same, bounded where it must be: a weight of 0 times what is packed is 0. Returns whether it
// was all bounded.
inline bool PackBoundedPairs(const Matrix& m, int64_t begin, int64_t count, int64_t dim,
                             int64_t width, uint32_t* out) {
  if (PackPairs<false>(m, begin, count, dim, width, out)) return true;
  PackPairs<true>(m, begin, count, dim, width, out);
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BF16_OPERANDS_INL_H_
