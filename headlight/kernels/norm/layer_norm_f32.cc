#include <algorithm>
#include <cmath>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/norm/layer_norm_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/norm/layer_norm_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what it is compiled for.
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

using NormTag = hn::ScalableTag<float>;
using NormVector = hn::Vec<NormTag>;

// Calls visit(i, count) for the pieces of a row: count is a whole vector's lanes but for the last.
// Pieces past the end of a row read as zeros, so sums need no special case.
struct Piece {
  int64_t begin;
  int64_t count;
  int64_t lanes;

  HWY_INLINE NormVector Load(NormTag d, const float* row) const {
    return count == lanes ? hn::LoadU(d, row + begin) : LoadPart(d, row + begin, count);
  }
  HWY_INLINE void Store(NormTag d, NormVector value, float* row) const {
    if (count == lanes) {
      hn::StoreU(value, d, row + begin);
    } else {
      StorePart(d, value, row + begin, count);
    }
  }
  // Zero in the lanes past the end.
  HWY_INLINE NormVector Cut(NormTag d, NormVector value) const {
    if (count == lanes) return value;
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), value);
  }
};

// Sums of a row in two vectors by turns (even and odd pieces): the order is the row's own.
class RowSum {
 public:
  HWY_INLINE explicit RowSum(NormTag d) : even_(hn::Zero(d)), odd_(hn::Zero(d)) {}
  HWY_INLINE void Add(NormVector value) {
    const NormVector next = hn::Add(even_, value);
    even_ = odd_;
    odd_ = next;
  }
  HWY_INLINE void AddProduct(NormVector a, NormVector b) {
    const NormVector next = hn::MulAdd(a, b, even_);
    even_ = odd_;
    odd_ = next;
  }
  HWY_INLINE float Total(NormTag d) const {
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(even_, odd_)));
  }

 private:
  NormVector even_;
  NormVector odd_;
};

HWY_INLINE void ForwardRow(const LayerNormInput& input, const LayerNormOutput& output, int64_t row,
                           float* s) {
  const NormTag d;
  const int64_t lanes = LanesOf(d), features = input.x.size(1);
  const float* x = input.x.view<float>().row(row);
  const float* residual = input.residual ? input.residual->view<float>().row(row) : nullptr;
  RowSum total(d);
  for (int64_t i = 0; i < features; i += lanes) {
    const Piece piece = {i, std::min(lanes, features - i), lanes};
    NormVector value = piece.Load(d, x);
    if (residual) value = hn::Add(value, piece.Load(d, residual));
    hn::StoreU(value, d, s + i);
    if (output.sum) piece.Store(d, value, output.sum->view<float>().row(row));
    total.Add(value);
  }
  const float mean = total.Total(d) / static_cast<float>(features);
  const NormVector vmean = hn::Set(d, mean);
  RowSum squares(d);
  for (int64_t i = 0; i < features; i += lanes) {
    const Piece piece = {i, std::min(lanes, features - i), lanes};
    const NormVector away = piece.Cut(d, hn::Sub(hn::LoadU(d, s + i), vmean));
    squares.AddProduct(away, away);
  }
  const double variance = static_cast<double>(squares.Total(d)) / static_cast<double>(features);
  const auto inverse = static_cast<float>(1 / std::sqrt(variance + input.epsilon));
  if (output.mean) output.mean->data<float>()[row] = mean;
  if (output.inverse_deviation) output.inverse_deviation->data<float>()[row] = inverse;
  const NormVector vinverse = hn::Set(d, inverse);
  const float* gamma = input.gamma.data<float>();
  const float* beta = input.beta.data<float>();
  float* y = output.y.view<float>().row(row);
  for (int64_t i = 0; i < features; i += lanes) {
    const Piece piece = {i, std::min(lanes, features - i), lanes};
    const NormVector n = hn::Mul(hn::Sub(hn::LoadU(d, s + i), vmean), vinverse);
    piece.Store(d, hn::MulAdd(n, piece.Load(d, gamma), piece.Load(d, beta)), y);
  }
}

void LayerNormForwardRowsT(const LayerNormInput& input, const LayerNormOutput& output,
                           int64_t begin, int64_t end, float* scratch) {
  for (int64_t row = begin; row < end; ++row) ForwardRow(input, output, row, scratch);
}

// With n = (s - mean) inverse and g = gamma dy:
//   dx = inverse (g - mean(g) - n mean(g n)) + add,  dgamma += dy n,  dbeta += dy.
HWY_INLINE void BackwardRow(const LayerNormBackwardInput& input, Tensor& dx_tensor, int64_t row,
                            float* dgamma, float* dbeta) {
  const NormTag d;
  const int64_t lanes = LanesOf(d), features = input.s.size(1);
  const float* s = input.s.view<float>().row(row);
  const float* dy = input.dy.view<float>().row(row);
  const float* gamma = input.gamma.data<float>();
  const NormVector mean = hn::Set(d, input.mean.data<float>()[row]);
  const NormVector inverse = hn::Set(d, input.inverse_deviation.data<float>()[row]);
  RowSum sum_g(d), sum_gn(d);
  for (int64_t i = 0; i < features; i += lanes) {
    const Piece piece = {i, std::min(lanes, features - i), lanes};
    const NormVector n = hn::Mul(hn::Sub(piece.Load(d, s), mean), inverse);
    const NormVector slope = piece.Load(d, dy);
    const NormVector g = hn::Mul(slope, piece.Load(d, gamma));
    sum_g.Add(g);
    sum_gn.AddProduct(g, n);  // g is 0 past the end
    hn::StoreU(hn::MulAdd(slope, n, hn::LoadU(d, dgamma + i)), d, dgamma + i);
    hn::StoreU(hn::Add(slope, hn::LoadU(d, dbeta + i)), d, dbeta + i);
  }
  const auto count = static_cast<float>(features);
  const NormVector mean_g = hn::Set(d, sum_g.Total(d) / count);
  const NormVector mean_gn = hn::Set(d, sum_gn.Total(d) / count);
  float* dx = dx_tensor.view<float>().row(row);
  const float* add = input.add ? input.add->view<float>().row(row) : nullptr;
  for (int64_t i = 0; i < features; i += lanes) {
    const Piece piece = {i, std::min(lanes, features - i), lanes};
    const NormVector n = hn::Mul(hn::Sub(piece.Load(d, s), mean), inverse);
    const NormVector g = hn::Mul(piece.Load(d, dy), piece.Load(d, gamma));
    NormVector value = hn::Sub(hn::Sub(g, mean_g), hn::Mul(n, mean_gn));
    value = hn::Mul(value, inverse);
    if (add) value = hn::Add(value, piece.Load(d, add));
    piece.Store(d, value, dx);
  }
}

// partial: [2][stride], the sums of these rows for dgamma and dbeta, from zero.
void LayerNormBackwardRowsT(const LayerNormBackwardInput& input, Tensor& dx, int64_t begin,
                            int64_t end, float* partial, int64_t stride) {
  std::fill_n(partial, 2 * stride, 0.0f);
  for (int64_t row = begin; row < end; ++row) {
    BackwardRow(input, dx, row, partial, partial + stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(LayerNormForwardRowsT);
HWY_EXPORT(LayerNormBackwardRowsT);

namespace internal {
namespace {

constexpr int64_t kForwardGrain = 64;  // rows

// Room for whole vectors of the widest kind.
int64_t PaddedSize(int64_t features) { return (features + 63) / 64 * 64; }

}  // namespace

void LayerNormForwardF32(const LayerNormInput& input, const LayerNormOutput& output) {
  SelectedIsa();
  const int64_t size = PaddedSize(input.x.size(1));
  Tensor scratch = Tensor::Uninitialized({NumThreads(), size}, DType::kF32, MemoryTag::kWorkspace);
  ParallelForRange(input.x.size(0), kForwardGrain, [&](int64_t begin, int64_t end, int worker) {
    HWY_DYNAMIC_DISPATCH(LayerNormForwardRowsT)
    (input, output, begin, end, scratch.data<float>() + worker * size);
  });
}

void LayerNormBackwardF32(const LayerNormBackwardInput& input, const LayerNormGradient& gradient) {
  SelectedIsa();
  const int64_t rows = input.s.size(0), features = input.s.size(1);
  const int64_t stride = PaddedSize(features);
  const int64_t chunks = (rows + kLayerNormChunkRows - 1) / kLayerNormChunkRows;
  Tensor partial = Tensor::Uninitialized({chunks, 2 * stride}, DType::kF32, MemoryTag::kWorkspace);
  ParallelFor(chunks, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kLayerNormChunkRows;
    HWY_DYNAMIC_DISPATCH(LayerNormBackwardRowsT)
    (input, gradient.dx, begin, std::min(rows, begin + kLayerNormChunkRows),
     partial.data<float>() + chunk * 2 * stride, stride);
  });
  float* dgamma = gradient.dgamma.data<float>();
  float* dbeta = gradient.dbeta.data<float>();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const float* from = partial.data<float>() + chunk * 2 * stride;
    for (int64_t i = 0; i < features; ++i) dgamma[i] += from[i];
    for (int64_t i = 0; i < features; ++i) dbeta[i] += from[stride + i];
  }
}

}  // namespace internal
}  // namespace headlight
#endif
