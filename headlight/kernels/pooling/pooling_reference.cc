#include "headlight/kernels/pooling/pooling_reference.h"

#include <cmath>
#include <limits>
#include <vector>

namespace headlight::reference {
namespace {

template <typename T>
T Mean(const View<const T>& x, int64_t begin, int64_t end, int64_t i) {
  double sum = 0;
  for (int64_t t = begin; t < end; ++t) sum += static_cast<double>(x.row(t)[i]);
  return static_cast<T>(sum / static_cast<double>(end - begin));
}

template <typename T>
int64_t Largest(const View<const T>& x, int64_t begin, int64_t end, int64_t i) {
  int64_t best = begin;
  for (int64_t t = begin; t < end; ++t) {
    if (std::isnan(x.row(best)[i])) break;
    if (std::isnan(x.row(t)[i]) || x.row(t)[i] > x.row(best)[i]) best = t;
  }
  return best;
}

template <typename T>
double Dot(const T* a, const T* b, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// With g[t] = dy . x[t] and score[t] = query . x[t]:
//   dscore[t] = a[t] (g[t] - sum over u of a[u] g[u]),
//   dx[t] = a[t] dy + dscore[t] query,  dquery += sum over t of dscore[t] x[t].
template <typename T>
void BackwardSequence(const AttentionPoolingInput& input, const T* dy, int64_t begin, int64_t end,
                      const AttentionPoolingGradient& gradient) {
  const int64_t features = input.x.size(1);
  const T* weights = input.weights.data<T>();
  const T* query = input.query.data<T>();
  T* dquery = gradient.dquery.data<T>();
  double mean = 0;
  for (int64_t t = begin; t < end; ++t) {
    mean += static_cast<double>(weights[t]) * Dot(dy, input.x.view<T>().row(t), features);
  }
  for (int64_t t = begin; t < end; ++t) {
    const T* x = input.x.view<T>().row(t);
    const auto weight = static_cast<double>(weights[t]);
    const double dscore = weight * (Dot(dy, x, features) - mean);
    for (int64_t i = 0; i < features; ++i) {
      gradient.dx.view<T>().row(t)[i] = static_cast<T>(weight * static_cast<double>(dy[i]) +
                                                       dscore * static_cast<double>(query[i]));
      dquery[i] =
          static_cast<T>(static_cast<double>(dquery[i]) + dscore * static_cast<double>(x[i]));
    }
  }
}

}  // namespace

void PoolingForward(PoolingKind kind, const Tensor& x, std::span<const int64_t> offsets, Tensor& y,
                    Tensor* largest) {
  DispatchFloat(x.dtype(), [&]<typename T>() {
    for (int64_t s = 0; s < y.size(0); ++s) {
      const int64_t begin = offsets[static_cast<size_t>(s)];
      const int64_t end = offsets[static_cast<size_t>(s) + 1];
      for (int64_t i = 0; i < x.size(1); ++i) {
        T& value = y.view<T>().row(s)[i];
        const View<const T> from = x.view<T>();
        value = T{0};
        if (kind == PoolingKind::kMax && largest) largest->view<int32_t>().row(s)[i] = -1;
        if (begin == end) continue;
        if (kind == PoolingKind::kMean) value = Mean<T>(from, begin, end, i);
        if (kind == PoolingKind::kFirst) value = from.row(begin)[i];
        if (kind != PoolingKind::kMax) continue;
        const int64_t best = Largest<T>(from, begin, end, i);
        value = from.row(best)[i];
        if (largest) largest->view<int32_t>().row(s)[i] = static_cast<int32_t>(best);
      }
    }
  });
}

void PoolingBackward(PoolingKind kind, const Tensor& dy, std::span<const int64_t> offsets,
                     const Tensor* largest, Tensor& dx) {
  DispatchFloat(dy.dtype(), [&]<typename T>() {
    for (int64_t s = 0; s < dy.size(0); ++s) {
      const int64_t begin = offsets[static_cast<size_t>(s)];
      const int64_t end = offsets[static_cast<size_t>(s) + 1];
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t i = 0; i < dy.size(1); ++i) {
          const auto value = static_cast<double>(dy.view<T>().row(s)[i]);
          double share = t == begin ? 1 : 0;
          if (kind == PoolingKind::kMean) share = 1 / static_cast<double>(end - begin);
          if (kind == PoolingKind::kMax) share = largest->view<int32_t>().row(s)[i] == t ? 1 : 0;
          dx.view<T>().row(t)[i] = share == 0 ? T{0} : static_cast<T>(share * value);
        }
      }
    }
  });
}

void AttentionPoolingForward(const Tensor& x, const Tensor& query, std::span<const int64_t> offsets,
                             Tensor& weights, Tensor& y) {
  DispatchFloat(x.dtype(), [&]<typename T>() {
    for (int64_t s = 0; s < y.size(0); ++s) {
      const int64_t begin = offsets[static_cast<size_t>(s)];
      const int64_t end = offsets[static_cast<size_t>(s) + 1];
      std::vector<double> scores;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t t = begin; t < end; ++t) {
        scores.push_back(Dot(x.view<T>().row(t), query.data<T>(), x.size(1)));
        largest = std::fmax(largest, scores.back());
      }
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (int64_t i = 0; i < x.size(1); ++i) {
        double value = 0;
        for (int64_t t = begin; t < end; ++t) {
          value += scores[static_cast<size_t>(t - begin)] / sum *
                   static_cast<double>(x.view<T>().row(t)[i]);
        }
        y.view<T>().row(s)[i] = static_cast<T>(value);
      }
      for (int64_t t = begin; t < end; ++t) {
        weights.data<T>()[t] = static_cast<T>(scores[static_cast<size_t>(t - begin)] / sum);
      }
    }
  });
}

void AttentionPoolingBackward(const AttentionPoolingInput& input, const Tensor& dy,
                              const AttentionPoolingGradient& gradient) {
  DispatchFloat(dy.dtype(), [&]<typename T>() {
    for (int64_t s = 0; s < dy.size(0); ++s) {
      BackwardSequence<T>(input, dy.view<T>().row(s), input.offsets[static_cast<size_t>(s)],
                          input.offsets[static_cast<size_t>(s) + 1], gradient);
    }
  });
}

}  // namespace headlight::reference
