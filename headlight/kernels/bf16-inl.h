// Products of bf16 operands with f32 sums: rounding, packing, and blocks of 16 x 16 sums. For files
// that include bf16-target-inl.h.
//
// Left operands are rows of bf16. Right ones are pairs, B[k / 2][n][k % 2]: 32 bits hold two
// neighbours on the summed axis, whose length, filled up with zeros, is a multiple of kPairDepth.
//
// An element of C is one chain over the pairs in ascending order, whatever its neighbours are. Both
// units flush denormal operands and sums to zero (Intel, "Architecture Instruction Set Extensions
// Programming Reference", TDPBF16PS and VDPBF16PS).
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "headlight/base/cpu.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

inline constexpr int64_t kPairDepth = 32;  // of a tile's row: 64 bytes
inline constexpr int64_t kPairTile = 16;   // rows, and columns, of a tile of sums

// GCC's loads of tiles and of their configuration do not say that they read memory: stores before
// them must have happened. `seen`: memory that they read, or null.
HWY_INLINE void FinishStores(const void* seen = nullptr) {
  asm volatile("" ::"r"(seen) : "memory");
}

// Holds the calling thread's tile registers (all 16 rows x 64 bytes) while it lives.
class TileRegisters {
 public:
  explicit TileRegisters(Bf16Unit unit) : held_(unit == Bf16Unit::kAmx) {
    if (!held_) return;
    Config config;
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = 64;
      config.rows[tile] = 16;
    }
    FinishStores(&config);
    _tile_loadconfig(&config);
  }
  ~TileRegisters() {
    if (held_) _tile_release();
  }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

 private:
  struct alignas(64) Config {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
  bool held_;
};

// C[rows][columns] (+)= A[rows][depth] B[depth][columns] in tiles of kPairTile.
struct PairProduct {
  const uint16_t* a;  // [rows][a_row]
  int64_t a_row;      // elements
  const uint32_t* b;  // [depth / 2][b_row]
  int64_t b_row;      // pairs
  int64_t depth;      // a multiple of kPairDepth
  float* c;
  int64_t c_row;
  bool add;  // to what is in c; else overwrite
  // [columns], what the chains of every row start from when they do not add; null: zeros.
  const float* start = nullptr;
};

template <int kRowTiles, int kColumnTiles>
HWY_INLINE void MultiplyAmxTiles(const PairProduct& p) {
  static_assert(kRowTiles <= 2 && kColumnTiles <= 2);
  constexpr int64_t kTile = kPairTile;
  FinishStores(p.a);
  if (p.add || p.start != nullptr) {
    const float* from = p.add ? p.c : p.start;
    const int64_t row = p.add ? p.c_row : 0;
    _tile_loadd(0, from, row * 4);
    if constexpr (kColumnTiles > 1) _tile_loadd(1, from + kTile, row * 4);
    if constexpr (kRowTiles > 1) _tile_loadd(2, from + kTile * row, row * 4);
    if constexpr (kRowTiles > 1 && kColumnTiles > 1) {
      _tile_loadd(3, from + kTile * row + kTile, row * 4);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const uint16_t* a = p.a;
  const uint32_t* b = p.b;
  for (int64_t k = 0; k < p.depth; k += kPairDepth) {
    _tile_loadd(4, a, p.a_row * 2);
    _tile_loadd(6, b, p.b_row * 4);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumnTiles > 1) {
      _tile_loadd(7, b + kTile, p.b_row * 4);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRowTiles > 1) {
      _tile_loadd(5, a + kTile * p.a_row, p.a_row * 2);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kRowTiles > 1 && kColumnTiles > 1) _tile_dpbf16ps(3, 5, 7);
    a += kPairDepth;
    b += kPairDepth / 2 * p.b_row;
  }
  _tile_stored(0, p.c, p.c_row * 4);
  if constexpr (kColumnTiles > 1) _tile_stored(1, p.c + kTile, p.c_row * 4);
  if constexpr (kRowTiles > 1) _tile_stored(2, p.c + kTile * p.c_row, p.c_row * 4);
  if constexpr (kRowTiles > 1 && kColumnTiles > 1) {
    _tile_stored(3, p.c + kTile * p.c_row + kTile, p.c_row * 4);
  }
  FinishStores(p.c);
}

// Eight rows.
template <int kVectors>
HWY_INLINE void MultiplyPairRows(const PairProduct& p) {
  constexpr int kRows = 8;
  __m512 sums[kRows][kVectors];
  const float* from = p.add ? p.c : p.start;
  const int64_t row = p.add ? p.c_row : 0;
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = from ? _mm512_loadu_ps(from + r * row + v * kPairTile) : _mm512_setzero_ps();
    }
  }
  const uint32_t* b = p.b;
  for (int64_t k = 0; k < p.depth; k += 2, b += p.b_row) {
    __m512i right[kVectors];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) right[v] = _mm512_loadu_si512(b + v * kPairTile);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, p.a + r * p.a_row + k, sizeof pair);
      const __m512i left = _mm512_set1_epi32(pair);
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], reinterpret_cast<__m512bh>(left),
                                      reinterpret_cast<__m512bh>(right[v]));
      }
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(p.c + r * p.c_row + v * kPairTile, sums[r][v]);
    }
  }
}

// kRowTiles x kColumnTiles tiles of sums, at most 2 x 2, by the unit of the calling thread's
// TileRegisters.
template <Bf16Unit kUnit, int kRowTiles, int kColumnTiles>
HWY_NOINLINE void MultiplyPairTiles(const PairProduct& product) {
  if constexpr (kUnit == Bf16Unit::kAmx) {
    MultiplyAmxTiles<kRowTiles, kColumnTiles>(product);
  } else {
    PairProduct p = product;
    for (int rows = 0; rows < kRowTiles * kPairTile; rows += 8) {
      MultiplyPairRows<kColumnTiles>(p);
      p.a += 8 * p.a_row;
      p.c += 8 * p.c_row;
    }
  }
}

// The same for any number of tiles in [1, 2].
template <Bf16Unit kUnit>
HWY_INLINE void MultiplyPairTiles(int64_t row_tiles, int64_t column_tiles,
                                  const PairProduct& product) {
  if (row_tiles == 2) {
    if (column_tiles == 2) return MultiplyPairTiles<kUnit, 2, 2>(product);
    return MultiplyPairTiles<kUnit, 2, 1>(product);
  }
  if (column_tiles == 2) return MultiplyPairTiles<kUnit, 1, 2>(product);
  MultiplyPairTiles<kUnit, 1, 1>(product);
}

HWY_INLINE __mmask16 FirstLanes(int64_t count) {
  return count >= 16 ? __mmask16(0xffff) : static_cast<__mmask16>((1u << count) - 1);
}

// 32 f32, of which `count` are there (zeros behind them), to 16 pairs of neighbours.
HWY_INLINE __m512i RoundedPairs(const float* from, int64_t count) {
  if (count >= 32) {
    return reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from)));
  }
  const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(count), from);
  const __m512 high =
      count > 16 ? _mm512_maskz_loadu_ps(FirstLanes(count - 16), from + 16) : _mm512_setzero_ps();
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// to[i] = bf16 of from[i] for i < count, zeros up to `padded`, a multiple of kPairDepth.
HWY_INLINE void RoundToBf16(const float* from, int64_t count, int64_t padded, uint16_t* to) {
  for (int64_t i = 0; i < padded; i += kPairDepth) {
    const int64_t left = count > i ? count - i : 0;
    _mm512_storeu_si512(to + i, RoundedPairs(from + i, left));
  }
}

// Two rows of f32 that are neighbours on the summed axis to 16 pairs.
HWY_INLINE __m512i PairsOf(__m512 first, __m512 second) {
  const __m512i low = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(first)));
  const __m512i high = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(second)));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// to[n] = the pair (first[n], second[n]) for n < count, zeros up to `padded`, a multiple of
// kPairTile. `second` may be null: zeros.
HWY_INLINE void RoundToPairs(const float* first, const float* second, int64_t count, int64_t padded,
                             uint32_t* to) {
  for (int64_t n = 0; n < padded; n += kPairTile) {
    const __mmask16 lanes = FirstLanes(count > n ? count - n : 0);
    const __m512 low = _mm512_maskz_loadu_ps(lanes, first + n);
    const __m512 high = second ? _mm512_maskz_loadu_ps(lanes, second + n) : _mm512_setzero_ps();
    _mm512_storeu_si512(to + n, PairsOf(low, high));
  }
}

// tile[r] lane c becomes tile[c] lane r.
HWY_INLINE void TransposePairs(__m512i (&tile)[kPairTile]) {
  __m512i pairs[16], quads[16];
  HWY_UNROLL(8)
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(tile[i], tile[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(tile[i], tile[i + 1]);
  }
  // Lane c of each 128 bits of quads[4 i + c]: column 4 * block + c of rows 4 i .. 4 i + 3.
  HWY_UNROLL(4)
  for (int i = 0; i < 16; i += 4) {
    quads[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    quads[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    quads[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    quads[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  // A 4 x 4 transpose of the 128-bit blocks.
  HWY_UNROLL(4)
  for (int c = 0; c < 4; ++c) {
    const __m512i even01 = _mm512_shuffle_i32x4(quads[c], quads[4 + c], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(quads[c], quads[4 + c], 0xdd);
    const __m512i even23 = _mm512_shuffle_i32x4(quads[8 + c], quads[12 + c], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(quads[8 + c], quads[12 + c], 0xdd);
    tile[c] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    tile[4 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    tile[8 + c] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    tile[12 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();
