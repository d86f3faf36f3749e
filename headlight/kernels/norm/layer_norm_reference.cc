#include "headlight/kernels/norm/layer_norm_reference.h"

#include <cmath>
#include <vector>

namespace headlight::reference {
namespace {

template <typename T>
void ForwardRow(const LayerNormInput& input, const LayerNormOutput& output, int64_t row) {
  const auto features = static_cast<size_t>(input.x.size(1));
  const T* x = input.x.view<T>().row(row);
  std::vector<double> s(features);
  double total = 0;
  for (size_t i = 0; i < features; ++i) {
    s[i] = static_cast<double>(x[i]);
    if (input.residual) {
      // Rounded as the stored sum is, so that forward and backward see one value.
      s[i] = static_cast<T>(s[i] + static_cast<double>(input.residual->view<T>().row(row)[i]));
    }
    total += s[i];
  }
  const double mean = total / static_cast<double>(features);
  double squares = 0;
  for (double value : s) squares += (value - mean) * (value - mean);
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(features) + input.epsilon);
  if (output.mean) output.mean->data<T>()[row] = static_cast<T>(mean);
  if (output.inverse_deviation) output.inverse_deviation->data<T>()[row] = static_cast<T>(inverse);
  for (size_t i = 0; i < features; ++i) {
    if (output.sum) output.sum->view<T>().row(row)[i] = static_cast<T>(s[i]);
    output.y.view<T>().row(row)[i] =
        static_cast<T>((s[i] - mean) * inverse * static_cast<double>(input.gamma.data<T>()[i]) +
                       static_cast<double>(input.beta.data<T>()[i]));
  }
}

// With n = (s - mean) inverse and g = gamma dy:
//   ds = inverse (g - mean(g) - n mean(g n)),  dgamma += dy n,  dbeta += dy.
template <typename T>
void BackwardRow(const LayerNormBackwardInput& input, Tensor& dx_tensor, int64_t row,
                 std::vector<double>& dgamma, std::vector<double>& dbeta) {
  const auto features = static_cast<size_t>(input.s.size(1));
  const T* s = input.s.view<T>().row(row);
  const T* dy = input.dy.view<T>().row(row);
  const T* gamma = input.gamma.data<T>();
  const auto mean = static_cast<double>(input.mean.data<T>()[row]);
  const auto inverse = static_cast<double>(input.inverse_deviation.data<T>()[row]);
  double sum_g = 0, sum_gn = 0;
  for (size_t i = 0; i < features; ++i) {
    const double n = (static_cast<double>(s[i]) - mean) * inverse;
    const double g = static_cast<double>(gamma[i]) * static_cast<double>(dy[i]);
    sum_g += g;
    sum_gn += g * n;
    dgamma[i] += static_cast<double>(dy[i]) * n;
    dbeta[i] += static_cast<double>(dy[i]);
  }
  const double mean_g = sum_g / static_cast<double>(features);
  const double mean_gn = sum_gn / static_cast<double>(features);
  for (size_t i = 0; i < features; ++i) {
    const double n = (static_cast<double>(s[i]) - mean) * inverse;
    const double g = static_cast<double>(gamma[i]) * static_cast<double>(dy[i]);
    double value = inverse * (g - mean_g - n * mean_gn);
    if (input.add) value += static_cast<double>(input.add->view<T>().row(row)[i]);
    dx_tensor.view<T>().row(row)[i] = static_cast<T>(value);
  }
}

template <typename T>
void AddTo(Tensor& target, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T& value = target.data<T>()[i];
    value = static_cast<T>(static_cast<double>(value) + values[i]);
  }
}

}  // namespace

void LayerNormForward(const LayerNormInput& input, const LayerNormOutput& output) {
  DispatchFloat(input.x.dtype(), [&]<typename T>() {
    for (int64_t row = 0; row < input.x.size(0); ++row) ForwardRow<T>(input, output, row);
  });
}

void LayerNormBackward(const LayerNormBackwardInput& input, const LayerNormGradient& gradient) {
  DispatchFloat(input.s.dtype(), [&]<typename T>() {
    std::vector<double> dgamma(static_cast<size_t>(input.s.size(1)));
    std::vector<double> dbeta(dgamma.size());
    for (int64_t row = 0; row < input.s.size(0); ++row) {
      BackwardRow<T>(input, gradient.dx, row, dgamma, dbeta);
    }
    AddTo<T>(gradient.dgamma, dgamma);
    AddTo<T>(gradient.dbeta, dbeta);
  });
}

}  // namespace headlight::reference
