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

  static int64_t Floats(const HeadProblem& head, int64_t rows, int64_t block_keys) {
    return RoundUp(block_keys, kPanel) * head.head_dim +
           block_keys * RoundUp(head.value_dim, kLanes) + RoundUp(rows, kRows) * kQueryStride;
  }
  static ForwardOperands Place(const HeadProblem& head, int64_t block_keys, float* at) {
    ForwardOperands placed;
    placed.value_width = RoundUp(head.value_dim, kLanes);
    placed.keys = at;
    placed.values = placed.keys + RoundUp(block_keys, kPanel) * head.head_dim;
    placed.queries = placed.values + block_keys * placed.value_width;
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

  // Queries [begin, begin + rows), filled up with zeros to whole strips.
  void PackQueries(const HeadProblem& head, int64_t begin, int64_t rows) {
    const int64_t width = RoundUp(head.head_dim, kLanes);
    PackRows(head.query, begin, rows, head.head_dim, width, queries, kQueryStride);
    for (int64_t r = rows; r < RoundUp(rows, kRows); ++r) {
      std::fill_n(queries + r * kQueryStride, width, 0.0f);
    }
  }

  // Of the strip that lies `at` rows into them: rows kQueryStride apart.
  const float* StripQueries(int64_t at) const { return queries + at * kQueryStride; }

  // Products of R queries, `at` rows into those packed, and NV vectors of keys from `vector`, all
  // of one panel. `largest`, of each row, lane by lane, is raised to them; or null.
  template <int R, int NV>
  HWY_INLINE void Scores(const HeadProblem& head, int64_t at, int64_t vector, float* scores,
                         V* largest) const {
    // Few sums would wait for each other: where there are half as many columns, twice the rows.
    constexpr int kTile = 2 * NV <= kTileVectors ? R : std::min(R, kTileRows);
    const float* panel =
        keys + vector / kTileVectors * (kPanel * head.head_dim) + vector % kTileVectors * kLanes;
    for (int row = 0; row < R; row += kTile) {
      V acc[kTile][NV];
      ZeroTile(acc);
      TileByRows<kQueryStride>(StripQueries(at + row), panel, kPanel, head.head_dim, acc);
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
  float* keys = nullptr;     // transposed panels
  float* values = nullptr;   // [keys, value_width]
  float* queries = nullptr;  // [rows of a task], kQueryStride apart
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
