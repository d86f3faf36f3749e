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

// Scores of rows [row, row + R) and NV vectors of keys from `key`, in place. `slopes`, where asked
// for, gets d softcap / d score, rows NV * kLanes apart. Padded rows repeat the last query.
template <int R, int NV>
HWY_NOINLINE void ModifyPanel(const HeadProblem& head, int64_t row, int64_t key, float* scores,
                              float* slopes) {
  const D d;
  const ScoreModifier modifier = head.modifier;  // a copy, which no store to scores can change
  const V in = hn::Set(d, modifier.softcap_in), out = hn::Set(d, modifier.softcap_out);
  const V alibi = hn::Set(d, modifier.alibi), bias_factor = hn::Set(d, modifier.bias_factor);
  const V keys = hn::Iota(d, static_cast<float>(key));
  for (int r = 0; r < R; ++r) {
    const int64_t query = std::min(row + r, head.queries - 1);
    const V first_away = hn::Sub(keys, hn::Set(d, static_cast<float>(query + modifier.shift)));
    HWY_UNROLL(4)
    for (int v = 0; v < NV; ++v) {
      float* at = scores + r * kStripStride + v * kLanes;
      V score = hn::LoadU(d, at);
      if (modifier.softcap_in != 0) {
        const V x = hn::Mul(score, in);
        const V t = hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
        score = hn::Mul(t, out);
        if (slopes != nullptr) {
          hn::StoreU(hn::NegMulAdd(t, t, hn::Set(d, 1.0f)), d, slopes + (r * NV + v) * kLanes);
        }
      }
      if (modifier.alibi != 0) {
        const V away = hn::Add(first_away, hn::Set(d, static_cast<float>(v * kLanes)));
        score = hn::MulAdd(hn::Abs(away), alibi, score);
      }
      if (modifier.additive.data != nullptr) {
        score = hn::MulAdd(LoadBias(head, query, key + v * kLanes), bias_factor, score);
      }
      hn::StoreU(score, d, at);
    }
  }
}

// From the gradients of modified scores: that of the bias, and, in place, those of the scores
// before softcap.
template <int R, int NV>
HWY_NOINLINE void UnmodifyGradients(const HeadProblem& head, int64_t row, int64_t key,
                                    const float* slopes, const MutableMatrix& bias_gradient,
                                    float* gradients) {
  const D d;
  const int64_t rows = std::min<int64_t>(R, head.queries - row);
  const int64_t keys = std::min<int64_t>(NV * kLanes, head.keys - key);
  for (int64_t r = 0; r < rows && bias_gradient.data != nullptr; ++r) {
    float* to = bias_gradient.row(row + r) + key * bias_gradient.column_stride;
    for (int64_t j = 0; j < keys; ++j) {
      to[j * bias_gradient.column_stride] = gradients[r * kStripStride + j];
    }
  }
  if (head.modifier.softcap_in == 0) return;
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < NV; ++v) {
      float* at = gradients + r * kStripStride + v * kLanes;
      const V gradient = hn::LoadU(d, at);
      const V slope = hn::LoadU(d, slopes + (r * NV + v) * kLanes);
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
