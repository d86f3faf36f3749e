// Query blocks of the backward pass, cut into strips, and how gradients are written.

#if defined(HEADLIGHT_KERNELS_ATTENTION_BACKWARD_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_STRIPS_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_BACKWARD_STRIPS_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_BACKWARD_STRIPS_INL_H_
#endif

#include "headlight/kernels/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

constexpr int64_t kQueryBlock = 4 * kRows;

// Of a query block, in f32: rows kQueryStride apart; weights (times dropout factors) and score
// gradients, kStripStride apart.
struct QueryRows {
  float *query, *out_gradient, *weights, *score_gradients;
};

// The strips of a query block.
struct Strips {
  static constexpr int64_t kMost = kQueryBlock / kRows + 2;
  StripRange ranges[kMost];
  int64_t first_row[kMost + 1];  // in the block; after the last one, the number of rows
  int64_t count = 0;

  // The keys, in the block, of all of them.
  int64_t FirstKey() const {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (int64_t s = 0; s < count; ++s) {
      if (!ranges[s].empty()) first = std::min(first, ranges[s].first_vector * kLanes);
    }
    return first;
  }
  int64_t LastKey() const {
    int64_t last = 0;
    for (int64_t s = 0; s < count; ++s) {
      if (!ranges[s].empty()) last = std::max(last, ranges[s].last_vector * kLanes);
    }
    return last;
  }

  // Whether a strip without keys lies between two that have some: rows of queries whose document
  // has no keys. Tiles may take its rows, too.
  bool IsGap(int64_t number) const {
    const auto has_keys = [](const StripRange& range) { return !range.empty(); };
    return ranges[number].empty() && std::any_of(ranges, ranges + number, has_keys) &&
           std::any_of(ranges + number, ranges + count, has_keys);
  }

  // Rows [begin, end) of the strips that cover one of the keys [key, key + keys), and of gaps
  // between them.
  struct Rows {
    int64_t begin, end;
  };
  Rows Covering(int64_t key, int64_t keys) const {
    int64_t from = 0, to = count;
    const auto covers = [&](const StripRange& strip) {
      return !strip.empty() && strip.first_vector * kLanes < key + keys &&
             strip.last_vector * kLanes > key;
    };
    while (from < to && !covers(ranges[from])) ++from;
    while (to > from && !covers(ranges[to - 1])) --to;
    return {first_row[from], first_row[to]};
  }
};

// gradient rows = scale * sums (+ what is there).
inline void WriteGradient(const float* sums, int64_t width, int64_t rows, int64_t dim, float scale,
                          bool add, MutableMatrix to, int64_t first_row) {
  const D d;
  const V factor = hn::Set(d, scale);
  for (int64_t i = 0; i < rows; ++i, sums += width) {
    float* row = to.row(first_row + i);
    int64_t c = 0;
    if (to.column_stride == 1) {
      for (; c + kLanes <= dim; c += kLanes) {
        const V value = hn::Mul(hn::LoadU(d, sums + c), factor);
        hn::StoreU(add ? hn::Add(hn::LoadU(d, row + c), value) : value, d, row + c);
      }
    }
    for (; c < dim; ++c) {
      float& at = row[c * to.column_stride];
      const float value = sums[c] * scale;
      at = add ? at + value : value;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BACKWARD_STRIPS_INL_H_
