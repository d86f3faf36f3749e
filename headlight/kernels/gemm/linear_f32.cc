#include <algorithm>

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

// Rows of A that one task takes: few enough for L2, many enough that a panel of B, once in L1, is
// used often.
inline constexpr int64_t kRowBlock = 96;

// C[row block][panel] = A[row block][depth] B[depth][panel].
struct RowBlock {
  const float* a;
  int64_t a_row;
  int64_t rows;
  int64_t depth;
};

// Writes or adds the product of one panel into c; a_step is 1: rows of A as they lie.
HWY_INLINE void MultiplyPanel(const RowBlock& block, const float* panel, int64_t width, bool add,
                              float* c, int64_t c_row) {
  const int64_t vectors = width / LanesOf(ProductTag());
  for (int64_t k = 0; k < block.depth; k += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, block.depth - k);
    for (int64_t m = 0; m < block.rows; m += kTileRows) {
      MultiplyAnyTile(std::min<int64_t>(kTileRows, block.rows - m), vectors,
                      {block.a + m * block.a_row + k, block.a_row, 1, panel + k * width, depth,
                       c + m * c_row, c_row, add || k > 0});
    }
  }
}

// What happens to a finished piece of a row: columns [column, column + count) of `row`.
struct ForwardFinish {
  const float* bias;  // or null
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
      if (bias) v = hn::Add(v, hn::LoadU(d, bias + at));
      if (pre_activation.data) hn::StoreU(v, d, pre_activation.row(row) + at);
      v = Activate(d, v);
      if (residual.data) v = hn::Add(v, hn::LoadU(d, residual.row(row) + at));
      hn::StoreU(v, d, y.row(row) + at);
    }
    if (i == count) return;
    const int64_t at = column + i, left = count - i;
    auto v = LoadPart(d, sums + i, left);
    if (bias) v = hn::Add(v, LoadPart(d, bias + at, left));
    if (pre_activation.data) StorePart(d, v, pre_activation.row(row) + at, left);
    v = Activate(d, v);
    if (residual.data) v = hn::Add(v, LoadPart(d, residual.row(row) + at, left));
    StorePart(d, v, y.row(row) + at, left);
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
};

// All panels for the rows [begin, end) of A, each piece through `finish`.
template <class Finish>
HWY_INLINE void MultiplyRows(const View<const float>& a, const float* packed, int64_t columns,
                             int64_t begin, int64_t end, const Finish& finish) {
  HWY_ALIGN float sums[kRowBlock * kTileVectors * hn::MaxLanes(ProductTag())];
  const RowBlock block = {a.row(begin), a.strides[0], end - begin, a.size(1)};
  for (int64_t column = 0; column < columns; column += PanelColumns()) {
    const int64_t width = PanelWidth(columns, column);
    MultiplyPanel(block, packed + column * block.depth, width, false, sums, width);
    const int64_t count = std::min(width, columns - column);
    for (int64_t m = 0; m < block.rows; ++m) finish(begin + m, column, count, sums + m * width);
  }
}

void ForwardRowsT(const Tensor& x, const Tensor& packed, const Tensor* bias,
                  const LinearForwardOptions& options, Tensor& y, int64_t begin, int64_t end) {
  ForwardFinish finish = {};
  finish.bias = bias ? bias->data<float>() : nullptr;
  finish.epilogue = options.epilogue;
  if (options.pre_activation) finish.pre_activation = options.pre_activation->view<float>();
  if (options.residual) finish.residual = options.residual->view<float>();
  finish.y = y.view<float>();
  MultiplyRows(x.view<float>(), packed.data<float>(), y.size(1), begin, end, finish);
}

void BackwardInputRowsT(const Tensor& dy, const Tensor& packed,
                        const LinearBackwardInputOptions& options, Tensor& dx, int64_t begin,
                        int64_t end) {
  BackwardFinish finish = {};
  if (options.relu_output) finish.relu_output = options.relu_output->view<float>();
  if (options.gelu_input) finish.gelu_input = options.gelu_input->view<float>();
  finish.add = options.update == Update::kAdd;
  finish.dx = dx.view<float>();
  MultiplyRows(dy.view<float>(), packed.data<float>(), dx.size(1), begin, end, finish);
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

// One tile column of the gradient: dweight[o..][first..first + count) += left^T panel.
HWY_INLINE void AddGradientPanel(const float* left, int64_t outputs, const float* panel,
                                 int64_t width, int64_t count, int64_t depth, float* dweight,
                                 int64_t dweight_row) {
  HWY_ALIGN float sums[kTileRows * kTileVectors * hn::MaxLanes(ProductTag())];
  const int64_t vectors = width / LanesOf(ProductTag());
  for (int64_t o = 0; o < outputs; o += kTileRows) {
    const int64_t height = std::min<int64_t>(kTileRows, outputs - o);
    const float* tile = left + o * depth;
    float* target = dweight + o * dweight_row;
    if (count == width) {
      for (int64_t m = 0; m < height; ++m) {
        for (int64_t n = 0; n < width; n += 16) hwy::Prefetch(target + m * dweight_row + n);
      }
      MultiplyAnyTile(height, vectors, {tile, 1, height, panel, depth, target, dweight_row, true});
      continue;
    }
    // A panel padded with zeros must not be stored whole.
    MultiplyAnyTile(height, vectors, {tile, 1, height, panel, depth, sums, width, false});
    for (int64_t m = 0; m < height; ++m) {
      for (int64_t n = 0; n < count; ++n) target[m * dweight_row + n] += sums[m * width + n];
    }
  }
}

// dweight[o_begin..o_end)[i_begin..i_end) and, where i_begin is 0, dbias[o_begin..o_end).
void BackwardWeightBlockT(const internal::GradientBlock& block) {
  const View<const float> x = block.x.view<float>();
  const View<const float> dy = block.dy.view<float>();
  const View<float> dweight = block.dweight.view<float>();
  const int64_t outputs = block.out_end - block.out_begin;
  const int64_t inputs = block.in_end - block.in_begin;
  float* packed_x = block.workspace;
  float* packed_dy = packed_x + PackedSize(kDepthBlock, inputs);
  static_assert(kDepthBlock == kLinearChunkRows);
  for (int64_t t = 0; t < x.size(0); t += kDepthBlock) {
    const int64_t depth = std::min(kDepthBlock, x.size(0) - t);
    const float* dy_block = dy.row(t) + block.out_begin;
    PackLeftTransposed(dy_block, dy.strides[0], depth, outputs, packed_dy);
    for (int64_t i = 0; i < inputs; i += PanelColumns()) {
      const int64_t width = PanelWidth(inputs, i);
      float* panel = packed_x + i * depth;
      PackPanel(x.row(t) + block.in_begin, x.strides[0], depth, inputs, i, panel);
      AddGradientPanel(packed_dy, outputs, panel, width, std::min(width, inputs - i), depth,
                       dweight.row(block.out_begin) + block.in_begin + i, dweight.strides[0]);
    }
    if (block.dbias && block.in_begin == 0) {
      AddColumnSums(dy_block, dy.strides[0], depth, outputs, block.dbias + block.out_begin);
    }
  }
}

int64_t GradientWorkspaceT(int64_t outputs, int64_t inputs) {
  // The left side's copies may not run over: 6 floats at a time, exactly.
  return PackedSize(kDepthBlock, inputs) + kDepthBlock * outputs;
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

// As kRowBlock of the vector code; a task of less than one block where there are few rows.
constexpr int64_t kRowsPerTask = 96;

int64_t RowGrain(int64_t rows) {
  // Whole tiles of 6, and a task for every thread where there are rows for it.
  const int64_t share = (rows + NumThreads() - 1) / NumThreads();
  return std::clamp<int64_t>((share + 5) / 6 * 6, 6, kRowsPerTask);
}

void Reserve(int64_t size, Tensor& buffer) {
  if (buffer.empty() || buffer.elements() != size) {
    buffer = Tensor::Uninitialized({size}, DType::kF32, MemoryTag::kWorkspace);
  }
}

// Splits `count` into nearly equal parts of at most `most`, multiples of `step`.
int64_t PartSize(int64_t count, int64_t most, int64_t step) {
  const int64_t parts = (count + most - 1) / most;
  return ((count + parts - 1) / parts + step - 1) / step * step;
}

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
  ParallelForRange(x.size(0), RowGrain(x.size(0)), [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(ForwardRowsT)(x, packed, bias, options, y, begin, end);
  });
}

void LinearBackwardInputF32(const Tensor& dy, const PackedLinear& weight,
                            const LinearBackwardInputOptions& options, Tensor& dx) {
  const Tensor& packed = weight.layout()->backward;
  ParallelForRange(dy.size(0), RowGrain(dy.size(0)), [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(BackwardInputRowsT)(dy, packed, options, dx, begin, end);
  });
}

// Blocks of the gradient, so that threads own disjoint outputs; how they are cut does not enter the
// results.
void LinearBackwardWeightF32(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias) {
  SelectedIsa();
  const int64_t out = dy.size(1), in = x.size(1);
  const int64_t in_part = PartSize(in, 256, 64);
  const int64_t in_parts = (in + in_part - 1) / in_part;
  // At least a block for every thread, as far as that leaves blocks worth packing for.
  const int64_t wanted = (NumThreads() + in_parts - 1) / in_parts;
  const int64_t most = std::clamp<int64_t>((out + wanted - 1) / wanted, 48, 132);
  const int64_t out_part = PartSize(out, most, 6);
  const int64_t out_parts = (out + out_part - 1) / out_part;
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
