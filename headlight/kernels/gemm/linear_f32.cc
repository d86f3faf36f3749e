#include <algorithm>
#include <numeric>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/gemm/linear_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/gemm/linear_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what they are compiled for.
#include "headlight/kernels/gemm/finish-inl.h"
#include "headlight/kernels/gemm/product-inl.h"
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

// Rows of A that a panel of B meets while it is near: few enough that they stay in L2 (192 KiB),
// many enough that the panel is used often.
inline constexpr int64_t kMostRows = 192;

HWY_INLINE int64_t RowsOfBlock(int64_t depth) {
  constexpr int64_t kFloats = 48 * 1024, kLeastRows = 48;
  return std::clamp(kFloats / depth / kTileRows * kTileRows, kLeastRows, kMostRows);
}

// C[row block][panel] = A[row block][depth] B[depth][panel].
struct RowBlock {
  const float* a;
  int64_t a_row;
  int64_t rows;
  int64_t depth;
};

// Writes the product of one panel into c; a_step is 1: rows of A as they lie.
HWY_INLINE void MultiplyPanel(const RowBlock& block, const float* panel, int64_t width,
                              const float* start, bool relu, float* c, int64_t c_row,
                              LinesAhead& ahead) {
  const int64_t vectors = width / LanesOf(ProductTag());
  for (int64_t k = 0; k < block.depth; k += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, block.depth - k);
    const bool last = k + depth == block.depth;
    for (int64_t m = 0; m < block.rows; m += kTileRows) {
      MultiplyAnyTile(
          std::min<int64_t>(kTileRows, block.rows - m), vectors,
          {block.a + m * block.a_row + k, block.a_row, 1, panel + k * width, depth, c + m * c_row,
           c_row, k > 0, k == 0 ? start : nullptr, relu && last, &ahead});
    }
  }
}

// All panels for the rows [begin, end) of A. Whole panels that need nothing but a bias and a ReLU
// go straight to `direct`; other pieces through `finish`.
struct RowsWork {
  View<const float> a;
  const float* packed;
  int64_t columns;
  const float* bias;   // or null
  bool relu;           // for the direct way
  View<float> direct;  // data may be null: nothing goes straight
};

// What the panel at `column` reads and writes for the rows [begin, end); past the last one, what
// the first does for the next rows.
template <class Finish>
HWY_INLINE void AddNextPanel(const RowsWork& work, int64_t begin, int64_t end, int64_t next_end,
                             int64_t column, const Finish& finish, LinesAhead& ahead) {
  if (column >= work.columns) {
    column = 0;
    begin = end;
    end = next_end;
  }
  if (begin == end) return;
  const int64_t depth = work.a.size(1), width = PanelWidth(work.columns, column);
  finish.AddAhead({begin, column, end - begin, std::min(width, work.columns - column)}, ahead);
  ahead.Add(work.packed + column * depth, width, depth, width);
}

// Of the next rows of A, the share that the panel at `column` has in all columns.
HWY_INLINE void AddShareOfNextRows(const RowsWork& work, int64_t begin, int64_t end, int64_t column,
                                   LinesAhead& ahead) {
  const auto row_at = [&](int64_t at) {
    return begin + (end - begin) * std::min(at, work.columns) / work.columns;
  };
  const int64_t first = row_at(column), last = row_at(column + PanelColumns());
  if (first < last) ahead.Add(work.a.row(first), work.a.strides[0], last - first, work.a.size(1));
}

template <class Finish>
HWY_INLINE void MultiplyRowBlock(const RowsWork& work, int64_t begin, int64_t end, int64_t next_end,
                                 const Finish& finish) {
  constexpr int64_t kPanel = kTileVectors * hn::MaxLanes(ProductTag());
  HWY_ALIGN float sums[kMostRows * kPanel];
  HWY_ALIGN float start[kPanel];
  const RowBlock block = {work.a.row(begin), work.a.strides[0], end - begin, work.a.size(1)};
  for (int64_t column = 0; column < work.columns; column += PanelColumns()) {
    const int64_t width = PanelWidth(work.columns, column);
    const int64_t count = std::min(width, work.columns - column);
    const float* panel = work.packed + column * block.depth;
    LinesAhead ahead;
    AddNextPanel(work, begin, end, next_end, column + width, finish, ahead);
    AddShareOfNextRows(work, end, next_end, column, ahead);
    if (work.bias) {
      std::fill_n(start, width, 0.0f);
      std::copy_n(work.bias + column, count, start);
    }
    const float* from = work.bias ? start : nullptr;
    if (work.direct.data && count == width) {
      MultiplyPanel(block, panel, width, from, work.relu, work.direct.row(begin) + column,
                    work.direct.strides[0], ahead);
      continue;
    }
    MultiplyPanel(block, panel, width, from, false, sums, width, ahead);
    for (int64_t m = 0; m < block.rows; ++m) finish(begin + m, column, count, sums + m * width);
  }
}

template <class Finish>
HWY_INLINE void MultiplyRows(const RowsWork& work, int64_t begin, int64_t end,
                             const Finish& finish) {
  const int64_t rows = RowsOfBlock(work.a.size(1));
  for (; begin < end; begin += rows) {
    MultiplyRowBlock(work, begin, std::min(begin + rows, end), std::min(begin + 2 * rows, end),
                     finish);
  }
}

void ForwardRowsT(const internal::ForwardRows& task) {
  const LinearForwardOptions& options = task.options;
  const ForwardFinish finish(options, task.y);
  RowsWork work = {task.x.view<float>(),
                   task.packed.data<float>(),
                   task.y.size(1),
                   task.bias ? task.bias->data<float>() : nullptr,
                   options.epilogue == Epilogue::kRelu,
                   {}};
  const bool plain =
      options.epilogue != Epilogue::kGelu && !options.pre_activation && !options.residual;
  if (plain) work.direct = finish.y;
  MultiplyRows(work, task.begin, task.end, finish);
}

void BackwardInputRowsT(const internal::BackwardInputRows& task) {
  const BackwardFinish finish(task.options, task.dx);
  RowsWork work = {
      task.dy.view<float>(), task.packed.data<float>(), task.dx.size(1), nullptr, false, {}};
  if (finish.plain()) work.direct = finish.dx;
  MultiplyRows(work, task.begin, task.end, finish);
}

int64_t PanelColumnsT() { return PanelColumns(); }
int64_t PackedSizeT(int64_t depth, int64_t columns) { return PackedSize(depth, columns); }

void PackForwardPanelT(const Tensor& weight, int64_t first, float* packed) {
  const int64_t depth = weight.size(1);
  PackPanelTransposed(weight.data<float>(), weight.stride(0), depth, weight.size(0), first,
                      packed + first * depth);
}

void PackBackwardPanelT(const Tensor& weight, int64_t first, float* packed) {
  const int64_t depth = weight.size(0);
  PackPanel(weight.data<float>(), weight.stride(0), depth, weight.size(1), first,
            packed + first * depth);
}

// --- weight gradients ---

// A block of the gradient is summed up in panels of its own ([panel][outputs][width], in L2): a
// stride of whole pages, as gradients have, would collide in the caches.
struct GradientPanel {
  const float* left;  // dy, in groups
  int64_t outputs;
  const float* right;  // x
  int64_t width;
  int64_t depth;
  bool add;
  float* sums;
  LinesAhead* ahead;
};

HWY_INLINE void MultiplyGradientPanel(const GradientPanel& work) {
  const int64_t vectors = work.width / LanesOf(ProductTag());
  for (int64_t group = 0; group < work.outputs; group += kLeftGroup) {
    const int64_t end = std::min(work.outputs, group + kLeftGroup);
    for (int64_t o = group; o < end; o += kTileRows) {
      MultiplyAnyTile(
          std::min<int64_t>(kTileRows, end - o), vectors,
          {work.left + group * work.depth + o - group, 1, kLeftGroup, work.right, work.depth,
           work.sums + o * work.width, work.width, work.add, nullptr, false, work.ahead});
    }
  }
}

// The longer side of a block is packed this much at a time, the shorter one whole.
inline constexpr int64_t kPackedPart = 256;
static_assert(kPackedPart % kLeftGroup == 0);

int64_t GradientWorkspaceT(int64_t outputs, int64_t inputs) {
  const bool taller = outputs >= inputs;
  const int64_t right = taller ? inputs : std::min(inputs, kPackedPart);
  const int64_t left = taller ? std::min(outputs, kPackedPart) : outputs;
  return PackedSize(kLinearChunkRows, right) + kLinearChunkRows * RoundUp(left, kLeftGroup) +
         PackedSize(outputs, inputs);
}

// dweight[out_begin..out_end)[in_begin..in_end) and, where in_begin is 0,
// dbias[out_begin..out_end).
void BackwardWeightBlockT(const internal::GradientBlock& block) {
  const View<const float> x = block.x.view<float>();
  const View<const float> dy = block.dy.view<float>();
  const View<float> dweight = block.dweight.view<float>();
  const int64_t outputs = block.out_end - block.out_begin;
  const int64_t inputs = block.in_end - block.in_begin;
  const bool taller = outputs >= inputs;
  const int64_t out_part = taller ? kPackedPart : outputs, in_part = taller ? inputs : kPackedPart;
  float* sums = block.workspace;
  float* right = sums + PackedSize(outputs, inputs);
  float* left = right + PackedSize(kLinearChunkRows, std::min(in_part, inputs));
  for (int64_t t = 0; t < x.size(0); t += kLinearChunkRows) {
    const int64_t depth = std::min(kLinearChunkRows, x.size(0) - t);
    const float* dy_block = dy.row(t) + block.out_begin;
    const float* x_block = x.row(t) + block.in_begin;
    LinesAhead ahead;
    const int64_t next = t + depth, next_rows = std::min(kLinearChunkRows, x.size(0) - next);
    if (next_rows > 0) {
      ahead.Add(dy.row(next) + block.out_begin, dy.strides[0], next_rows, outputs);
      ahead.Add(x.row(next) + block.in_begin, x.strides[0], next_rows, inputs);
    }
    for (int64_t o = 0; o < outputs; o += out_part) {
      const int64_t some = std::min(out_part, outputs - o);
      PackLeftTransposed(dy_block + o, dy.strides[0], depth, some, left);
      for (int64_t i0 = 0; i0 < inputs; i0 += in_part) {
        const int64_t i1 = std::min(i0 + in_part, inputs);
        if (o == 0) PackPanels(x_block + i0, x.strides[0], depth, i1 - i0, right);
        for (int64_t i = i0; i < i1; i += PanelColumns()) {
          const int64_t width = PanelWidth(inputs, i);
          MultiplyGradientPanel({left, some, right + (i - i0) * depth, width, depth, t > 0,
                                 sums + i * outputs + o * width, &ahead});
        }
      }
    }
    if (block.dbias && block.in_begin == 0) {
      AddBiasGradient(block, t, depth);
    }
  }
  AddPanels({sums, outputs, inputs, outputs, PanelColumns(), LanesOf(ProductTag())},
            dweight.row(block.out_begin) + block.in_begin, dweight.strides[0]);
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(PanelColumnsT);
HWY_EXPORT(PackedSizeT);
HWY_EXPORT(PackForwardPanelT);
HWY_EXPORT(PackBackwardPanelT);
HWY_EXPORT(ForwardRowsT);
HWY_EXPORT(BackwardInputRowsT);
HWY_EXPORT(BackwardWeightBlockT);
HWY_EXPORT(GradientWorkspaceT);

namespace internal {

const LinearKernels& F32LinearKernels() {
  SelectedIsa();  // before the first dispatch
  static const LinearKernels kernels = {
      .packed = DType::kF32,
      .panel_columns = [] { return HWY_DYNAMIC_DISPATCH(PanelColumnsT)(); },
      .packed_size =
          [](int64_t depth, int64_t columns) {
            return HWY_DYNAMIC_DISPATCH(PackedSizeT)(depth, columns);
          },
      .pack_forward_panel =
          [](const Tensor& weight, int64_t first, Tensor& packed) {
            HWY_DYNAMIC_DISPATCH(PackForwardPanelT)(weight, first, packed.data<float>());
          },
      .pack_backward_panel =
          [](const Tensor& weight, int64_t first, Tensor& packed) {
            HWY_DYNAMIC_DISPATCH(PackBackwardPanelT)(weight, first, packed.data<float>());
          },
      .rows_workspace = [](int64_t) { return int64_t{0}; },
      .forward_rows =
          [](const ForwardRows& work) {
            HWY_DYNAMIC_DISPATCH(ForwardRowsT)
            (work);
          },
      .backward_input_rows =
          [](const BackwardInputRows& work) {
            HWY_DYNAMIC_DISPATCH(BackwardInputRowsT)
            (work);
          },
      .gradient_workspace =
          [](int64_t outputs, int64_t inputs) {
            return HWY_DYNAMIC_DISPATCH(GradientWorkspaceT)(outputs, inputs);
          },
      .backward_weight_block =
          [](const GradientBlock& block) {
            HWY_DYNAMIC_DISPATCH(BackwardWeightBlockT)
            (block);
          },
  };
  return kernels;
}

}  // namespace internal
}  // namespace headlight
#endif
