// The operands of the backward pass's products as f32: the key block and the sums of its gradients.
// (bf16-backward-operands-inl.h has the same for bf16.)

#if defined(HEADLIGHT_KERNELS_ATTENTION_BACKWARD_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_OPERANDS_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_OPERANDS_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_BACKWARD_OPERANDS_INL_H_
#endif

#include "headlight/kernels/attention/backward-strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// scores[r][0..NV vectors) of R rows against a packed panel.
template <int R, int NV>
HWY_INLINE void PanelProduct(const float* rows, const float* panel, int64_t dim, float* scores) {
  constexpr int kTile = std::min(R, kTileRows);
  for (int row = 0; row < R; row += kTile) {
    V acc[kTile][NV];
    ZeroTile(acc);
    TileByRows<kQueryStride>(rows + row * kQueryStride, panel, kPanel, dim, acc);
    StoreTile(acc, scores + row * kStripStride, kStripStride);
  }
}

struct BackwardOperands {
  // Rows of weights and of score gradients that are held at a time, and where a panel of them
  // lies.
  static constexpr int64_t kRowsHeld = kQueryBlock;
  static int64_t PanelPlace(int64_t in_block, int64_t first_key) {
    return in_block * kStripStride + first_key;
  }

  static int64_t Floats(const HeadProblem& head, int64_t block_keys) {
    return RoundUp(Sizes(head, block_keys).Total(), 16);
  }
  static BackwardOperands Place(const HeadProblem& head, int64_t block_keys, float* at) {
    const Parts parts = Sizes(head, block_keys);
    BackwardOperands placed;
    placed.head_width = RoundUp(head.head_dim, kLanes);
    placed.value_width = RoundUp(head.value_dim, kLanes);
    placed.keys_transposed = at;
    placed.values_transposed = placed.keys_transposed + parts.keys_transposed;
    placed.keys = placed.values_transposed + parts.values_transposed;
    placed.key_gradient = placed.keys + parts.keys;
    placed.value_gradient = placed.key_gradient + parts.key_gradient;
    return placed;
  }

  // Begins a key block.
  void PackKeyBlock(const HeadProblem& head, int64_t begin, int64_t count) {
    PackTransposed(head.key, begin, count, head.head_dim, keys_transposed);
    PackTransposed(head.value, begin, count, head.value_dim, values_transposed);
    if (!PackRows(head.key, begin, count, head.head_dim, head_width, keys, head_width)) {
      Sanitize(keys, count, head_width, head_width);
    }
    const int64_t gradient_keys = RoundUp(count, kPanel) + kRows;
    std::fill(key_gradient, key_gradient + gradient_keys * head_width, 0.0f);
    std::fill(value_gradient, value_gradient + gradient_keys * value_width, 0.0f);
  }

  // Begins a query block of so many rows, which are packed and filled up with zeros.
  void TakeQueries(const HeadProblem&, const QueryRows&, int64_t) {}

  // Q K^T and dO V^T of R rows, `in_block` rows into the query block, and a panel of keys.
  template <int R, int NV>
  HWY_INLINE void PanelProducts(const HeadProblem& head, const QueryRows& rows, int64_t in_block,
                                int64_t first_key, float* weights, float* gradients) const {
    PanelProduct<R, NV>(rows.query + in_block * kQueryStride,
                        keys_transposed + first_key * head.head_dim, head.head_dim, weights);
    PanelProduct<R, NV>(rows.out_gradient + in_block * kQueryStride,
                        values_transposed + first_key * head.value_dim, head.value_dim, gradients);
  }

  // Takes P (times dropout factors) and dS of such a panel, of which so many rows are there.
  template <int R, int NV>
  HWY_INLINE void TakePanel(int64_t, int64_t, int64_t, float*, float*) const {}

  // dQ of the strip whose keys [first, last) of the block were taken.
  template <int R>
  void QueryGradient(const QueryRows& rows, int64_t in_block, int64_t first, int64_t last,
                     float* out) const {
    MultiplyRows<R, true>({rows.score_gradients + in_block * kStripStride + first,
                           keys + first * head_width, head_width, last - first, out, head_width,
                           head_width, false});
  }

  // dK and dV += the products with the query block, in tiles of kRows keys. A tile takes the rows
  // of the strips that cover it.
  void AddKeyGradients(const HeadProblem&, const Strips& strips, const QueryRows& rows) const {
    const int64_t last = strips.LastKey();
    for (int64_t r = 0; r < strips.count; ++r) ZeroBesideStrip(strips, r, rows);
    for (int64_t key = strips.FirstKey(); key < last; key += kRows) {
      const Strips::Rows covering = strips.Covering(key, kRows);
      if (covering.begin == covering.end) continue;
      const int64_t first_row = covering.begin;
      Product product{rows.weights + first_row * kStripStride + key,
                      rows.out_gradient + first_row * kQueryStride,
                      kQueryStride,
                      covering.end - first_row,
                      value_gradient + key * value_width,
                      value_width,
                      value_width,
                      true};
      MultiplyRows<kRows, false>(product);
      product.a = rows.score_gradients + first_row * kStripStride + key;
      product.b = rows.query + first_row * kQueryStride;
      product.c_row = product.columns = head_width;
      product.c = key_gradient + key * head_width;
      MultiplyRows<kRows, false>(product);
    }
  }

  void AddToValueGradient(int64_t key, int64_t c, float added) const {
    value_gradient[key * value_width + c] += added;
  }

  // Ends a key block.
  void WriteGradients(const HeadProblem& head, int64_t begin, int64_t count,
                      const MutableMatrix& key_to, const MutableMatrix& value_to,
                      const QueryRows&) const {
    WriteGradient(key_gradient, head_width, count, head.head_dim, head.scale, false, key_to, begin);
    WriteGradient(value_gradient, value_width, count, head.value_dim, 1, false, value_to, begin);
  }

  int64_t head_width = 0, value_width = 0;
  // Transposed panels, rows, and sums of the gradients.
  float *keys_transposed = nullptr, *values_transposed = nullptr, *keys = nullptr;
  float *key_gradient = nullptr, *value_gradient = nullptr;

 private:
  struct Parts {
    int64_t keys_transposed, values_transposed, keys, key_gradient, value_gradient;
    int64_t Total() const {
      return keys_transposed + values_transposed + keys + key_gradient + value_gradient;
    }
  };
  static Parts Sizes(const HeadProblem& head, int64_t block_keys) {
    const int64_t head_width = RoundUp(head.head_dim, kLanes);
    const int64_t value_width = RoundUp(head.value_dim, kLanes);
    const int64_t panel_keys = RoundUp(block_keys, kPanel);
    return {RoundUp(panel_keys * head.head_dim, 16), RoundUp(panel_keys * head.value_dim, 16),
            RoundUp(block_keys * head_width, 16), RoundUp((panel_keys + kRows) * head_width, 16),
            RoundUp((panel_keys + kRows) * value_width, 16)};
  }

  // Tiles of kRows keys may reach past what a strip covers, on both sides: zeros there. A gap is
  // all zeros.
  static void ZeroBesideStrip(const Strips& strips, int64_t number, const QueryRows& rows) {
    const StripRange& range = strips.ranges[number];
    if (range.empty() && !strips.IsGap(number)) return;
    const int64_t first = range.empty() ? strips.LastKey() : range.first_vector * kLanes;
    const int64_t last = range.empty() ? strips.LastKey() : range.last_vector * kLanes;
    const int64_t before = range.empty() ? strips.FirstKey() : std::max<int64_t>(first - kRows, 0);
    for (int64_t r = strips.first_row[number]; r < strips.first_row[number + 1]; ++r) {
      for (float* strip :
           {rows.weights + r * kStripStride, rows.score_gradients + r * kStripStride}) {
        std::fill(strip + before, strip + first, 0.0f);
        std::fill(strip + last, strip + last + kRows, 0.0f);
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BACKWARD_OPERANDS_INL_H_
