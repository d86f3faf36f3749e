// Pooling reads each token once or twice: memory sets its speed, so plain loops over rows, a
// sequence a task, do.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "headlight/base/threads.h"
#include "headlight/kernels/pooling/pooling_internal.h"

namespace headlight::internal {
namespace {

struct Range {
  int64_t begin, end;
};

Range SequenceOf(std::span<const int64_t> offsets, int64_t s) {
  return {offsets[static_cast<size_t>(s)], offsets[static_cast<size_t>(s) + 1]};
}

void Mean(const View<const float>& x, Range range, float* y) {
  const int64_t features = x.size(1);
  std::fill_n(y, features, 0.0f);
  for (int64_t t = range.begin; t < range.end; ++t) {
    const float* row = x.row(t);
    for (int64_t i = 0; i < features; ++i) y[i] += row[i];
  }
  const float share = 1 / static_cast<float>(range.end - range.begin);
  for (int64_t i = 0; i < features; ++i) y[i] *= share;
}

void Max(const View<const float>& x, Range range, float* y, int32_t* largest) {
  const int64_t features = x.size(1);
  std::copy_n(x.row(range.begin), features, y);
  if (largest) std::fill_n(largest, features, static_cast<int32_t>(range.begin));
  for (int64_t t = range.begin + 1; t < range.end; ++t) {
    const float* row = x.row(t);
    for (int64_t i = 0; i < features; ++i) {
      // False against a NaN in y, true for the first NaN of x.
      const bool larger = row[i] > y[i] || (std::isnan(row[i]) && !std::isnan(y[i]));
      if (!larger) continue;
      y[i] = row[i];
      if (largest) largest[i] = static_cast<int32_t>(t);
    }
  }
}

float DotProduct(const float* a, const float* b, int64_t size) {
  // Sixteen chains, so that the compiler may keep them in vectors.
  constexpr int64_t kChains = 16;
  float sums[kChains] = {};
  int64_t i = 0;
  for (; i + kChains <= size; i += kChains) {
    for (int64_t j = 0; j < kChains; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (int64_t j = 0; i + j < size; ++j) sums[j] += a[i + j] * b[i + j];
  float total = 0;
  for (float sum : sums) total += sum;
  return total;
}

}  // namespace

void PoolingForwardF32(PoolingKind kind, const Tensor& x, std::span<const int64_t> offsets,
                       Tensor& y, Tensor* largest) {
  const View<const float> from = x.view<float>();
  const View<float> to = y.view<float>();
  const int64_t features = x.size(1);
  ParallelFor(y.size(0), [&](int64_t s, int) {
    const Range range = SequenceOf(offsets, s);
    int32_t* tokens = largest ? largest->view<int32_t>().row(s) : nullptr;
    float* row = to.row(s);
    if (range.begin == range.end) {
      std::fill_n(row, features, 0.0f);
      if (kind == PoolingKind::kMax && tokens) std::fill_n(tokens, features, -1);
    } else if (kind == PoolingKind::kMean) {
      Mean(from, range, row);
    } else if (kind == PoolingKind::kFirst) {
      std::copy_n(from.row(range.begin), features, row);
    } else {
      Max(from, range, row, tokens);
    }
  });
}

void PoolingBackwardF32(PoolingKind kind, const Tensor& dy, std::span<const int64_t> offsets,
                        const Tensor* largest, Tensor& dx) {
  const View<const float> from = dy.view<float>();
  const View<float> to = dx.view<float>();
  const int64_t features = dy.size(1);
  ParallelFor(dy.size(0), [&](int64_t s, int) {
    const Range range = SequenceOf(offsets, s);
    const float* slope = from.row(s);
    const float share = 1 / static_cast<float>(range.end - range.begin);
    for (int64_t t = range.begin; t < range.end; ++t) {
      float* row = to.row(t);
      if (kind == PoolingKind::kMean) {
        for (int64_t i = 0; i < features; ++i) row[i] = slope[i] * share;
      } else {
        std::fill_n(row, features, 0.0f);
      }
    }
    if (range.begin == range.end) return;
    if (kind == PoolingKind::kFirst) std::copy_n(slope, features, to.row(range.begin));
    if (kind != PoolingKind::kMax) return;
    const int32_t* tokens = largest->view<int32_t>().row(s);
    for (int64_t i = 0; i < features; ++i) {
      // A token outside of its sequence cannot come from the forward pass.
      if (tokens[i] >= range.begin && tokens[i] < range.end) to.row(tokens[i])[i] = slope[i];
    }
  });
}

void AttentionPoolingForwardF32(const Tensor& x, const Tensor& query,
                                std::span<const int64_t> offsets, Tensor& weights, Tensor& y) {
  const View<const float> from = x.view<float>();
  const View<float> to = y.view<float>();
  const float* q = query.data<float>();
  float* w = weights.data<float>();
  const int64_t features = x.size(1);
  ParallelFor(y.size(0), [&](int64_t s, int) {
    const Range range = SequenceOf(offsets, s);
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t t = range.begin; t < range.end; ++t) {
      w[t] = DotProduct(from.row(t), q, features);
      largest = std::fmax(largest, w[t]);
    }
    double sum = 0;
    for (int64_t t = range.begin; t < range.end; ++t) {
      w[t] = std::exp(w[t] - largest);
      sum += static_cast<double>(w[t]);
    }
    float* row = to.row(s);
    std::fill_n(row, features, 0.0f);
    for (int64_t t = range.begin; t < range.end; ++t) {
      w[t] = static_cast<float>(static_cast<double>(w[t]) / sum);
      const float* token = from.row(t);
      for (int64_t i = 0; i < features; ++i) row[i] += w[t] * token[i];
    }
  });
}

// With g[t] = dy . x[t]: dscore[t] = a[t] (g[t] - sum over u of a[u] g[u]),
//   dx[t] = a[t] dy + dscore[t] query,  dquery += sum over t of dscore[t] x[t].
void AttentionPoolingBackwardF32(const AttentionPoolingInput& input, const Tensor& dy,
                                 const AttentionPoolingGradient& gradient) {
  const View<const float> x = input.x.view<float>();
  const View<float> dx = gradient.dx.view<float>();
  const float* weights = input.weights.data<float>();
  const float* query = input.query.data<float>();
  const int64_t features = input.x.size(1), batch = dy.size(0);
  // Each sequence sums its part of dquery on its own; the parts are added in order.
  std::vector<float> parts(static_cast<size_t>(batch * features));
  std::vector<float> slopes(static_cast<size_t>(input.x.size(0)));
  ParallelFor(batch, [&](int64_t s, int) {
    const Range range = SequenceOf(input.offsets, s);
    const float* slope = dy.view<float>().row(s);
    float* part = parts.data() + s * features;
    double mean = 0;
    for (int64_t t = range.begin; t < range.end; ++t) {
      float& g = slopes[static_cast<size_t>(t)];
      g = DotProduct(slope, x.row(t), features);
      mean += static_cast<double>(weights[t]) * static_cast<double>(g);
    }
    for (int64_t t = range.begin; t < range.end; ++t) {
      const float* token = x.row(t);
      float* row = dx.row(t);
      const float dscore = weights[t] * (slopes[static_cast<size_t>(t)] - static_cast<float>(mean));
      for (int64_t i = 0; i < features; ++i) {
        row[i] = weights[t] * slope[i] + dscore * query[i];
        part[i] += dscore * token[i];
      }
    }
  });
  float* dquery = gradient.dquery.data<float>();
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < features; ++i) {
      dquery[i] += parts[static_cast<size_t>(s * features + i)];
    }
  }
}

}  // namespace headlight::internal
