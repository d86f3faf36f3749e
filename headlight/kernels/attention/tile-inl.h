// What the fused kernels are made of: the register tile, packing, exp2, masks and dropout of a
// score strip. Vector code, compiled once per ISA (Highway's foreach_target).

#if defined(HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "headlight/base/random.h"
#include "headlight/kernels/attention/attention_fused.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using DU = hn::RebindToUnsigned<D>;
using V = hn::Vec<D>;
using VU = hn::Vec<DU>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
#ifdef HEADLIGHT_ATTENTION_BF16
// A strip is two tiles of products high (bf16-operands-inl.h). No product of f32 is left whose
// speed counts.
constexpr int kTileRows = 4;
constexpr int kTileVectors = 4;
constexpr int kRows = 32;
constexpr int kHalfRows = 16, kFewRows = 16;
#else
// A register tile is kTileRows x kTileVectors: all but a few of the vector registers (16 of AVX2,
// 32 of AVX-512 and NEON) hold sums.
constexpr int kTileRows = 6;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SCALAR
constexpr int kTileVectors = 2;
#else
constexpr int kTileVectors = 4;
#endif
// A strip of queries is two tiles high, so that a panel of keys is read from L1 the second time.
constexpr int kRows = 2 * kTileRows;
// Strips of the last queries are lower.
constexpr int kHalfRows = kTileRows, kFewRows = kTileRows / 2;
#endif
constexpr int64_t kPanel = kTileVectors * kLanes;  // keys of a packed panel
// Floats from row to row of a score strip: no power of two, so that a column of a strip does not
// fall into one cache set; and room for zeros beside it (backward-inl.h).
constexpr int64_t kStripStride = kKeyBlock + 16;
// The same of packed queries and output gradients.
constexpr int64_t kMostWidth = 256;
constexpr int64_t kQueryStride = kMostWidth + 16;
static_assert(kForwardRows % kRows == 0);

constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;
constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

inline int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// ---- the register tile ----

// How far ahead of its use a row of b is fetched from L2, where packed blocks lie.
constexpr int64_t kPrefetchSteps = 16;

// acc[r][v] += sum over t of a(r, t) * b[t][v]; a(r, t) = a[r * kARow + t]. The distance of the
// rows is a constant, so that one pointer serves them all: there are not enough registers for
// twelve.
template <int64_t kARow, int R, int NV>
HWY_INLINE void TileByRows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t b_step,
                           int64_t steps, V (&acc)[R][NV]) {
  const D d;
  for (int64_t t = 0; t < steps; ++t) {
    V bv[NV];
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) {
      bv[v] = hn::LoadU(d, b + v * kLanes);
      if (v * kLanes % 16 == 0) hwy::Prefetch(b + kPrefetchSteps * b_step + v * kLanes);
    }
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const V av = hn::Set(d, a[r * kARow + t]);
      HWY_UNROLL(8)
      for (int v = 0; v < NV; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
    }
    b += b_step;
  }
}

// The same with a(r, t) = a[t * a_step + r]: the product with a transposed.
template <int R, int NV>
HWY_INLINE void TileByColumns(const float* HWY_RESTRICT a, int64_t a_step,
                              const float* HWY_RESTRICT b, int64_t b_step, int64_t steps,
                              V (&acc)[R][NV]) {
  const D d;
  for (int64_t t = 0; t < steps; ++t) {
    V bv[NV];
    hwy::Prefetch(a + 16);  // of the next tile: rows of a lie far apart
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) {
      bv[v] = hn::LoadU(d, b + v * kLanes);
    }
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const V av = hn::Set(d, a[r]);
      HWY_UNROLL(8)
      for (int v = 0; v < NV; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
    }
    a += a_step;
    b += b_step;
  }
}

template <int R, int NV>
HWY_INLINE void LoadTile(const float* c, int64_t c_row, V (&acc)[R][NV]) {
  const D d;
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) acc[r][v] = hn::LoadU(d, c + r * c_row + v * kLanes);
  }
}

template <int R, int NV>
HWY_INLINE void ZeroTile(V (&acc)[R][NV]) {
  const D d;
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(d);
  }
}

template <int R, int NV>
HWY_INLINE void StoreTile(const V (&acc)[R][NV], float* c, int64_t c_row) {
  const D d;
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < NV; ++v) hn::StoreU(acc[r][v], d, c + r * c_row + v * kLanes);
  }
}

// c[r][0..columns) (+)= sum over t of a(r, t) * b[t][0..columns); columns is a multiple of kLanes.
struct Product {
  const float* a;  // rows kStripStride apart
  const float* b;
  int64_t b_step;
  int64_t steps;
  float* c;
  int64_t c_row;
  int64_t columns;
  bool add;
};

template <int R, int NV, bool kByRows>
HWY_INLINE void ProductTile(const Product& p, int64_t row, int64_t column) {
  V acc[R][NV];
  float* c = p.c + row * p.c_row + column;
  if (p.add) {
    LoadTile(c, p.c_row, acc);
  } else {
    ZeroTile(acc);
  }
  if constexpr (kByRows) {
    TileByRows<kStripStride>(p.a + row * kStripStride, p.b + column, p.b_step, p.steps, acc);
  } else {
    TileByColumns(p.a + row, kStripStride, p.b + column, p.b_step, p.steps, acc);
  }
  StoreTile(acc, c, p.c_row);
}

template <int R, bool kByRows>
HWY_NOINLINE void MultiplyRows(const Product& p) {
  constexpr int kTile = std::min(R, kTileRows), kHigh = std::min(R, 2 * kTileRows);
  int64_t column = 0;
  for (; column + kPanel <= p.columns; column += kPanel) {
    for (int row = 0; row < R; row += kTile) {
      ProductTile<kTile, kTileVectors, kByRows>(p, row, column);
    }
  }
  const int64_t vectors = (p.columns - column) / kLanes;
  if constexpr (kTileVectors > 2) {
    if (vectors == 3) {
      for (int row = 0; row < R; row += kTile) ProductTile<kTile, 3, kByRows>(p, row, column);
    }
    if (vectors == 2) {
      for (int row = 0; row < R; row += kHigh) ProductTile<kHigh, 2, kByRows>(p, row, column);
    }
  }
  if (vectors == 1) {
    for (int row = 0; row < R; row += kHigh) ProductTile<kHigh, 1, kByRows>(p, row, column);
  }
}

// Rows of the next strip when `left` rows are left: whole strips, then the least padding.
inline int64_t StripRows(int64_t left) {
  if (left > kHalfRows + kFewRows % kHalfRows) return kRows;
  return left > kFewRows ? kHalfRows : kFewRows;
}

// ---- packing ----

// Rows of a fused buffer lie kilobytes apart, where no hardware prefetcher follows.
constexpr int64_t kPrefetchRows = 12;
HWY_INLINE void PrefetchRows(const float* row, int64_t stride, int64_t rows, int64_t dim) {
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    for (int64_t c = 0; c < dim; c += 16) hwy::Prefetch(row + c);
  }
}

#if HWY_TARGET != HWY_SCALAR
// kLanes rows with adjacent columns, `stride` apart.
struct StridedRows {
  const float* first;
  int64_t stride;
  HWY_INLINE const float* operator[](int64_t i) const { return first + i * stride; }
};
// The same, of which only the first may be there; zeros for the others.
struct SomeRows {
  SomeRows(const Matrix& m, int64_t begin, int64_t there) {
    HWY_ALIGN static constexpr float kZeros[kMostWidth] = {};
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = i < there ? m.row(begin + i) : kZeros;
  }
  HWY_INLINE const float* operator[](int64_t i) const { return rows[i]; }
  const float* rows[kLanes];
};

// Four columns of kQuads rows, every fourth from `first`, one row after another.
template <int kQuads, class Rows>
HWY_INLINE auto LoadQuads(const Rows& rows, int64_t first, int64_t column) {
  const hn::FixedTag<float, 4 * kQuads> d;
  if constexpr (kQuads == 1) {
    return hn::LoadU(d, rows[first] + column);
  } else {
    return hn::Combine(d, LoadQuads<kQuads / 2>(rows, first + 2 * kQuads, column),
                       LoadQuads<kQuads / 2>(rows, first, column));
  }
}

// to[c * kPanel + i] = rows[i][c] for columns that come in fours; returns how many those are. Asks
// for `ahead` rows that follow.
template <class Rows>
HWY_INLINE int64_t TransposeQuads(const Rows& rows, const StridedRows& next, int64_t ahead,
                                  int64_t dim, float* to) {
  const D d;
  const hn::RepartitionToWide<D> pairs;
  constexpr int kQuads = kLanes / 4;
  const auto join = [&](V low, V high, float* row) HWY_ATTR {
    const auto a = hn::BitCast(pairs, low), b = hn::BitCast(pairs, high);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), d, row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)), d, row + kPanel);
  };
  int64_t c = 0;
  for (; c + 4 <= dim; c += 4, to += 4 * kPanel) {
    if (c % 16 == 0) {
      for (int64_t i = 0; i < ahead; ++i) hwy::Prefetch(next[i] + c);
    }
    const V v0 = LoadQuads<kQuads>(rows, 0, c), v1 = LoadQuads<kQuads>(rows, 1, c);
    const V v2 = LoadQuads<kQuads>(rows, 2, c), v3 = LoadQuads<kQuads>(rows, 3, c);
    join(hn::InterleaveLower(d, v0, v1), hn::InterleaveLower(d, v2, v3), to);
    join(hn::InterleaveUpper(d, v0, v1), hn::InterleaveUpper(d, v2, v3), to + 2 * kPanel);
  }
  return c;
}
#endif

// out[panel][c][key in panel]: keys [begin, begin + count) of m, transposed, in panels of kPanel
// keys, the last one filled up with zeros to whole vectors.
inline void PackTransposed(const Matrix& m, int64_t begin, int64_t count, int64_t dim, float* out) {
  for (int64_t first = 0; first < count; first += kLanes) {
    const int64_t there = std::min(kLanes, count - first);
    float* to = out + first / kPanel * kPanel * dim + first % kPanel;
    int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    if (m.column_stride == 1) {
      const StridedRows rows{m.row(begin + first), m.row_stride};
      const StridedRows next{rows.first + kLanes * rows.stride, rows.stride};
      const int64_t ahead = std::min(kLanes, count - first - there);
      c = there == kLanes ? TransposeQuads(rows, next, ahead, dim, to)
                          : TransposeQuads(SomeRows(m, begin + first, there), next, 0, dim, to);
    }
#endif
    for (; c < dim; ++c) {
      for (int64_t i = 0; i < kLanes; ++i) {
        to[c * kPanel + i] = i < there ? m.at(begin + first + i, c) : 0;
      }
    }
  }
}

// out[row][0..padded) = rows [begin, begin + count) of m, columns past dim zero; rows of out are
// `stride` apart. Returns whether all values are finite.
inline bool PackRows(const Matrix& m, int64_t begin, int64_t count, int64_t dim, int64_t padded,
                     float* out, int64_t stride) {
  const D d;
  const DU du;
  const VU magnitude = hn::Set(du, 0x7fffffffu);
  VU largest = hn::Zero(du);  // as bits, in whose order what is not finite comes last
  const auto take = [&](V value) HWY_ATTR {
    largest = hn::Max(largest, hn::And(hn::BitCast(du, value), magnitude));
  };
  for (int64_t i = 0; i < count; ++i, out += stride) {
    int64_t c = 0;
    if (m.column_stride == 1) {
      const float* from = m.row(begin + i);
      PrefetchRows(from + kPrefetchRows * m.row_stride, m.row_stride, 1, dim);
      for (; c + kLanes <= dim; c += kLanes) {
        const V value = hn::LoadU(d, from + c);
        take(value);
        hn::StoreU(value, d, out + c);
      }
    }
    if (c < padded) {
      const int64_t vector = c;
      for (; c < dim; ++c) out[c] = m.at(begin + i, c);
      for (; c < padded; ++c) out[c] = 0;
      for (int64_t v = vector; v < padded; v += kLanes) take(hn::LoadU(d, out + v));
    }
  }
  return hn::AllTrue(du, hn::Lt(largest, hn::Set(du, 0x7f800000u)));
}

// Replaces what is not finite by 0 in packed rows.
inline void Sanitize(float* values, int64_t rows, int64_t stride, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      if (!std::isfinite(values[i * stride + c])) values[i * stride + c] = 0;
    }
  }
}

// ---- exp2 ----

// The larger of bound and x, and NaN where x is NaN.
HWY_INLINE V MaxCarryingNaN(V bound, V x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::Max(bound, x);  // maxps gives its second operand when one is NaN
#else
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
#endif
}

// The smaller of bound and x, and NaN where x is NaN.
HWY_INLINE V MinCarryingNaN(V bound, V x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::Min(bound, x);
#else
  return hn::IfThenElse(hn::Lt(bound, x), bound, x);
#endif
}

// 2^x for x <= 127, with a relative error <= 3e-7; 0 below -127; 1 at 0; NaN gives NaN.
HWY_INLINE V LeastOfExp2(V x) { return MaxCarryingNaN(hn::Set(D(), -127.0f), x); }

// Of such an x.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
// The bits of 2^(j / 32) less j << 18.
alignas(64) inline constexpr uint32_t kPowersOfTwo[32] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
    0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
    0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
    0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};

// x = k + j / 32 + r with integers k and j in [0, 32), and |r| <= 1/64: two registers hold all
// 2^(j / 32), and 2^r is a polynomial of degree 2 (minimax of the relative error with constant term
// 1, 5.4e-8), so that fewer operations take the multipliers from the products.
HWY_INLINE V Exp2Bounded(V x) {
  const D d;
  const DU du;
  // Adding 1.5 * 2^18 rounds to 32nds: 32 k + j in the low bits.
  const V magic = hn::Set(d, 393216.0f);
  const V shifted = hn::Add(x, magic);
  const V r = hn::Sub(x, hn::Sub(shifted, magic));
  const VU number = hn::BitCast(du, shifted);
  const VU power{_mm512_permutex2var_epi32(hn::Load(du, kPowersOfTwo).raw, number.raw,
                                           hn::Load(du, kPowersOfTwo + 16).raw)};
  V p = hn::MulAdd(hn::Set(d, 0.2402264922857284f), r, hn::Set(d, 0.6931573152542114f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::Add(power, hn::ShiftLeft<18>(number))));
}
#else
// x = k + r with k an integer and |r| <= 1/2; 2^r by a polynomial of degree 5 (minimax of the
// relative error with constant term 1, computed by Remez exchange: 9.2e-8), times 2^k through the
// exponent bits.
HWY_INLINE V Exp2Bounded(V x) {
  const D d;
  const DU du;
  // Adding 1.5 * 2^23 rounds to an integer, in the low bits; 127 more is the exponent's bias.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::Add(x, magic);
  const V r = hn::Sub(x, hn::Sub(shifted, magic));
  V p = hn::Set(d, 0.0013264727140072014f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.009671512639956454f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.055507337434700856f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.2402224208537671f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.693146977598992f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
}
#endif

HWY_INLINE V Exp2(V x) { return Exp2Bounded(LeastOfExp2(x)); }

// The weight of a score, given the row's lse times log2 e: at most 1, also where the lse of large
// scores is rounded by more than exp2 takes.
HWY_INLINE V WeightOf(V score, V scale, V lse) {
  return Exp2(MinCarryingNaN(hn::Zero(D()), hn::MulSub(score, scale, lse)));
}

// ---- how a strip stores weights ----

struct StoreF32 {
  static HWY_INLINE void Two(V first, V second, float* row, int64_t key) {
    const D d;
    hn::StoreU(first, d, row + key);
    hn::StoreU(second, d, row + key + kLanes);
  }
  static HWY_INLINE void One(V weight, float* row, int64_t key) {
    hn::StoreU(weight, D(), row + key);
  }
};

// ---- masks and dropout of a strip: rows [row, row + R), one vector of keys from `key` ----

// The additive bias of query `row` and a vector of keys; 0 past the last key.
HWY_INLINE V LoadBias(const HeadProblem& head, int64_t row, int64_t key) {
  const D d;
  const Matrix& bias = head.modifier.additive;
  if (bias.column_stride == 1 && key + kLanes <= head.keys) {
    return hn::LoadU(d, bias.row(row) + key);
  }
  HWY_ALIGN float lanes[kLanes] = {};
  const int64_t count = std::min<int64_t>(kLanes, head.keys - key);
  for (int64_t j = 0; j < count; ++j) lanes[j] = bias.at(row, key + j);
  return hn::Load(d, lanes);
}

// Lanes of keys that query `row` keeps.
HWY_INLINE hn::Mask<D> KeptLanes(const HeadProblem& head, int64_t row, int64_t key) {
  const D d;
  const DI di;
  const auto index = hn::Iota(di, static_cast<int32_t>(key));
  const auto begin = hn::Set(di, static_cast<int32_t>(head.intervals.Begin(row)));
  const auto end = hn::Set(di, static_cast<int32_t>(head.intervals.End(row)));
  hn::Mask<DI> kept = hn::AndNot(hn::Lt(index, begin), hn::Lt(index, end));
  if (head.keep.data != nullptr) {
    HWY_ALIGN int32_t flags[kLanes] = {};
    const int64_t count = std::min<int64_t>(kLanes, head.keys - key);
    for (int64_t j = 0; j < count; ++j) flags[j] = head.keep.Keeps(row, key + j) ? -1 : 0;
    kept = hn::And(kept, hn::MaskFromVec(hn::Load(di, flags)));
  }
  const hn::Mask<D> lanes = hn::RebindMask(d, kept);
  if (head.modifier.additive.data == nullptr) return lanes;
  return hn::AndNot(hn::Eq(LoadBias(head, row, key), hn::Set(d, kNegativeInfinity)),
                    lanes);  // keeps NaN
}

// Philox4x32-10 of counters (group, key + lane, 0, 0): the draws of eight queries (attention.h).
struct Draws {
  VU words[4];
};

#if HWY_TARGET == HWY_SCALAR
inline Draws Draw(const DropoutStream& stream, int64_t group, int64_t key) {
  const PhiloxCounter draw = Philox(
      {stream.key0, stream.key1}, {static_cast<uint32_t>(group), static_cast<uint32_t>(key), 0, 0});
  const DU du;
  return {{hn::Set(du, draw[0]), hn::Set(du, draw[1]), hn::Set(du, draw[2]), hn::Set(du, draw[3])}};
}
#else
// The counters of half of the lanes: 32-bit numbers in the low half of 64 bits. What is in the
// high half does not matter.
struct DrawHalf {
  VU c0, c1, c2, c3;
};

HWY_INLINE VU HighHalf(VU wide) {
  const DU du;
  const hn::Repartition<uint64_t, DU> du64;
  return hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(du64, wide)));
}

// The low halves' 64-bit products with a constant.
HWY_INLINE VU MultiplyLow(VU a, uint32_t by) {
  const DU du;
  return hn::BitCast(du, hn::MulEven(a, hn::Set(du, by)));
}

HWY_INLINE Draws Draw(const DropoutStream& stream, int64_t group, int64_t key) {
  constexpr uint32_t kFactor0 = 0xD2511F53u, kFactor1 = 0xCD9E8D57u;
  constexpr uint32_t kStep0 = 0x9E3779B9u, kStep1 = 0xBB67AE85u;
  const DU du;
  const hn::Repartition<uint64_t, DU> du64;
  uint32_t key0 = stream.key0, key1 = stream.key1;
  // In the first three rounds half of the numbers are the same in all lanes: words 0, 2 and 3 at
  // the start, 1 to 3 after a round, 0 and 1 after two.
  const uint64_t first = uint64_t{kFactor0} * static_cast<uint32_t>(group);
  const uint64_t second = uint64_t{kFactor1} * (static_cast<uint32_t>(first >> 32) ^ key1);
  const uint32_t third0 = static_cast<uint32_t>(second >> 32) ^ (key0 + kStep0);
  const uint64_t third = uint64_t{kFactor0} * third0;
  const VU after_second = hn::Set(du, static_cast<uint32_t>(first) ^ (key1 + kStep1));
  const VU third2 = hn::Set(du, static_cast<uint32_t>(third >> 32) ^ (key1 + 2 * kStep1));
  const VU third1 = hn::Set(du, static_cast<uint32_t>(second) ^ (key0 + 2 * kStep0));
  const VU third3 = hn::Set(du, static_cast<uint32_t>(third));
  const auto keys = hn::ShiftLeft<1>(hn::Iota(du64, 0));
#if HWY_TARGET == HWY_NEON
  DrawHalf halves[2] = {};  // no constructor: an implicit one is not compiled for the target
#else
  DrawHalf halves[2];
#endif
  for (int odd = 0; odd < 2; ++odd) {
    const auto lanes = hn::Add(keys, hn::Set(du64, static_cast<uint64_t>(key + odd)));
    const VU wide0 = MultiplyLow(hn::Xor(hn::BitCast(du, lanes), hn::Set(du, key0)), kFactor0);
    const VU wide1 = MultiplyLow(hn::Xor(HighHalf(wide0), after_second), kFactor1);
    halves[odd] = {hn::Xor(HighHalf(wide1), third1), wide1, hn::Xor(wide0, third2), third3};
  }
  for (int round = 3; round < 10; ++round) {
    const VU round0 = hn::Set(du, key0 + static_cast<uint32_t>(round) * kStep0);
    const VU round1 = hn::Set(du, key1 + static_cast<uint32_t>(round) * kStep1);
    for (DrawHalf& c : halves) {
      const VU wide0 = MultiplyLow(c.c0, kFactor0), wide1 = MultiplyLow(c.c2, kFactor1);
      c = {hn::Xor3(HighHalf(wide1), c.c1, round0), wide1, hn::Xor3(HighHalf(wide0), c.c3, round1),
           wide0};
    }
  }
  const auto join = [&](VU even, VU odd) HWY_ATTR {
    return hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(hn::BitCast(du64, odd))), even);
  };
  return {{join(halves[0].c0, halves[1].c0), join(halves[0].c1, halves[1].c1),
           join(halves[0].c2, halves[1].c2), join(halves[0].c3, halves[1].c3)}};
}
#endif

// factors[r][lane]: 0 where the weight of (row + r, key + lane) is dropped, else the factor.
template <int R>
HWY_INLINE void DropoutFactors(const HeadProblem& head, int64_t row, int64_t key, float* factors,
                               int64_t stride) {
  const D d;
  const DU du;
  const V factor = hn::Set(d, head.dropout_factor);
  const VU threshold = hn::Set(du, head.dropout.threshold);
  int64_t group = -1;
  Draws draws{};
  for (int r = 0; r < R; ++r) {
    const int64_t query = row + r;
    if (query / 8 != group) {
      group = query / 8;
      draws = Draw(head.dropout, group, key);
    }
    const VU word = draws.words[query % 4];
    const VU bits = query % 8 < 4 ? hn::And(word, hn::Set(du, 0xffffu)) : hn::ShiftRight<16>(word);
    const auto dropped = hn::RebindMask(d, hn::Lt(bits, threshold));
    hn::StoreU(hn::IfThenElse(dropped, hn::Zero(d), factor), d, factors + r * stride);
  }
}

// Which vectors of a key block a strip of rows looks at, and which of those every row keeps whole.
struct StripRange {
  int64_t first_vector, last_vector;  // relative to the block, last exclusive
  int64_t full_begin, full_end;       // keys, absolute
  bool empty() const { return first_vector >= last_vector; }
};

// first_vector is a multiple of `unit`.
inline StripRange RangeOfStrip(const HeadProblem& head, int64_t row, int64_t rows, int64_t begin,
                               int64_t count, int64_t unit = kTileVectors) {
  const int64_t last = std::min(row + rows, head.queries) - 1;
  const int64_t from = std::max(head.intervals.Begin(row), begin) - begin;
  const int64_t to = std::min(head.intervals.End(last), begin + count) - begin;
  if (from >= to) return {0, 0, 0, 0};
  return {from / (unit * kLanes) * unit, (to + kLanes - 1) / kLanes, head.intervals.Begin(last),
          head.intervals.End(row)};
}

struct KeyBlock {
  int64_t begin, count;
};

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_TILE_INL_H_
