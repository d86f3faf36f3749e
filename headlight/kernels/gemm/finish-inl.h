// Where sums of products go: a dense layer's outputs through its epilogue, a gradient through the
// activation's derivative, a block of a weight gradient to its rows. Compiled once per instruction
// set, for products of either precision.
#if defined(HEADLIGHT_KERNELS_GEMM_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_GEMM_FINISH_INL_H_
#undef HEADLIGHT_KERNELS_GEMM_FINISH_INL_H_
#else
#define HEADLIGHT_KERNELS_GEMM_FINISH_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "headlight/kernels/activation/activation-inl.h"
#include "headlight/kernels/gemm/linear_internal.h"
#include "headlight/kernels/gemm/product-inl.h"
#include "headlight/kernels/vector-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

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
  ForwardFinish(const LinearForwardOptions& options, Tensor& to)
      : epilogue(options.epilogue), y(to.view<float>()) {
    if (options.pre_activation) pre_activation = options.pre_activation->view<float>();
    if (options.residual) residual = options.residual->view<float>();
  }

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
  BackwardFinish(const LinearBackwardInputOptions& options, Tensor& to)
      : add(options.update == Update::kAdd), dx(to.view<float>()) {
    if (options.relu_output) relu_output = options.relu_output->view<float>();
    if (options.gelu_input) gelu_input = options.gelu_input->view<float>();
  }

  // Sums may be written to dx as they are.
  bool plain() const { return !relu_output.data && !gelu_input.data && !add; }

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

// The block's part of dbias: rows [begin, begin + rows) of dy.
HWY_INLINE void AddBiasGradient(const internal::GradientBlock& block, int64_t begin, int64_t rows) {
  const View<const float> dy = block.dy_as_given.view<float>();
  AddColumnSums(dy.row(begin) + block.out_begin, dy.strides[0], rows,
                block.out_end - block.out_begin, block.dbias + block.out_begin);
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

// A block's sums in panels, [inputs / columns][panel_rows][width]: width is `columns`, and in the
// last panel as many multiples of `unit` as it needs.
struct GradientSums {
  const float* data;
  int64_t outputs, inputs;
  int64_t panel_rows;  // at least outputs
  int64_t columns, unit;
};

HWY_INLINE void AddPanels(const GradientSums& sums, float* to, int64_t row) {
  for (int64_t o = 0; o < sums.outputs; ++o) {
    PrefetchRow(to + std::min(o + kRowsAhead, sums.outputs - 1) * row, sums.inputs);
    for (int64_t i = 0; i < sums.inputs; i += sums.columns) {
      const int64_t count = std::min(sums.columns, sums.inputs - i);
      AddTo(sums.data + i * sums.panel_rows + o * RoundUp(count, sums.unit), count,
            to + o * row + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_GEMM_FINISH_INL_H_
