// The operands of the forward pass's products in bf16 (forward-operands-inl.h has the same for
// f32): queries and weights as rows, keys as pairs over head_dim, values as pairs over keys.

#ifndef HEADLIGHT_KERNELS_ATTENTION_BF16_FORWARD_OPERANDS_INL_H_
#define HEADLIGHT_KERNELS_ATTENTION_BF16_FORWARD_OPERANDS_INL_H_

#include "headlight/kernels/attention/bf16-operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

struct ForwardOperands {
  // Strips begin at a multiple of so many vectors of keys: what is packed together.
  static constexpr int64_t kFirstVectors = kPairPanel / kLanes;

  static int64_t Floats(const HeadProblem& head, int64_t rows, int64_t block_keys) {
    return KeyFloats(head, block_keys) +
           PairDepth(block_keys) / 2 * RoundUp(head.value_dim, kPairTile) +
           RoundUp(rows, kRows) * PairDepth(head.head_dim) / 2;
  }
  static ForwardOperands Place(const HeadProblem& head, int64_t block_keys, float* at) {
    ForwardOperands placed;
    placed.unit = head.unit;
    placed.depth = PairDepth(head.head_dim);
    placed.value_width = RoundUp(head.value_dim, kPairTile);
    placed.keys = reinterpret_cast<uint32_t*>(at);
    placed.values = placed.keys + KeyFloats(head, block_keys);
    placed.queries =
        reinterpret_cast<uint16_t*>(placed.values + PairDepth(block_keys) / 2 * placed.value_width);
    return placed;
  }

  void PackKeys(const HeadProblem& head, int64_t begin, int64_t count) {
    PackTransposedPairs(head.key, begin, count, head.head_dim, keys);
  }

  // Whether all are finite; those that are not are packed as 0.
  bool PackValues(const Matrix& value, int64_t value_dim, int64_t begin, int64_t count) {
    return PackBoundedPairs(value, begin, count, value_dim, value_width, values);
  }

  // Queries [begin, begin + rows), filled up with zeros to whole strips.
  void PackQueries(const HeadProblem& head, int64_t begin, int64_t rows) {
    RoundRows(head.query, begin, rows, RoundUp(rows, kRows), head.head_dim, queries, depth);
  }

  // There are no tables of relative positions.
  const float* StripQueries(int64_t) const { return nullptr; }

  // Products of R queries, `at` rows into those packed, and NV vectors of keys from `vector`, all
  // of one panel. `largest`, of each row, lane by lane, is raised to them; or null.
  template <int R, int NV>
  HWY_INLINE void Scores(const HeadProblem&, int64_t at, int64_t vector, float* scores,
                         V* largest) const {
    const uint16_t* query = queries + at * depth;
    for (int64_t v = 0; v < NV; v += 2) {
      const int64_t first = (vector + v) * kLanes;
      MultiplyTiles(unit, R / kPairTile, std::min<int64_t>(NV - v, 2),
                    {query, depth, keys + first * depth / 2, kPairPanel, depth, scores + v * kLanes,
                     kStripStride, false});
    }
    if (largest == nullptr) return;
    const D d;
    for (int r = 0; r < R; ++r) {
      V most = largest[r];
      HWY_UNROLL(4)
      for (int v = 0; v < NV; ++v) {
        most = hn::Max(hn::LoadU(d, scores + r * kStripStride + v * kLanes), most);
      }
      largest[r] = most;
    }
  }

  // out (+)= weights of R rows, as StoreBf16 left them, times the values of keys [first, last) of
  // the block.
  template <int R>
  void AddValues(const float* strip, int64_t first, int64_t last, bool add, float* out) const {
    const auto* weights = reinterpret_cast<const uint16_t*>(strip);
    MultiplyColumns(unit, R / kPairTile, value_width,
                    {weights + first, 2 * kStripStride, values + first / 2 * value_width,
                     value_width, PairDepth(last - first), out, value_width, add});
  }

  static int64_t KeyFloats(const HeadProblem& head, int64_t block_keys) {
    return RoundUp(block_keys, kPanel) * PairDepth(head.head_dim) / 2;
  }

  Bf16Unit unit = Bf16Unit::kNone;
  int64_t depth = 0, value_width = 0;
  uint32_t *keys = nullptr, *values = nullptr;  // the key block
  uint16_t* queries = nullptr;                  // [rows of a task, depth]
};

// How weights are stored that only the product with the values reads: in the first half of their
// row, with zeros up to whole kPairDepth. What is overwritten has been read.
struct StoreBf16 {
  static HWY_INLINE void Two(V first, V second, float* row, int64_t key) {
    _mm512_storeu_si512(reinterpret_cast<uint16_t*>(row) + key,
                        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.raw, first.raw)));
  }
  static HWY_INLINE void One(V weight, float* row, int64_t key) {
    Two(weight, hn::Zero(D()), row, key);
  }
};
using StoreOperands = StoreBf16;

// Weights of keys [first, last) as StoreBf16 would have left them.
template <int R>
HWY_NOINLINE void RoundStrip(int64_t first, int64_t last, float* strip) {
  for (int r = 0; r < R; ++r, strip += kStripStride) {
    RoundToBf16(strip + first, last - first, PairDepth(last - first),
                reinterpret_cast<uint16_t*>(strip) + first);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BF16_FORWARD_OPERANDS_INL_H_
