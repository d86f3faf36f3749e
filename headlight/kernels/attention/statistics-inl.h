// Statistics of the weights of a row (attention.h: HeadStatistics), summed up while the weights of
// a strip are made. Weights p = 2^x are relative to the row's largest score so far.

#if defined(HEADLIGHT_KERNELS_ATTENTION_STATISTICS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_STATISTICS_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_STATISTICS_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_STATISTICS_INL_H_
#endif

#include "headlight/kernels/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// Of one row, over the keys so far.
struct RowStatistics {
  float information = 0;        // sum of p x
  float distance = 0;           // sum of p (j - i)
  float absolute_distance = 0;  // sum of p |j - i|
  float set_mass = 0;           // sum of p over the key set
  float largest = 0;            // p
  int32_t largest_key = -1;     // the first of equals, counted in the sequence
};
constexpr int64_t kStatisticsFloats = sizeof(RowStatistics) / sizeof(float);

// Weights were relative to a score that is `raised` less; `sum` is that of the weights then.
inline void RaiseStatistics(float raised, float factor, float sum, RowStatistics& row) {
  row.information = factor * (row.information - raised * sum);
  row.distance *= factor;
  row.absolute_distance *= factor;
  row.set_mass *= factor;
  row.largest *= factor;
}

// Divided by the sum of the weights: -sum (p / S) ln (p / S) = ln S - ln 2 (sum of p x) / S.
inline void WriteStatistics(const RowStatistics& row, float sum, int64_t i,
                            const ProbeStatistics& to) {
  const bool nothing = sum == 0;
  const float inverse = nothing ? 0 : 1 / sum;
  to.entropy[i] = nothing ? 0 : std::log(sum) - kLn2 * row.information * inverse;
  to.distance[i] = row.distance * inverse;
  to.absolute_distance[i] = row.absolute_distance * inverse;
  to.largest_weight[i] = row.largest * inverse;
  to.largest_key[i] = sum > 0 ? row.largest_key : -1;
  if (to.set_mass != nullptr) to.set_mass[i] = row.set_mass * inverse;
}

// For a strip that nobody looks at.
struct NoStatistics {
  struct Row {
    HWY_INLINE void Take(V, V) {}
  };
  Row Begin(int, int64_t) const { return {}; }
  void End(int, const Row&) const {}
};

struct StripStatistics {
  int64_t query;         // of row 0 of the strip
  int64_t key;           // of the block's first key
  const float* key_set;  // of that key: 1 in the set, else 0; nullptr: unwanted
  RowStatistics* rows;

  struct Row {
    V away;  // of the next vector of keys from the query
    const float* key_set;
    V information, distance, absolute_distance, set_mass, largest, largest_at;

    // Weights p = 2^x of the next vector of keys; x is bounded.
    HWY_INLINE void Take(V x, V p) {
      const D d;
      information = hn::MulAdd(p, x, information);
      distance = hn::MulAdd(p, away, distance);
      absolute_distance = hn::MulAdd(p, hn::Abs(away), absolute_distance);
      if (key_set != nullptr) {
        set_mass = hn::MulAdd(p, hn::LoadU(d, key_set), set_mass);
        key_set += kLanes;
      }
      const hn::Mask<D> larger = hn::Gt(p, largest);
      largest = hn::IfThenElse(larger, p, largest);
      largest_at = hn::IfThenElse(larger, away, largest_at);
      away = hn::Add(away, hn::Set(d, static_cast<float>(kLanes)));
    }
  };

  HWY_INLINE Row Begin(int r, int64_t first_key) const {
    const D d;
    const V zero = hn::Zero(d);
    const V away = hn::Iota(d, static_cast<float>(key + first_key - (query + r)));
    const float* const set = key_set == nullptr ? nullptr : key_set + first_key;
    return {away, set, zero, zero, zero, zero, zero, zero};
  }

  HWY_INLINE void End(int r, const Row& row) const {
    const D d;
    const auto sum = [&](V lanes) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(d, lanes)); };
    RowStatistics& to = rows[r];
    to.information += sum(row.information);
    to.distance += sum(row.distance);
    to.absolute_distance += sum(row.absolute_distance);
    to.set_mass += sum(row.set_mass);
    const V most = hn::MaxOfLanes(d, row.largest);
    const float largest = hn::GetLane(most);
    if (!(largest > to.largest)) return;
    const V places = hn::IfThenElse(hn::Eq(row.largest, most), row.largest_at,
                                    hn::Set(d, std::numeric_limits<float>::infinity()));
    to.largest = largest;
    const float away = hn::GetLane(hn::MinOfLanes(d, places));
    to.largest_key = static_cast<int32_t>(query + r + static_cast<int64_t>(away));
  }
};

// The members of a key set among `count` keys from `begin`, for StripStatistics.
inline void LoadKeySet(const uint8_t* set, int64_t begin, int64_t count, float* to) {
  const int64_t padded = RoundUp(count, kLanes);
  for (int64_t j = 0; j < count; ++j) to[j] = set[begin + j] != 0 ? 1 : 0;
  std::fill(to + count, to + padded, 0.0f);
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_STATISTICS_INL_H_
