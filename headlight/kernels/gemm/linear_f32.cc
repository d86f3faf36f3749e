#include <algorithm>
#include <numeric>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/gemm/linear_internal.h"

#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/gemm/linear_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what they are compiled for.
#include "headlight/kernels/activation/activation-inl.h"
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

// A part of a matrix.
struct MatrixPart {
  int64_t row, column, rows, columns;
};

template <class T>
HWY_INLINE void AddPart(const View<T>& matrix, const MatrixPart& part, LinesAhead& ahead) {
  if (!matrix.data) return;
  ahead.Add(matrix.row(part.row) + part.column, matrix.strides[0], part.rows, part.columns);
}

// What happens to a finished piece of a row: columns [column, column + count) of `row`.
struct ForwardFinish {
  Epilogue epilogue;
  View<float> pre_activation;  // data may be null
  View<const float> residual;  // data may be null
  View<float> y;

  HWY_INLINE void operator()(int64_t row, int64_t column, int64_t count, const float* sums) const {
    const ProductTag d;
    const int64_t lanes = LanesOf(d);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const int64_t at = column + i;
      auto v = hn::LoadU(d, sums + i);
      if (pre_activation.data) hn::StoreU(v, d, pre_activation.row(row) + at);
      v = Activate(d, v);
      if (residual.data) v = hn::Add(v, hn::LoadU(d, residual.row(row) + at));
      hn::StoreU(v, d, y.row(row) + at);
    }
    if (i == count) return;
    const int64_t at = column + i, left = count - i;
    auto v = LoadPart(d, sums + i, left);
    if (pre_activation.data) StorePart(d, v, pre_activation.row(row) + at, left);
    v = Activate(d, v);
    if (residual.data) v = hn::Add(v, LoadPart(d, residual.row(row) + at, left));
    StorePart(d, v, y.row(row) + at, left);
  }

  // What finishing will touch.
  HWY_INLINE void AddAhead(const MatrixPart& part, LinesAhead& ahead) const {
    AddPart(residual, part, ahead);
    AddPart(pre_activation, part, ahead);
    AddPart(y, part, ahead);
  }

 private:
  HWY_INLINE ProductVector Activate(ProductTag d, ProductVector v) const {
    if (epilogue == Epilogue::kRelu) return Relu(d, v);
    if (epilogue == Epilogue::kGelu) return Gelu(d, v);
    return v;
  }
};

struct BackwardFinish {
  View<const float> relu_output;  // data may be null
  View<const float> gelu_input;   // data may be null
  bool add;
  View<float> dx;

  HWY_INLINE void operator()(int64_t row, int64_t column, int64_t count, const float* sums) const {
    const ProductTag d;
    const int64_t lanes = LanesOf(d);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const int64_t at = column + i;
      auto v = hn::LoadU(d, sums + i);
      if (relu_output.data) v = ReluGradient(d, hn::LoadU(d, relu_output.row(row) + at), v);
      if (gelu_input.data) {
        v = hn::Mul(v, GeluDerivative(d, hn::LoadU(d, gelu_input.row(row) + at)));
      }
      if (add) v = hn::Add(hn::LoadU(d, dx.row(row) + at), v);
      hn::StoreU(v, d, dx.row(row) + at);
    }
    if (i == count) return;
    const int64_t at = column + i, left = count - i;
    auto v = LoadPart(d, sums + i, left);
    if (relu_output.data) v = ReluGradient(d, LoadPart(d, relu_output.row(row) + at, left), v);
    if (gelu_input.data) {
      v = hn::Mul(v, GeluDerivative(d, LoadPart(d, gelu_input.row(row) + at, left)));
    }
    if (add) v = hn::Add(LoadPart(d, dx.row(row) + at, left), v);
    StorePart(d, v, dx.row(row) + at, left);
  }

  // What finishing will touch.
  HWY_INLINE void AddAhead(const MatrixPart& part, LinesAhead& ahead) const {
    AddPart(relu_output, part, ahead);
    AddPart(gelu_input, part, ahead);
    AddPart(dx, part, ahead);
  }
};

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

void ForwardRowsT(const Tensor& x, const Tensor& packed, const Tensor* bias,
                  const LinearForwardOptions& options, Tensor& y, int64_t begin, int64_t end) {
  ForwardFinish finish = {};
  finish.epilogue = options.epilogue;
  if (options.pre_activation) finish.pre_activation = options.pre_activation->view<float>();
  if (options.residual) finish.residual = options.residual->view<float>();
  finish.y = y.view<float>();
  RowsWork work = {x.view<float>(),
                   packed.data<float>(),
                   y.size(1),
                   bias ? bias->data<float>() : nullptr,
                   options.epilogue == Epilogue::kRelu,
                   {}};
  const bool plain =
      options.epilogue != Epilogue::kGelu && !options.pre_activation && !options.residual;
  if (plain) work.direct = finish.y;
  MultiplyRows(work, begin, end, finish);
}

void BackwardInputRowsT(const Tensor& dy, const Tensor& packed,
                        const LinearBackwardInputOptions& options, Tensor& dx, int64_t begin,
                        int64_t end) {
  BackwardFinish finish = {};
  if (options.relu_output) finish.relu_output = options.relu_output->view<float>();
  if (options.gelu_input) finish.gelu_input = options.gelu_input->view<float>();
  finish.add = options.update == Update::kAdd;
  finish.dx = dx.view<float>();
  RowsWork work = {dy.view<float>(), packed.data<float>(), dx.size(1), nullptr, false, {}};
  if (!options.relu_output && !options.gelu_input && !finish.add) work.direct = finish.dx;
  MultiplyRows(work, begin, end, finish);
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

// sums[n] += sum over rows of from[row][n]: from zero for these rows, then added.
HWY_INLINE void AddColumnSums(const float* from, int64_t row, int64_t rows, int64_t columns,
                              float* sums) {
  const ProductTag d;
  const int64_t lanes = LanesOf(d);
  int64_t n = 0;
  for (; n + 4 * lanes <= columns; n += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t r = 0; r < rows; ++r) {
      const float* p = from + r * row + n;
      s0 = hn::Add(s0, hn::LoadU(d, p));
      s1 = hn::Add(s1, hn::LoadU(d, p + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, p + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, p + 3 * lanes));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, sums + n), s0), d, sums + n);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + n + lanes), s1), d, sums + n + lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + n + 2 * lanes), s2), d, sums + n + 2 * lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + n + 3 * lanes), s3), d, sums + n + 3 * lanes);
  }
  for (; n < columns; ++n) {
    float sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += from[r * row + n];
    sums[n] += sum;
  }
}

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

// Rows may lie pages apart, where no hardware prefetcher follows: they are asked for before.
inline constexpr int64_t kRowsAhead = 4;

HWY_INLINE void PrefetchRow(const float* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) hwy::Prefetch(from + i);
}

HWY_INLINE void AddTo(const float* from, int64_t count, float* to) {
  const ProductTag d;
  MapArrays(d, to, from, count, to, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// The panels of a block's sums to the rows of the gradient.
HWY_INLINE void AddPanels(const float* sums, int64_t outputs, int64_t inputs, float* to,
                          int64_t row) {
  for (int64_t o = 0; o < outputs; ++o) {
    PrefetchRow(to + std::min(o + kRowsAhead, outputs - 1) * row, inputs);
    for (int64_t i = 0; i < inputs; i += PanelColumns()) {
      const int64_t width = PanelWidth(inputs, i);
      AddTo(sums + i * outputs + o * width, std::min(width, inputs - i), to + o * row + i);
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
      AddColumnSums(dy_block, dy.strides[0], depth, outputs, block.dbias + block.out_begin);
    }
  }
  AddPanels(sums, outputs, inputs, dweight.row(block.out_begin) + block.in_begin,
            dweight.strides[0]);
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
namespace {

// A task has several row blocks of the vector code (each asks for the next one's memory); less than
// one where there are few rows.
constexpr int64_t kRowsPerTask = 384;

// Under this many multiply-adds a task costs less than waking a thread for it.
constexpr int64_t kLeastWork = 250000;

int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t RowGrain(int64_t rows, int64_t in, int64_t out) {
  // As many rows for one thread as for the next, where there is work for all.
  const int64_t rounds = DivideUp(rows, kRowsPerTask * NumThreads());
  const int64_t share = DivideUp(rows, rounds * NumThreads());
  const int64_t least = DivideUp(kLeastWork / (in * out) + 1, 6) * 6;
  return std::clamp<int64_t>(share, std::min(least, kRowsPerTask), kRowsPerTask);
}

void Reserve(int64_t size, Tensor& buffer) {
  if (buffer.empty() || buffer.elements() != size) {
    buffer = Tensor::Uninitialized({size}, DType::kF32, MemoryTag::kWorkspace);
  }
}

// Size of `parts` nearly equal parts of `count`, a multiple of `step`.
int64_t PartSize(int64_t count, int64_t parts, int64_t step) {
  return DivideUp(DivideUp(count, parts), step) * step;
}

// How a weight gradient is cut into blocks; that does not enter the results.
struct GradientParts {
  int64_t out, in;  // sizes

  GradientParts(int64_t rows, int64_t all_out, int64_t all_in) {
    // A block's sums (512 KiB) and what is packed for it lie in L2.
    constexpr int64_t kShort = 256, kLong = 512, kLeast = 48;
    const int64_t in_parts = DivideUp(all_in, all_out <= kShort ? kLong : kShort);
    in = PartSize(all_in, in_parts, 64);
    int64_t out_parts = DivideUp(all_out, in <= kShort ? kLong : kShort);
    // As many blocks for one thread as for the next, as far as that leaves blocks worth packing
    // for.
    if (rows * all_in * all_out >= kLeastWork) {
      const int64_t threads = NumThreads();
      const int64_t step = threads / std::gcd(threads, in_parts);
      const int64_t even = DivideUp(out_parts, step) * step;
      out_parts = std::max(out_parts, std::min(even, all_out / kLeast));
    }
    out = PartSize(all_out, out_parts, 16);
  }
};

}  // namespace

void PackLinearF32(const Tensor& weight, PackedLinear::Use use, PackedLinear::Layout& layout) {
  SelectedIsa();
  const int64_t out = weight.size(0), in = weight.size(1);
  const int64_t panel = HWY_DYNAMIC_DISPATCH(PanelColumnsT)();
  Reserve(HWY_DYNAMIC_DISPATCH(PackedSizeT)(in, out), layout.forward);
  float* forward = layout.forward.data<float>();
  const int64_t forward_panels = (out + panel - 1) / panel;
  int64_t backward_panels = 0;
  float* backward = nullptr;
  if (use == PackedLinear::Use::kForwardAndBackward) {
    Reserve(HWY_DYNAMIC_DISPATCH(PackedSizeT)(out, in), layout.backward);
    backward = layout.backward.data<float>();
    backward_panels = (in + panel - 1) / panel;
  } else {
    layout.backward = Tensor();
  }
  ParallelFor(forward_panels + backward_panels, [&](int64_t task, int) {
    if (task < forward_panels) {
      HWY_DYNAMIC_DISPATCH(PackForwardPanelT)(weight, task * panel, forward);
    } else {
      HWY_DYNAMIC_DISPATCH(PackBackwardPanelT)(weight, (task - forward_panels) * panel, backward);
    }
  });
}

void LinearForwardF32(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                      const LinearForwardOptions& options, Tensor& y) {
  const Tensor& packed = weight.layout()->forward;
  ParallelForRange(x.size(0), RowGrain(x.size(0), x.size(1), y.size(1)),
                   [&](int64_t begin, int64_t end, int) {
                     HWY_DYNAMIC_DISPATCH(ForwardRowsT)(x, packed, bias, options, y, begin, end);
                   });
}

void LinearBackwardInputF32(const Tensor& dy, const PackedLinear& weight,
                            const LinearBackwardInputOptions& options, Tensor& dx) {
  const Tensor& packed = weight.layout()->backward;
  ParallelForRange(dy.size(0), RowGrain(dy.size(0), dx.size(1), dy.size(1)),
                   [&](int64_t begin, int64_t end, int) {
                     HWY_DYNAMIC_DISPATCH(BackwardInputRowsT)(dy, packed, options, dx, begin, end);
                   });
}

// Blocks of the gradient, so that threads own disjoint outputs.
void LinearBackwardWeightF32(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias) {
  SelectedIsa();
  const int64_t out = dy.size(1), in = x.size(1);
  const GradientParts parts(x.size(0), out, in);
  const int64_t out_part = parts.out, in_part = parts.in;
  const int64_t out_parts = DivideUp(out, out_part), in_parts = DivideUp(in, in_part);
  const int64_t size = HWY_DYNAMIC_DISPATCH(GradientWorkspaceT)(out_part, in_part);
  Tensor workspace =
      Tensor::Uninitialized({NumThreads(), size}, DType::kF32, MemoryTag::kWorkspace);
  float* bias = dbias ? dbias->data<float>() : nullptr;
  ParallelFor(out_parts * in_parts, [&](int64_t task, int worker) {
    const int64_t o = task / in_parts * out_part, i = task % in_parts * in_part;
    HWY_DYNAMIC_DISPATCH(BackwardWeightBlockT)
    ({x, dy, dweight, bias, o, std::min(out, o + out_part), i, std::min(in, i + in_part),
      workspace.data<float>() + worker * size});
  });
}

}  // namespace internal
}  // namespace headlight
#endif
