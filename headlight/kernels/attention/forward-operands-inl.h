// The operands of the forward pass's products as f32: the key block and a strip of queries, packed.
// (bf16-forward-operands-inl.h has the same for bf16.)

#if defined(HEADLIGHT_KERNELS_ATTENTION_FORWARD_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_FORWARD_OPERANDS_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_FORWARD_OPERANDS_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_FORWARD_OPERANDS_INL_H_
#endif

#include "headlight/kernels/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

struct ForwardOperands {
  // Strips begin at a multiple of so many vectors of keys.
  static constexpr int64_t kFirstVectors = 1;

  static int64_t Floats(const HeadProblem& head, int64_t, int64_t block_keys) {
    return RoundUp(block_keys, kPanel) * head.head_dim +
           block_keys * RoundUp(head.value_dim, kLanes) + kRows * kQueryStride;
  }
  static ForwardOperands Place(const HeadProblem& head, int64_t block_keys, float* at) {
    ForwardOperands placed;
    placed.value_width = RoundUp(head.value_dim, kLanes);
    placed.keys = at;
    placed.values = placed.keys + RoundUp(block_keys, kPanel) * head.head_dim;
    placed.query = placed.values + block_keys * placed.value_width;
    return placed;
  }

  void PackKeys(const HeadProblem& head, int64_t begin, int64_t count) {
    PackTransposed(head.key, begin, count, head.head_dim, keys);
  }

  // Whether all are finite; those that are not are packed as 0.
  bool PackValues(const Matrix& value, int64_t value_dim, int64_t begin, int64_t count) {
    const bool finite = PackRows(value, begin, count, value_dim, value_width, values, value_width);
    if (!finite) Sanitize(values, count, value_width, value_width);
    return finite;
  }

  // Queries [row, row + rows) of a strip, rows up to R zero.
  template <int R>
  void PackStrip(const HeadProblem& head, int64_t row, int64_t rows, int64_t) {
    const int64_t query_width = RoundUp(head.head_dim, kLanes);
    PackRows(head.query, row, rows, head.head_dim, query_width, query, kQueryStride);
    for (int64_t r = rows; r < R; ++r) std::fill_n(query + r * kQueryStride, query_width, 0.0f);
  }

  // For products with tables of relative positions: rows kQueryStride apart.
  const float* query_rows() const { return query; }

  // Products of R queries and NV vectors of keys from `vector`, all of one panel. `largest`, of
  // each row, lane by lane, is raised to them; or null.
  template <int R, int NV>
  HWY_INLINE void Scores(const HeadProblem& head, int64_t vector, float* scores, V* largest) const {
    // Few sums would wait for each other: where there are half as many columns, twice the rows.
    constexpr int kTile = 2 * NV <= kTileVectors ? R : std::min(R, kTileRows);
    const float* panel =
        keys + vector / kTileVectors * (kPanel * head.head_dim) + vector % kTileVectors * kLanes;
    for (int row = 0; row < R; row += kTile) {
      V acc[kTile][NV];
      ZeroTile(acc);
      TileByRows<kQueryStride>(query + row * kQueryStride, panel, kPanel, head.head_dim, acc);
      StoreTile(acc, scores + row * kStripStride, kStripStride);
      if (largest == nullptr) continue;
      HWY_UNROLL(16)
      for (int r = 0; r < kTile; ++r) {
        V most = largest[row + r];
        HWY_UNROLL(8)
        for (int v = 0; v < NV; ++v) most = hn::Max(acc[r][v], most);
        largest[row + r] = most;
      }
    }
  }

  // out (+)= weights of R rows times the values of keys [first, last) of the block.
  template <int R>
  void AddValues(const float* strip, int64_t first, int64_t last, bool add, float* out) const {
    MultiplyRows<R, true>({strip + first, values + first * value_width, value_width, last - first,
                           out, value_width, value_width, add});
  }

  int64_t value_width = 0;
  float* keys = nullptr;    // transposed panels
  float* values = nullptr;  // [keys, value_width]
  float* query = nullptr;   // of a strip
};

// How weights are stored that only the product with the values reads: as they are.
using StoreOperands = StoreF32;

// Before AddValues: the strip as StoreOperands would have left it.
template <int R>
HWY_INLINE void RoundStrip(int64_t, int64_t, float*) {}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_FORWARD_OPERANDS_INL_H_
