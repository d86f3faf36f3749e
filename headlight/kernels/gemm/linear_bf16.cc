// Dense products of bf16 pairs (bf16-inl.h), for CPUs that have a unit for them. Operands are
// rounded as they are packed.
//
// Same bits: an element of y or dx is one chain over the depth; one of a weight gradient is one
// chain over all rows of x. Both start from zero, or from the bias.
#include "headlight/kernels/bf16-target-inl.h"
// After that, which defines what they are compiled for.
#include <algorithm>
#include <cstring>

#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/kernels/gemm/linear_internal.h"

#if HWY_ARCH_X86
#include "headlight/kernels/bf16-inl.h"
#include "headlight/kernels/gemm/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

// Panel p of a packed right-hand side holds columns [p * kPairPanel, ...) as [depth / 2][width]
// pairs; width is kPairPanel, in the last panel as many tiles as it needs.
inline constexpr int64_t kPairPanel = 2 * kPairTile;

HWY_INLINE int64_t PairDepth(int64_t depth) { return RoundUp(depth, kPairDepth); }

HWY_INLINE int64_t PairWidth(int64_t columns, int64_t first) {
  return RoundUp(std::min(kPairPanel, columns - first), kPairTile);
}

// Elements.
int64_t PairedSize(int64_t depth, int64_t columns) {
  return PairDepth(depth) * RoundUp(columns, kPairTile);
}

HWY_INLINE uint32_t* PairsOfPanel(Tensor& packed, int64_t depth, int64_t first) {
  return reinterpret_cast<uint32_t*>(packed.bytes()) + first * PairDepth(depth) / 2;
}
HWY_INLINE const uint32_t* PairsOfPanel(const Tensor& packed, int64_t depth, int64_t first) {
  return reinterpret_cast<const uint32_t*>(packed.bytes()) + first * PairDepth(depth) / 2;
}

// B[k][n] = weight[n][k].
void PackForwardPairs(const Tensor& weight, int64_t first, Tensor& packed) {
  const View<const float> from = weight.view<float>();
  const int64_t depth = weight.size(1), width = PairWidth(weight.size(0), first);
  uint32_t* to = PairsOfPanel(packed, depth, first);
  for (int64_t n = 0; n < width; n += kPairTile) {
    const int64_t rows = std::clamp<int64_t>(weight.size(0) - first - n, 0, kPairTile);
    for (int64_t k = 0; k < depth; k += kPairDepth) {
      __m512i tile[kPairTile];
      for (int64_t r = 0; r < kPairTile; ++r) {
        tile[r] = r < rows ? RoundedPairs(from.row(first + n + r) + k, depth - k)
                           : _mm512_setzero_si512();
      }
      TransposePairs(tile);
      for (int64_t r = 0; r < kPairTile; ++r) {
        _mm512_storeu_si512(to + (k / 2 + r) * width + n, tile[r]);
      }
    }
  }
}

// Rows [0, depth) of `from`, and zeros up to `pairs` pairs of rows, to [pairs][width].
HWY_INLINE void PackRowPairs(const float* from, int64_t row, int64_t depth, int64_t columns,
                             int64_t pairs, int64_t width, uint32_t* to) {
  for (int64_t p = 0; p < pairs; ++p, to += width) {
    const int64_t k = 2 * p;
    if (k >= depth) {
      std::fill_n(to, width, 0u);
      continue;
    }
    RoundToPairs(from + k * row, k + 1 < depth ? from + (k + 1) * row : nullptr, columns, width,
                 to);
  }
}

// B[k][n] = weight[k][n].
void PackBackwardPairs(const Tensor& weight, int64_t first, Tensor& packed) {
  const int64_t depth = weight.size(0), columns = weight.size(1);
  PackRowPairs(weight.view<float>().data + first, weight.stride(0), depth,
               std::min(kPairPanel, columns - first), PairDepth(depth) / 2,
               PairWidth(columns, first), PairsOfPanel(packed, depth, first));
}

// --- y and dx ---

// Rows of A that are rounded at a time: few enough that they stay in L2.
HWY_INLINE int64_t RowsOfPairBlock(int64_t depth) {
  constexpr int64_t kElements = 128 * 1024, kMost = 192;
  return std::clamp(kElements / depth / kPairPanel * kPairPanel, kPairPanel, kMost);
}

// From row to row of rounded A: no power of two, so that the rows of a tile lie in different cache
// sets.
HWY_INLINE int64_t RoundedRow(int64_t depth) { return PairDepth(depth) + kPairDepth; }

int64_t RowsWorkspace(int64_t depth) { return RowsOfPairBlock(depth) * RoundedRow(depth) / 2; }

struct PairRows {
  View<const float> a;
  const Tensor& packed;
  int64_t columns;
  const float* bias;  // or null
  int64_t begin, end;
  float* workspace;
};

template <Bf16Unit kUnit, class Finish>
HWY_INLINE void MultiplyPairBlock(const PairRows& work, int64_t begin, int64_t end,
                                  const Finish& finish) {
  HWY_ALIGN float sums[kPairPanel * kPairPanel];
  HWY_ALIGN float start[kPairPanel] = {};
  auto* rounded = reinterpret_cast<uint16_t*>(work.workspace);
  const int64_t depth = work.a.size(1), a_row = RoundedRow(depth);
  for (int64_t r = begin; r < end; ++r) {
    RoundToBf16(work.a.row(r), depth, PairDepth(depth), rounded + (r - begin) * a_row);
  }
  for (int64_t column = 0; column < work.columns; column += kPairPanel) {
    const int64_t width = PairWidth(work.columns, column);
    const int64_t count = std::min(width, work.columns - column);
    if (work.bias) std::copy_n(work.bias + column, count, start);
    PairProduct product = {};
    product.b = PairsOfPanel(work.packed, depth, column);
    product.b_row = width;
    product.depth = PairDepth(depth);
    product.start = work.bias ? start : nullptr;
    product.c = sums;
    product.c_row = width;
    for (int64_t r = begin; r < end; r += kPairPanel) {
      const int64_t rows = std::min(kPairPanel, end - r);
      LinesAhead ahead;
      finish.AddAhead({r, column, rows, count}, ahead);
      ahead.Next(ahead.lines());
      product.a = rounded + (r - begin) * a_row;
      product.a_row = a_row;
      MultiplyPairTiles<kUnit>((rows + kPairTile - 1) / kPairTile, width / kPairTile, product);
      for (int64_t m = 0; m < rows; ++m) finish(r + m, column, count, sums + m * width);
    }
  }
}

template <class Finish>
HWY_INLINE void MultiplyPairRows(const PairRows& work, const Finish& finish) {
  const Bf16Unit unit = SelectedBf16Unit();
  const TileRegisters registers(unit);
  const int64_t rows = RowsOfPairBlock(work.a.size(1));
  for (int64_t begin = work.begin; begin < work.end; begin += rows) {
    const int64_t end = std::min(begin + rows, work.end);
    if (unit == Bf16Unit::kAmx) {
      MultiplyPairBlock<Bf16Unit::kAmx>(work, begin, end, finish);
    } else {
      MultiplyPairBlock<Bf16Unit::kAvx512Bf16>(work, begin, end, finish);
    }
  }
}

void ForwardPairRows(const internal::ForwardRows& task) {
  MultiplyPairRows(
      {task.x.view<float>(), task.packed, task.y.size(1),
       task.bias ? task.bias->data<float>() : nullptr, task.begin, task.end, task.workspace},
      ForwardFinish(task.options, task.y));
}

void BackwardInputPairRows(const internal::BackwardInputRows& task) {
  MultiplyPairRows({task.dy.view<float>(), task.packed, task.dx.size(1), nullptr, task.begin,
                    task.end, task.workspace},
                   BackwardFinish(task.options, task.dx));
}

// --- weight gradients ---

// Rows of x and dy that are packed at a time.
inline constexpr int64_t kPairChunk = 256;
inline constexpr int64_t kLeftRow = kPairChunk + kPairDepth;  // as RoundedRow

int64_t PairGradientWorkspace(int64_t outputs, int64_t inputs) {
  const int64_t outs = RoundUp(outputs, kPairTile), ins = RoundUp(inputs, kPairTile);
  return kPairChunk / 2 * ins + outs * kLeftRow / 2 + outs * ins;
}

// That many rows side by side are more than hardware prefetchers follow.
inline constexpr int64_t kColumnsAhead = 64;

// A[m][k] = from[k][m] for m < columns (zeros up to whole tiles) and k < depth (zeros up to
// PairDepth), rows kLeftRow apart.
HWY_INLINE void PackLeftPairs(const float* from, int64_t row, int64_t depth, int64_t columns,
                              uint16_t* to) {
  for (int64_t k = 0; k < depth; k += kPairDepth) {
    for (int64_t m = 0; m < columns; m += kPairTile) {
      const __mmask16 lanes = FirstLanes(columns - m);
      __m512i tile[kPairTile];
      for (int64_t p = 0; p < kPairTile; ++p) {
        const int64_t at = k + 2 * p;
        __builtin_prefetch(from + at * row + m + kColumnsAhead, 0, 2);
        __builtin_prefetch(from + (at + 1) * row + m + kColumnsAhead, 0, 2);
        const __m512 first =
            at < depth ? _mm512_maskz_loadu_ps(lanes, from + at * row + m) : _mm512_setzero_ps();
        const __m512 second = at + 1 < depth
                                  ? _mm512_maskz_loadu_ps(lanes, from + (at + 1) * row + m)
                                  : _mm512_setzero_ps();
        tile[p] = PairsOf(first, second);
      }
      TransposePairs(tile);
      for (int64_t r = 0; r < kPairTile; ++r) {
        _mm512_storeu_si512(to + (m + r) * kLeftRow + k, tile[r]);
      }
    }
  }
}

// B[k][n] = from[k][n], panel after panel; row by row, as they lie in memory.
HWY_INLINE void PackRightPairs(const float* from, int64_t row, int64_t depth, int64_t columns,
                               uint32_t* to) {
  const int64_t pairs = PairDepth(depth) / 2;
  for (int64_t p = 0; p < pairs; ++p) {
    for (int64_t n = 0; n < columns; n += kPairPanel) {
      const int64_t width = PairWidth(columns, n);
      PackRowPairs(from + 2 * p * row + n, row, depth - 2 * p, std::min(kPairPanel, columns - n), 1,
                   width, to + n * pairs + p * width);
    }
  }
}

template <Bf16Unit kUnit>
HWY_INLINE void GradientBlockPairs(const internal::GradientBlock& block) {
  const View<const float> x = block.x.view<float>(), dy = block.dy.view<float>();
  const View<float> dweight = block.dweight.view<float>();
  const int64_t outputs = block.out_end - block.out_begin, outs = RoundUp(outputs, kPairTile);
  const int64_t inputs = block.in_end - block.in_begin;
  float* sums = block.workspace;
  auto* right = reinterpret_cast<uint32_t*>(sums + outs * RoundUp(inputs, kPairTile));
  auto* left = reinterpret_cast<uint16_t*>(right + kPairChunk / 2 * RoundUp(inputs, kPairTile));
  for (int64_t t = 0; t < x.size(0); t += kPairChunk) {
    const int64_t depth = std::min(kPairChunk, x.size(0) - t), padded = PairDepth(depth);
    const float* dy_block = dy.row(t) + block.out_begin;
    PackLeftPairs(dy_block, dy.strides[0], depth, outputs, left);
    // What is packed next is asked for while this is multiplied.
    LinesAhead ahead;
    if (const int64_t next = std::min(kPairChunk, x.size(0) - t - depth); next > 0) {
      AddPart(x, {t + depth, block.in_begin, next, inputs}, ahead);
      AddPart(dy, {t + depth, block.out_begin, next, outputs}, ahead);
    }
    const int64_t tiles =
        RoundUp(inputs, kPairPanel) * RoundUp(outs, kPairPanel) / (kPairPanel * kPairPanel);
    const int64_t lines_per_tile = ahead.lines() / tiles + 1;
    PackRightPairs(x.row(t) + block.in_begin, x.strides[0], depth, inputs, right);
    for (int64_t i = 0; i < inputs; i += kPairPanel) {
      const int64_t width = PairWidth(inputs, i);
      const uint32_t* panel = right + i * padded / 2;
      for (int64_t o = 0; o < outs; o += kPairPanel) {
        PairProduct product = {};
        product.a = left + o * kLeftRow;
        product.a_row = kLeftRow;
        product.b = panel;
        product.b_row = width;
        product.depth = padded;
        product.c = sums + i * outs + o * width;
        product.c_row = width;
        product.add = t > 0;
        ahead.Next(lines_per_tile);
        MultiplyPairTiles<kUnit>(std::min(kPairPanel, outs - o) / kPairTile, width / kPairTile,
                                 product);
      }
    }
    if (block.dbias && block.in_begin == 0) {
      AddBiasGradient(block, t, depth);
    }
  }
  AddPanels({sums, outputs, inputs, outs, kPairPanel, kPairTile},
            dweight.row(block.out_begin) + block.in_begin, dweight.strides[0]);
}

void BackwardWeightPairs(const internal::GradientBlock& block) {
  const Bf16Unit unit = SelectedBf16Unit();
  const TileRegisters registers(unit);
  if (unit == Bf16Unit::kAmx) return GradientBlockPairs<Bf16Unit::kAmx>(block);
  GradientBlockPairs<Bf16Unit::kAvx512Bf16>(block);
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_X86

namespace headlight::internal {

const LinearKernels& Bf16LinearKernels() {
#if HWY_ARCH_X86
  static const LinearKernels kernels = {
      .packed = DType::kBF16,
      .panel_columns = [] { return N_AVX3_BF16::kPairPanel; },
      .packed_size = N_AVX3_BF16::PairedSize,
      .pack_forward_panel = N_AVX3_BF16::PackForwardPairs,
      .pack_backward_panel = N_AVX3_BF16::PackBackwardPairs,
      .rows_workspace = N_AVX3_BF16::RowsWorkspace,
      .forward_rows = N_AVX3_BF16::ForwardPairRows,
      .backward_input_rows = N_AVX3_BF16::BackwardInputPairRows,
      .gradient_workspace = N_AVX3_BF16::PairGradientWorkspace,
      .backward_weight_block = N_AVX3_BF16::BackwardWeightPairs,
  };
  return kernels;
#else
  throw Error(ErrorKind::kInternal, "linear: no unit of this architecture multiplies bf16");
#endif
}

}  // namespace headlight::internal
