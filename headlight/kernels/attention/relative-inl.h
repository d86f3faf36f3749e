// Relative positions in the fused kernels. A table is packed by distance (key - query), clamped,
// for one block of queries and keys; products with it are made for a strip of queries and all
// distances that the strip spans, and moved between key order and distance order: row r of a strip
// of R rows sees key j of the strip's first key k0 at place (j - k0) + (R - 1 - r).

#if defined(HEADLIGHT_KERNELS_ATTENTION_RELATIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_RELATIVE_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_RELATIVE_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_RELATIVE_INL_H_
#endif

#include "headlight/kernels/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// Floats from row to row of products in distance order: the key block, a strip's rows, and the
// panels that both ends begin in.
constexpr int64_t kDistanceStride = kKeyBlock + 2 * kPanel + 16;

// A table packed by distance for queries [first_query, first_query + queries) and a key block.
struct PackedTable {
  int64_t origin = 0, count = 0;  // distances [origin, origin + count)
  int64_t dim = 0, width = 0;     // columns, and columns padded to whole vectors
  float* rows = nullptr;          // [count, width]
  float* panels = nullptr;        // transposed, as keys are packed

  bool present() const { return rows != nullptr; }

  static int64_t Count(int64_t queries, int64_t keys) {
    return RoundUp(keys, kLanes) + RoundUp(queries, kRows);
  }
  // Takes its buffers from `at` and moves it on. Absent tables take nothing.
  static PackedTable Place(const RelativeTable& table, int64_t dim, int64_t queries, int64_t keys,
                           float** at) {
    PackedTable placed;
    if (table.rows.data == nullptr) return placed;
    placed.dim = dim;
    placed.width = RoundUp(dim, kLanes);
    placed.rows = *at;
    placed.panels = *at + RoundUp(Count(queries, keys) * placed.width, 16);
    *at += Floats(table, dim, queries, keys);
    return placed;
  }
  static int64_t Floats(const RelativeTable& table, int64_t dim, int64_t queries, int64_t keys) {
    if (table.rows.data == nullptr) return 0;
    const int64_t count = Count(queries, keys);
    return RoundUp(count * RoundUp(dim, kLanes), 16) + RoundUp(count, kPanel) * dim;
  }

  void Pack(const RelativeTable& table, int64_t first_query, int64_t queries, int64_t first_key,
            int64_t keys, bool with_panels) {
    origin = first_key - (first_query + RoundUp(queries, kRows) - 1);
    count = Count(queries, keys);
    for (int64_t x = 0; x < count; ++x) {
      PackRows(table.rows, table.RowOf(origin + x), 1, dim, width, rows + x * width, width);
    }
    if (with_panels) PackTransposed({rows, width, 1}, 0, count, dim, panels);
  }
};

// Keys of a strip in distance order.
struct StripDistances {
  int64_t base;       // distance of the last row of the strip to its first key
  int64_t distances;  // how many, from there
};
inline StripDistances DistancesOf(int64_t row, int64_t rows, int64_t first_key, int64_t keys) {
  return {first_key - (row + rows - 1), keys + rows - 1};
}

// products[r][x] = row r . table[distance], for all distances of the strip (and, in whole panels,
// for some that are none: nobody reads those). Returns the place of
// the strip's first distance in each row of `products` (rows kDistanceStride apart).
template <int R>
HWY_NOINLINE int64_t DistanceProducts(const PackedTable& table, const StripDistances& strip,
                                      const float* rows, float* products) {
  constexpr int kTile = std::min(R, kTileRows);
  const int64_t first = (strip.base - table.origin) / kPanel * kPanel;
  const int64_t last = strip.base - table.origin + strip.distances;
  for (int64_t x = first; x < last; x += kPanel) {
    for (int row = 0; row < R; row += kTile) {
      V acc[kTile][kTileVectors];
      ZeroTile(acc);
      TileByRows<kQueryStride>(rows + row * kQueryStride, table.panels + x * table.dim, kPanel,
                               table.dim, acc);
      StoreTile(acc, products + row * kDistanceStride + x - first, kDistanceStride);
    }
  }
  return strip.base - table.origin - first;
}

// scores[r][0..vectors) += products, moved to key order. `place` is that of the first of these keys
// and the strip's last row.
template <int R>
HWY_INLINE void AddProducts(const float* products, int64_t place, int64_t vectors, float* scores) {
  const D d;
  for (int r = 0; r < R; ++r) {
    const float* from = products + r * kDistanceStride + place + (R - 1 - r);
    float* to = scores + r * kStripStride;
    for (int64_t v = 0; v < vectors * kLanes; v += kLanes) {
      hn::StoreU(hn::Add(hn::LoadU(d, to + v), hn::LoadU(d, from + v)), d, to + v);
    }
  }
}

// moved[r][x] = strip[r][key] in distance order, zeros where a row has no key. Both have rows
// kStripStride apart.
template <int R>
HWY_INLINE void MoveToDistances(const float* strip, int64_t keys, float* moved) {
  for (int r = 0; r < R; ++r) {
    float* to = moved + r * kStripStride;
    const float* from = strip + r * kStripStride;
    std::fill(to, to + (R - 1 - r), 0.0f);
    std::copy(from, from + keys, to + (R - 1 - r));
    std::fill(to + (R - 1 - r) + keys, to + std::min(keys + 2 * kRows, kStripStride), 0.0f);
  }
}

// out[r] += sum over the strip's distances of moved[r][x] * table row.
template <int R>
HWY_INLINE void AddTableRows(const PackedTable& table, const StripDistances& strip,
                             const float* moved, float* out) {
  MultiplyRows<R, true>({moved, table.rows + (strip.base - table.origin) * table.width, table.width,
                         strip.distances, out, table.width, table.width, true});
}

// sums[distance] += sum over the first `rows` rows of moved[r][x] * values[r]; sums begin at the
// table's origin, values have rows kQueryStride apart.
inline void AddToDistances(const PackedTable& table, const StripDistances& strip, int64_t rows,
                           const float* moved, const float* values, float* sums) {
  Product product{moved,
                  values,
                  kQueryStride,
                  rows,
                  sums + (strip.base - table.origin) * table.width,
                  table.width,
                  table.width,
                  true};
  for (int64_t x = 0; x < strip.distances; x += kRows) {
    MultiplyRows<kRows, false>(product);
    product.a += kRows;
    product.c += kRows * table.width;
  }
}

// Sums by distance to the rows of a table's gradient, times `scale`.
inline void FoldIntoTable(const PackedTable& packed, const RelativeTable& table, const float* sums,
                          float scale, const MutableMatrix& gradient) {
  for (int64_t x = 0; x < packed.count; ++x) {
    float* to = gradient.row(table.RowOf(packed.origin + x));
    const float* from = sums + x * packed.width;
    for (int64_t c = 0; c < packed.dim; ++c) to[c] += scale * from[c];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_RELATIVE_INL_H_
