// The f32 matrix product under linear.cc: C[m][n] (+)= sum over k of A(m, k) B[k][n], with B packed
// into panels. Compiled once per instruction set.
//
// Structure: Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication". A tile
// of kTileRows x kTileVectors vectors of C lives in registers while a panel of B (kDepthBlock deep)
// lies in L1 and a block of A in L2.
//
// Same bits: an element of C is, for each kDepthBlock of k in ascending order, one chain of fused
// multiply-adds (from zero; the first from `start`), and these are added up in order. Nothing else
// enters: not the tile an element falls into, not its neighbours, not the number of rows.
#if defined(HEADLIGHT_KERNELS_GEMM_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_GEMM_PRODUCT_INL_H_
#undef HEADLIGHT_KERNELS_GEMM_PRODUCT_INL_H_
#else
#define HEADLIGHT_KERNELS_GEMM_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "headlight/kernels/activation/activation-inl.h"
#include "headlight/kernels/vector-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

// Accumulators, the row of B and one factor must fit the registers: 32 of them with AVX-512 and
// NEON, else 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
inline constexpr int kTileVectors = 4;
#else
inline constexpr int kTileVectors = 2;
#endif
inline constexpr int kTileRows = 6;
inline constexpr int64_t kDepthBlock = 256;

using ProductTag = hn::ScalableTag<float>;
using ProductVector = hn::Vec<ProductTag>;

HWY_INLINE int64_t PanelColumns() { return kTileVectors * LanesOf(ProductTag()); }

// Memory that will be needed soon: asked for line by line while the ports of the multiply-adds are
// busy, so that it is in L2 when its turn comes.
class LinesAhead {
 public:
  // rows x columns from `at`, both > 0.
  HWY_INLINE void Add(const float* at, int64_t row, int64_t rows, int64_t columns) {
    assert(count_ < kMost && rows > 0 && columns > 0);
    windows_[count_] = {at, row, rows, (columns + kLine - 1) / kLine * kLine};
    lines_ += rows * windows_[count_].columns / kLine;
    if (++count_ == 1) Begin();
  }

  // In all windows.
  HWY_INLINE int64_t lines() const { return lines_; }

  HWY_INLINE void Next(int64_t lines) {
    for (; lines > 0; --lines) Next();
  }

  HWY_INLINE void Next() {
    if (at_ == nullptr) return;
    __builtin_prefetch(at_, 0, 2);
    at_ += kLine;
    if (at_ != row_end_) return;
    Window& window = windows_[current_];
    if (--window.rows > 0) {
      at_ += window.row - window.columns;
      row_end_ += window.row;
      return;
    }
    ++current_;
    Begin();
  }

 private:
  static constexpr int64_t kLine = 16;
  static constexpr int64_t kMost = 5;

  struct Window {
    const float* at;
    int64_t row;
    int64_t rows;
    int64_t columns;
  };

  HWY_INLINE void Begin() {
    at_ = nullptr;
    if (current_ == count_) return;
    at_ = windows_[current_].at;
    row_end_ = at_ + windows_[current_].columns;
  }

  Window windows_[kMost];
  int64_t count_ = 0;
  int64_t lines_ = 0;
  int64_t current_ = 0;
  const float* at_ = nullptr;
  const float* row_end_ = nullptr;
};

// One tile's worth of work. A(m, k) = a[m * a_row + k * a_step].
struct TileWork {
  const float* a;
  int64_t a_row;
  int64_t a_step;
  const float* b;  // [depth][width], width = vectors * lanes
  int64_t depth;
  float* c;
  int64_t c_row;
  bool add;            // to what is in c
  const float* start;  // [width], what the chains of every row start from; null: zeros
  bool relu;           // on the way out
  LinesAhead* ahead;   // one line for every few steps of k
};

template <size_t... kVector>
HWY_INLINE void FmaRow(ProductVector factor, const ProductVector* b, ProductVector* sums,
                       std::index_sequence<kVector...>) {
  ((sums[kVector] = hn::MulAdd(factor, b[kVector], sums[kVector])), ...);
}

template <size_t... kVector>
HWY_INLINE void LoadRow(ProductTag d, const float* from, ProductVector* row,
                        std::index_sequence<kVector...>) {
  const size_t lanes = hn::Lanes(d);
  ((row[kVector] = hn::LoadU(d, from + kVector * lanes)), ...);
}

// One step of k: the row of B, and a factor for each row.
template <size_t kVectors, size_t... kRow>
HWY_INLINE void FmaStep(ProductTag d, const float* a, int64_t a_row, const float* from_b,
                        ProductVector* sums, std::index_sequence<kRow...>) {
  ProductVector b[kVectors];
  LoadRow(d, from_b, b, std::make_index_sequence<kVectors>());
  (FmaRow(hn::Set(d, a[static_cast<int64_t>(kRow) * a_row]), b, sums + kRow * kVectors,
          std::make_index_sequence<kVectors>()),
   ...);
}

// Several at once: what counts the steps would take the ports of the multiply-adds.
inline constexpr int64_t kUnroll = 4;

template <size_t kVectors, class Rows, size_t... kStep>
HWY_INLINE void FmaSteps(ProductTag d, const float* a, int64_t a_row, int64_t a_step,
                         const float* b, ProductVector* sums, Rows rows,
                         std::index_sequence<kStep...>) {
  const size_t width = kVectors * hn::Lanes(d);
  (FmaStep<kVectors>(d, a + static_cast<int64_t>(kStep) * a_step, a_row, b + kStep * width, sums,
                     rows),
   ...);
}

template <size_t... kVector>
HWY_INLINE void AddRow(ProductTag d, const float* from, ProductVector* row,
                       std::index_sequence<kVector...>) {
  const size_t lanes = hn::Lanes(d);
  ((row[kVector] = hn::Add(hn::LoadU(d, from + kVector * lanes), row[kVector])), ...);
}

template <size_t... kVector>
HWY_INLINE void StoreRow(ProductTag d, const ProductVector* row, float* to,
                         std::index_sequence<kVector...>) {
  const size_t lanes = hn::Lanes(d);
  (hn::StoreU(row[kVector], d, to + kVector * lanes), ...);
}

template <size_t kVectors, size_t... kRow>
HWY_INLINE void AddTile(ProductTag d, const TileWork& work, ProductVector* sums,
                        std::index_sequence<kRow...>) {
  (AddRow(d, work.c + static_cast<int64_t>(kRow) * work.c_row, sums + kRow * kVectors,
          std::make_index_sequence<kVectors>()),
   ...);
}

template <size_t kVectors, size_t... kRow>
HWY_INLINE void StoreTile(ProductTag d, const TileWork& work, const ProductVector* sums,
                          std::index_sequence<kRow...>) {
  (StoreRow(d, sums + kRow * kVectors, work.c + static_cast<int64_t>(kRow) * work.c_row,
            std::make_index_sequence<kVectors>()),
   ...);
}

template <size_t... kIndex>
HWY_INLINE void ZeroAll(ProductTag d, ProductVector* sums, std::index_sequence<kIndex...>) {
  ((sums[kIndex] = hn::Zero(d)), ...);
}

template <size_t kVectors, size_t... kRow>
HWY_INLINE void StartAll(ProductTag d, const float* start, ProductVector* sums,
                         std::index_sequence<kRow...>) {
  (LoadRow(d, start, sums + kRow * kVectors, std::make_index_sequence<kVectors>()), ...);
}

template <size_t... kIndex>
HWY_INLINE void ReluAll(ProductTag d, ProductVector* sums, std::index_sequence<kIndex...>) {
  ((sums[kIndex] = Relu(d, sums[kIndex])), ...);
}

// Fold expressions rather than loops: sums must stay in registers at every optimisation level.
template <size_t kRows, size_t kVectors>
HWY_NOINLINE void MultiplyTile(const TileWork& work) {
  const ProductTag d;
  const auto rows = std::make_index_sequence<kRows>();
  ProductVector sums[kRows * kVectors];
  if (work.start) {
    StartAll<kVectors>(d, work.start, sums, rows);
  } else {
    ZeroAll(d, sums, std::make_index_sequence<kRows * kVectors>());
  }
  const float* HWY_RESTRICT from_a = work.a;
  const float* HWY_RESTRICT from_b = work.b;
  const int64_t a_row = work.a_row;
  const int64_t a_step = work.a_step;
  const auto width = static_cast<int64_t>(kVectors * hn::Lanes(d));
  LinesAhead* ahead = work.ahead;
  int64_t k = work.depth;
  for (; k >= kUnroll; k -= kUnroll) {
    FmaSteps<kVectors>(d, from_a, a_row, a_step, from_b, sums, rows,
                       std::make_index_sequence<kUnroll>());
    from_a += kUnroll * a_step;
    from_b += kUnroll * width;
    ahead->Next();
  }
  for (; k > 0; --k) {
    FmaStep<kVectors>(d, from_a, a_row, from_b, sums, rows);
    from_a += a_step;
    from_b += width;
  }
  if (work.add) AddTile<kVectors>(d, work, sums, rows);
  if (work.relu) ReluAll(d, sums, std::make_index_sequence<kRows * kVectors>());
  StoreTile<kVectors>(d, work, sums, rows);
}

template <size_t kVectors>
HWY_INLINE void MultiplyTileOf(int64_t rows, const TileWork& work) {
  static_assert(kTileRows == 6, "the cases below");
  switch (rows) {
    case 6:
      return MultiplyTile<6, kVectors>(work);
    case 5:
      return MultiplyTile<5, kVectors>(work);
    case 4:
      return MultiplyTile<4, kVectors>(work);
    case 3:
      return MultiplyTile<3, kVectors>(work);
    case 2:
      return MultiplyTile<2, kVectors>(work);
    default:
      return MultiplyTile<1, kVectors>(work);
  }
}

// rows in [1, kTileRows], vectors in [1, kTileVectors].
HWY_INLINE void MultiplyAnyTile(int64_t rows, int64_t vectors, const TileWork& work) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
  static_assert(kTileVectors == 4, "the cases below");
  if (vectors == 4) return MultiplyTileOf<4>(rows, work);
  if (vectors == 3) return MultiplyTileOf<3>(rows, work);
#else
  static_assert(kTileVectors == 2, "the cases below");
#endif
  if (vectors == 2) return MultiplyTileOf<2>(rows, work);
  MultiplyTileOf<1>(rows, work);
}

// --- packed right-hand sides ---
//
// Panel p holds columns [p * PanelColumns(), ...) as [depth][width]; width is PanelColumns() except
// in the last panel, which is as many whole vectors wide as it needs, padded with zeros.

HWY_INLINE int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

HWY_INLINE int64_t PackedSize(int64_t depth, int64_t columns) {
  return depth * RoundUp(columns, LanesOf(ProductTag()));
}

HWY_INLINE int64_t PanelWidth(int64_t columns, int64_t first) {
  return RoundUp(std::min(PanelColumns(), columns - first), LanesOf(ProductTag()));
}

// B[k][n] = from[k * row + n], columns [first, first + PanelColumns()) of it.
HWY_INLINE void PackPanel(const float* from, int64_t row, int64_t depth, int64_t columns,
                          int64_t first, float* to) {
  const ProductTag d;
  const int64_t lanes = LanesOf(d);
  const int64_t width = PanelWidth(columns, first);
  const int64_t present = std::min(width, columns - first);
  for (int64_t k = 0; k < depth; ++k) {
    const float* source = from + k * row + first;
    float* target = to + k * width;
    int64_t n = 0;
    for (; n + lanes <= present; n += lanes) hn::StoreU(hn::LoadU(d, source + n), d, target + n);
    if (n < present) hn::StoreU(LoadPart(d, source + n, present - n), d, target + n);
  }
}

// All panels, row by row as they lie in memory.
HWY_INLINE void PackPanels(const float* from, int64_t row, int64_t depth, int64_t columns,
                           float* to) {
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t n = 0; n < columns; n += PanelColumns()) {
      PackPanel(from + k * row, row, 1, columns, n, to + n * depth + k * PanelWidth(columns, n));
    }
  }
}

// to[j * width + i] = from[i * row + j] for i and j < 4.
HWY_INLINE void TransposeQuad(const float* from, int64_t row, float* to, int64_t width) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) to[j * width + i] = from[i * row + j];
  }
#else
  const hn::FixedTag<float, 4> d;
  const auto v0 = hn::LoadU(d, from), v1 = hn::LoadU(d, from + row);
  const auto v2 = hn::LoadU(d, from + 2 * row), v3 = hn::LoadU(d, from + 3 * row);
  const auto low01 = hn::InterleaveLower(d, v0, v1), high01 = hn::InterleaveUpper(d, v0, v1);
  const auto low23 = hn::InterleaveLower(d, v2, v3), high23 = hn::InterleaveUpper(d, v2, v3);
  hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, to + width);
  hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, to + 2 * width);
  hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, to + 3 * width);
#endif
}

// B[k][n] = from[n * row + k].
HWY_INLINE void PackPanelTransposed(const float* from, int64_t row, int64_t depth, int64_t columns,
                                    int64_t first, float* to) {
  const int64_t width = PanelWidth(columns, first);
  const int64_t present = std::min(width, columns - first);
  // A few k at a time: each line of the source is read once while it is in L1.
  constexpr int64_t kLine = 16;
  for (int64_t k0 = 0; k0 < depth; k0 += kLine) {
    const int64_t k1 = std::min(depth, k0 + kLine);
    int64_t n = 0;
    if (k1 - k0 == kLine) {
      for (; n + 4 <= present; n += 4) {
        const float* source = from + (first + n) * row;
        for (int64_t k = k0; k < k1; k += 4) {
          TransposeQuad(source + k, row, to + k * width + n, width);
        }
      }
    }
    for (; n < present; ++n) {
      const float* source = from + (first + n) * row;
      for (int64_t k = k0; k < k1; ++k) to[k * width + n] = source[k];
    }
    for (int64_t k = k0; k < k1; ++k) {
      std::fill(to + k * width + present, to + (k + 1) * width, 0.0f);
    }
  }
}

// A(m, k) = from[k * row + m] for m in [0, rows), as [group of kLeftGroup][depth][kLeftGroup]:
// whole lines are copied, and the tiles of a group read them with a_row = 1, a_step = kLeftGroup.
inline constexpr int64_t kLeftGroup = 16;

HWY_INLINE void PackLeftTransposed(const float* from, int64_t row, int64_t depth, int64_t rows,
                                   float* to) {
  const ProductTag d;
  const int64_t lanes = LanesOf(d);
  for (int64_t k = 0; k < depth; ++k) {
    const float* source = from + k * row;
    for (int64_t m = 0; m < rows; m += kLeftGroup) {
      const int64_t present = std::min(kLeftGroup, rows - m);
      float* target = to + m * depth + k * kLeftGroup;
      int64_t n = 0;
      for (; n + lanes <= present; n += lanes) {
        hn::StoreU(hn::LoadU(d, source + m + n), d, target + n);
      }
      const int64_t left = present - n;
      if (left > 0) StorePart(d, LoadPart(d, source + m + n, left), target + n, left);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_GEMM_PRODUCT_INL_H_
