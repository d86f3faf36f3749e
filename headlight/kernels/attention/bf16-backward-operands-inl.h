// The operands of the backward pass's products in bf16 (backward-operands-inl.h has the same for
// f32). The gradients of keys and values are summed transposed,
//
//   dV^T += dO^T P        dK^T += Q^T dS
//
// so that weights and score gradients are right operands: pairs over queries, which are two rounded
// rows interleaved. Left ones, their transposes, would cost a transpose for every score.

#ifndef HEADLIGHT_KERNELS_ATTENTION_BF16_BACKWARD_OPERANDS_INL_H_
#define HEADLIGHT_KERNELS_ATTENTION_BF16_BACKWARD_OPERANDS_INL_H_

#include "headlight/kernels/attention/backward-strips-inl.h"
#include "headlight/kernels/attention/bf16-operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// bf16 from row to row of transposed queries and output gradients.
constexpr int64_t kColumnStride = kQueryBlock + 32;
// The same of rounded score gradients.
constexpr int64_t kGradientStride = kKeyBlock + 32;
static_assert(kRows == kPairDepth);

// Interleaving rows shuffles the keys within every kPairPanel: the instruction works on 128 bits
// at a time. Column n of a tile is key KeyOfColumn(n).
inline int64_t KeyOfColumn(int64_t n) {
  const int64_t in_panel = n % kPairPanel, in_tile = in_panel % kPairTile;
  return n - in_panel + in_tile / 4 * 8 + in_tile % 4 + in_panel / kPairTile * 4;
}
inline int64_t ColumnOfKey(int64_t key) {
  const int64_t in_panel = key % kPairPanel;
  return key - in_panel + in_panel / 8 * 4 + in_panel % 4 + in_panel % 8 / 4 * kPairTile;
}

// out[c][i] = bf16 of rows[i][c] for `count` rows, a multiple of kPairDepth, kQueryStride apart,
// and `width` columns.
inline void PackColumns(const float* rows, int64_t count, int64_t width, uint16_t* out) {
  const __m512 largest = _mm512_set1_ps(kLargestBf16), least = _mm512_set1_ps(-kLargestBf16);
  const auto load = [&](const float* from) HWY_ATTR {
    return _mm512_max_ps(_mm512_min_ps(_mm512_loadu_ps(from), largest), least);
  };
  for (int64_t i = 0; i < count; i += kPairDepth) {
    for (int64_t c = 0; c < width; c += kPairTile) {
      __m512i tile[kPairTile];
      for (int64_t pair = 0; pair < kPairTile; ++pair) {
        const float* from = rows + (i + 2 * pair) * kQueryStride + c;
        tile[pair] = PairsOf(load(from), load(from + kQueryStride));
      }
      TransposePairs(tile);
      for (int64_t r = 0; r < kPairTile; ++r) {
        _mm512_storeu_si512(out + (c + r) * kColumnStride + i, tile[r]);
      }
    }
  }
}

struct BackwardOperands {
  // Weights and score gradients are held in f32 a panel at a time.
  static constexpr int64_t kRowsHeld = kRows;
  static int64_t PanelPlace(int64_t, int64_t) { return 0; }

  static int64_t Floats(const HeadProblem& head, int64_t block_keys) {
    return Carve(head, block_keys, nullptr).floats;
  }
  static BackwardOperands Place(const HeadProblem& head, int64_t block_keys, float* at) {
    return Carve(head, block_keys, at);
  }

  // Begins a key block.
  void PackKeyBlock(const HeadProblem& head, int64_t begin, int64_t count) {
    PackTransposedPairs(head.key, begin, count, head.head_dim, keys_transposed);
    PackTransposedPairs(head.value, begin, count, head.value_dim, values_transposed);
    PackBoundedPairs(head.key, begin, count, head.head_dim, head_width, keys);
    std::fill_n(key_gradient, head_width * kStripStride, 0.0f);
    std::fill_n(value_gradient, value_width * kStripStride, 0.0f);
  }

  // Begins a query block of so many rows, which are packed and filled up with zeros.
  void TakeQueries(const HeadProblem& head, const QueryRows& rows, int64_t count) {
    const int64_t padded = RoundUp(count, kRows);
    RoundRows({rows.query, kQueryStride, 1}, 0, padded, padded, head.head_dim, query);
    RoundRows({rows.out_gradient, kQueryStride, 1}, 0, padded, padded, head.value_dim,
              out_gradient);
  }

  // Q K^T and dO V^T of R rows, `in_block` rows into the query block, and a panel of keys.
  template <int R, int NV>
  HWY_INLINE void PanelProducts(const HeadProblem&, const QueryRows&, int64_t in_block,
                                int64_t first_key, float* weights, float* gradients) const {
    for (int64_t v = 0; v < NV; v += 2) {
      const int64_t first = first_key + v * kLanes, tiles = std::min<int64_t>(NV - v, 2);
      MultiplyTiles(unit, R / kPairTile, tiles,
                    {query + in_block * kRoundedStride, kRoundedStride,
                     keys_transposed + first * head_depth / 2, kPairPanel, head_depth,
                     weights + v * kLanes, kStripStride, false});
      MultiplyTiles(unit, R / kPairTile, tiles,
                    {out_gradient + in_block * kRoundedStride, kRoundedStride,
                     values_transposed + first * value_depth / 2, kPairPanel, value_depth,
                     gradients + v * kLanes, kStripStride, false});
    }
  }

  // Takes P (times dropout factors) and dS of such a panel, of which `rows` rows are there.
  template <int R, int NV>
  HWY_INLINE void TakePanel(int64_t in_block, int64_t rows, int64_t first_key, float* weights,
                            float* gradients) const {
    for (int64_t r = rows; r < R; ++r) {
      std::fill_n(weights + r * kStripStride, NV * kLanes, 0.0f);
      std::fill_n(gradients + r * kStripStride, NV * kLanes, 0.0f);
    }
    uint32_t* to_weights = weight_pairs + in_block / 2 * kStripStride + first_key;
    uint32_t* to_gradients = gradient_pairs + in_block / 2 * kStripStride + first_key;
    for (int64_t r = 0; r < R; r += 2) {
      uint16_t* row = gradient_rows + r * kGradientStride + first_key;
      for (int64_t v = 0; v < NV; v += 2) {
        const int64_t at = r * kStripStride + v * kLanes, keys_left = (NV - v) * kLanes;
        StorePairs(RoundedPairs(weights + at, keys_left),
                   RoundedPairs(weights + at + kStripStride, keys_left), to_weights + v * kLanes);
        const __m512i first = RoundedPairs(gradients + at, keys_left);
        const __m512i second = RoundedPairs(gradients + at + kStripStride, keys_left);
        StorePairs(first, second, to_gradients + v * kLanes);
        _mm512_storeu_si512(row + v * kLanes, first);
        _mm512_storeu_si512(row + kGradientStride + v * kLanes, second);
      }
      to_weights += kStripStride;
      to_gradients += kStripStride;
    }
    // The summed axis is filled up to whole kPairDepth.
    for (int64_t r = R; r < kPairDepth; r += 2) {
      std::fill_n(to_weights, RoundUp(NV, 2) * kLanes, uint32_t{0});
      std::fill_n(to_gradients, RoundUp(NV, 2) * kLanes, uint32_t{0});
      to_weights += kStripStride;
      to_gradients += kStripStride;
    }
  }

  // dQ of the strip whose keys [first, last) of the block were taken.
  template <int R>
  void QueryGradient(const QueryRows&, int64_t, int64_t first, int64_t last, float* out) const {
    MultiplyColumns(unit, R / kPairTile, head_width,
                    {gradient_rows + first, kGradientStride, keys + first / 2 * head_width,
                     head_width, PairDepth(last - first), out, head_width, false});
  }

  // dK and dV += the products with the query block, panel by panel of keys. A panel takes the rows
  // of the strips that cover it.
  void AddKeyGradients(const HeadProblem&, const Strips& strips, const QueryRows& rows) const {
    const int64_t count = RoundUp(strips.first_row[strips.count], kRows), last = strips.LastKey();
    PackColumns(rows.query, count, head_width, query_columns);
    PackColumns(rows.out_gradient, count, value_width, out_gradient_columns);
    for (int64_t s = 0; s < strips.count; ++s) {
      if (strips.IsGap(s)) ZeroPairs(strips, s);
    }
    for (int64_t key = strips.FirstKey(); key < last; key += kPairPanel) {
      const Strips::Rows covering = strips.Covering(key, kPairPanel);
      if (covering.begin == covering.end) continue;
      const int64_t depth = PairDepth(covering.end - covering.begin);
      const int64_t pairs = covering.begin / 2 * kStripStride + key;
      AddProduct({out_gradient_columns + covering.begin, kColumnStride, weight_pairs + pairs,
                  kStripStride, depth, value_gradient + key, kStripStride, true},
                 value_width);
      AddProduct({query_columns + covering.begin, kColumnStride, gradient_pairs + pairs,
                  kStripStride, depth, key_gradient + key, kStripStride, true},
                 head_width);
    }
  }

  void AddToValueGradient(int64_t key, int64_t c, float added) const {
    value_gradient[c * kStripStride + ColumnOfKey(key)] += added;
  }

  // Ends a key block.
  void WriteGradients(const HeadProblem& head, int64_t begin, int64_t count,
                      const MutableMatrix& key_to, const MutableMatrix& value_to,
                      const QueryRows& rows) const {
    float* turned = rows.weights;
    for (int64_t key = 0; key < count; key += kPairPanel) {
      const int64_t keys_there = std::min(kPairPanel, count - key);
      TurnPanel(key_gradient + key, head_width, turned);
      WriteGradient(turned, head_width, keys_there, head.head_dim, head.scale, false, key_to,
                    begin + key);
      TurnPanel(value_gradient + key, value_width, turned);
      WriteGradient(turned, value_width, keys_there, head.value_dim, 1, false, value_to,
                    begin + key);
    }
  }

  Bf16Unit unit = Bf16Unit::kNone;
  int64_t floats = 0;
  int64_t head_depth = 0, value_depth = 0, head_width = 0, value_width = 0;
  // Of the key block: pairs over head_dim and value_dim, pairs over keys, and transposed sums of
  // the gradients, kStripStride apart.
  uint32_t *keys_transposed = nullptr, *values_transposed = nullptr, *keys = nullptr;
  float *key_gradient = nullptr, *value_gradient = nullptr;
  // Of the query block: rows, columns, and pairs over queries, kStripStride apart.
  uint16_t *query = nullptr, *out_gradient = nullptr;
  uint16_t *query_columns = nullptr, *out_gradient_columns = nullptr;
  uint32_t *weight_pairs = nullptr, *gradient_pairs = nullptr;
  uint16_t* gradient_rows = nullptr;  // of a strip

 private:
  // From `at`, or, where that is null, only how much.
  static BackwardOperands Carve(const HeadProblem& head, int64_t block_keys, float* at) {
    BackwardOperands made;
    made.unit = head.unit;
    made.head_depth = PairDepth(head.head_dim);
    made.value_depth = PairDepth(head.value_dim);
    made.head_width = RoundUp(head.head_dim, kPairTile);
    made.value_width = RoundUp(head.value_dim, kPairTile);
    const int64_t keys = RoundUp(block_keys, kPanel);
    const auto take = [&](auto*& part, int64_t count) {
      using T = std::remove_reference_t<decltype(*part)>;
      if (at != nullptr) part = reinterpret_cast<T*>(at + made.floats);
      made.floats += RoundUp(count * static_cast<int64_t>(sizeof(T)) / 4, 16);
    };
    take(made.keys_transposed, keys * made.head_depth / 2);
    take(made.values_transposed, keys * made.value_depth / 2);
    take(made.keys, keys / 2 * made.head_width);
    take(made.key_gradient, made.head_width * kStripStride);
    take(made.value_gradient, made.value_width * kStripStride);
    take(made.query, kQueryBlock * kRoundedStride);
    take(made.out_gradient, kQueryBlock * kRoundedStride);
    take(made.query_columns, made.head_width * kColumnStride);
    take(made.out_gradient_columns, made.value_width * kColumnStride);
    take(made.weight_pairs, kQueryBlock / 2 * kStripStride);
    take(made.gradient_pairs, kQueryBlock / 2 * kStripStride);
    take(made.gradient_rows, kRows * kGradientStride);
    return made;
  }

  // Two rows of kPairPanel keys, interleaved.
  static HWY_INLINE void StorePairs(__m512i first, __m512i second, uint32_t* to) {
    _mm512_storeu_si512(to, _mm512_unpacklo_epi16(first, second));
    _mm512_storeu_si512(to + kPairTile, _mm512_unpackhi_epi16(first, second));
  }

  void ZeroPairs(const Strips& strips, int64_t number) const {
    const int64_t first = strips.FirstKey(), count = RoundUp(strips.LastKey(), kPairPanel) - first;
    for (int64_t r = strips.first_row[number]; r < strips.first_row[number + 1]; r += 2) {
      std::fill_n(weight_pairs + r / 2 * kStripStride + first, count, uint32_t{0});
      std::fill_n(gradient_pairs + r / 2 * kStripStride + first, count, uint32_t{0});
    }
  }

  // `rows` rows of sums, a multiple of kPairTile, for one panel of keys.
  void AddProduct(PairProduct product, int64_t rows) const {
    for (; rows > 0; rows -= 2 * kPairTile) {
      MultiplyTiles(unit, rows > kPairTile ? 2 : 1, kPairPanel / kPairTile, product);
      product.a += 2 * kPairTile * product.a_row;
      product.c += 2 * kPairTile * product.c_row;
    }
  }

  // turned[key in panel][0..width) from sums[c][column], which are kStripStride apart.
  static void TurnPanel(const float* sums, int64_t width, float* turned) {
    for (int64_t c = 0; c < width; c += kPairTile) {
      for (int64_t n = 0; n < kPairPanel; n += kPairTile) {
        __m512i tile[kPairTile];
        for (int64_t r = 0; r < kPairTile; ++r) {
          tile[r] = _mm512_loadu_si512(sums + (c + r) * kStripStride + n);
        }
        TransposePairs(tile);
        for (int64_t r = 0; r < kPairTile; ++r) {
          _mm512_storeu_si512(turned + KeyOfColumn(n + r) * width + c, tile[r]);
        }
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BF16_BACKWARD_OPERANDS_INL_H_
