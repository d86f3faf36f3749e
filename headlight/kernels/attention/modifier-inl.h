// Softcap and bias of a strip of scores, and what they give to gradients. (The order of a score:
// attention.h.)

#if defined(HEADLIGHT_KERNELS_ATTENTION_MODIFIER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_MODIFIER_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_MODIFIER_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_MODIFIER_INL_H_
#endif

#include "headlight/kernels/attention/tile-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// Where a panel of scores lies: rows from query `row`, vectors of keys from `key`.
struct PanelPlace {
  int64_t row, key;
  int64_t rows, vectors;
};

// tanh x, and NaN where x is NaN, which hn::Tanh is not made for.
HWY_INLINE V TanhCarryingNaN(V x) {
  const D d;
  const hn::Mask<D> nan = hn::IsNaN(x);
  return hn::IfThenElse(nan, x, hn::Tanh(d, hn::IfThenZeroElse(nan, x)));
}

// Scores of a panel, in place. `slopes`, where asked for, gets d softcap / d score, rows `vectors`
// vectors apart. Padded rows repeat the last query.
inline HWY_NOINLINE void ModifyPanel(const HeadProblem& head, const PanelPlace& panel,
                                     float* scores, float* slopes) {
  const D d;
  const ScoreModifier modifier = head.modifier;  // a copy, which no store to scores can change
  const V in = hn::Set(d, modifier.softcap_in), out = hn::Set(d, modifier.softcap_out);
  const V alibi = hn::Set(d, modifier.alibi), bias_factor = hn::Set(d, modifier.bias_factor);
  const V keys = hn::Iota(d, static_cast<float>(panel.key));
  for (int64_t r = 0; r < panel.rows; ++r) {
    const int64_t query = std::min(panel.row + r, head.queries - 1);
    const V first_away = hn::Sub(keys, hn::Set(d, static_cast<float>(query + modifier.shift)));
    for (int64_t v = 0; v < panel.vectors; ++v) {
      float* at = scores + r * kStripStride + v * kLanes;
      V score = hn::LoadU(d, at);
      if (modifier.softcap_in != 0) {
        const V t = TanhCarryingNaN(hn::Mul(score, in));
        score = hn::Mul(t, out);
        if (slopes != nullptr) {
          hn::StoreU(hn::NegMulAdd(t, t, hn::Set(d, 1.0f)), d,
                     slopes + (r * panel.vectors + v) * kLanes);
        }
      }
      if (modifier.alibi != 0) {
        const V away = hn::Add(first_away, hn::Set(d, static_cast<float>(v * kLanes)));
        score = hn::MulAdd(hn::Abs(away), alibi, score);
      }
      if (modifier.additive.data != nullptr) {
        score = hn::MulAdd(LoadBias(head, query, panel.key + v * kLanes), bias_factor, score);
      }
      hn::StoreU(score, d, at);
    }
  }
}

// From the gradients of modified scores: that of the bias, and, in place, those of the scores
// before softcap.
inline HWY_NOINLINE void UnmodifyGradients(const HeadProblem& head, const PanelPlace& panel,
                                           const float* slopes, const MutableMatrix& bias_gradient,
                                           float* gradients) {
  const D d;
  const int64_t rows = std::min(panel.rows, head.queries - panel.row);
  const int64_t keys = std::min(panel.vectors * kLanes, head.keys - panel.key);
  for (int64_t r = 0; r < rows && bias_gradient.data != nullptr; ++r) {
    float* to = bias_gradient.row(panel.row + r) + panel.key * bias_gradient.column_stride;
    for (int64_t j = 0; j < keys; ++j) {
      to[j * bias_gradient.column_stride] = gradients[r * kStripStride + j];
    }
  }
  if (head.modifier.softcap_in == 0) return;
  for (int64_t r = 0; r < panel.rows; ++r) {
    for (int64_t v = 0; v < panel.vectors; ++v) {
      float* at = gradients + r * kStripStride + v * kLanes;
      const V gradient = hn::LoadU(d, at);
      const V slope = hn::LoadU(d, slopes + (r * panel.vectors + v) * kLanes);
      // The slope of a masked score may be NaN.
      const hn::Mask<D> nothing = hn::Eq(gradient, hn::Zero(d));
      hn::StoreU(hn::IfThenZeroElse(nothing, hn::Mul(gradient, slope)), d, at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_MODIFIER_INL_H_
