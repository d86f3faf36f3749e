#include "headlight/kernels/gemm/linear_reference.h"

#include <cmath>
#include <numbers>

#include "headlight/base/threads.h"

namespace headlight::reference {
namespace {

double Activate(double value, Epilogue epilogue) {
  if (epilogue == Epilogue::kRelu) return value < 0 ? 0 : value;
  if (epilogue == Epilogue::kGelu) return 0.5 * value * std::erfc(-value / std::numbers::sqrt2);
  return value;
}

double GeluDerivative(double x) {
  const double cumulative = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return cumulative + x * density;
}

template <typename T>
void ForwardRow(const Tensor& x_tensor, const Tensor& weight_tensor, const Tensor* bias,
                const LinearForwardOptions& options, Tensor& y_tensor, int64_t row) {
  const T* x = x_tensor.view<T>().row(row);
  const View<const T> weight = weight_tensor.view<T>();
  T* y = y_tensor.view<T>().row(row);
  for (int64_t o = 0; o < weight.size(0); ++o) {
    double sum = bias ? static_cast<double>(bias->data<T>()[o]) : 0;
    for (int64_t i = 0; i < weight.size(1); ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(weight.row(o)[i]);
    }
    if (options.pre_activation) {
      options.pre_activation->view<T>().row(row)[o] = static_cast<T>(sum);
    }
    double value = Activate(sum, options.epilogue);
    if (options.residual) value += static_cast<double>(options.residual->view<T>().row(row)[o]);
    y[o] = static_cast<T>(value);
  }
}

template <typename T>
void BackwardInputRow(const Tensor& dy_tensor, const Tensor& weight_tensor,
                      const LinearBackwardInputOptions& options, Tensor& dx_tensor, int64_t row) {
  const T* dy = dy_tensor.view<T>().row(row);
  const View<const T> weight = weight_tensor.view<T>();
  T* dx = dx_tensor.view<T>().row(row);
  for (int64_t i = 0; i < weight.size(1); ++i) {
    double sum = 0;
    for (int64_t o = 0; o < weight.size(0); ++o) {
      sum += static_cast<double>(dy[o]) * static_cast<double>(weight.row(o)[i]);
    }
    if (options.relu_output && options.relu_output->view<T>().row(row)[i] <= 0) sum = 0;
    if (options.gelu_input) {
      sum *= GeluDerivative(static_cast<double>(options.gelu_input->view<T>().row(row)[i]));
    }
    if (options.update == Update::kAdd) sum += static_cast<double>(dx[i]);
    dx[i] = static_cast<T>(sum);
  }
}

template <typename T>
void BackwardWeightRow(const Tensor& x_tensor, const Tensor& dy_tensor, Tensor& dweight_tensor,
                       Tensor* dbias, int64_t o) {
  const View<const T> x = x_tensor.view<T>();
  const View<const T> dy = dy_tensor.view<T>();
  T* dweight = dweight_tensor.view<T>().row(o);
  for (int64_t i = 0; i < x.size(1); ++i) {
    double sum = 0;
    for (int64_t row = 0; row < x.size(0); ++row) {
      sum += static_cast<double>(dy.row(row)[o]) * static_cast<double>(x.row(row)[i]);
    }
    dweight[i] = static_cast<T>(static_cast<double>(dweight[i]) + sum);
  }
  if (!dbias) return;
  double sum = 0;
  for (int64_t row = 0; row < x.size(0); ++row) sum += static_cast<double>(dy.row(row)[o]);
  T& bias = dbias->data<T>()[o];
  bias = static_cast<T>(static_cast<double>(bias) + sum);
}

// Runs body(i) for each i in [0, count): in parallel, unless that is not worth it.
template <typename Body>
void ForEach(int64_t count, int64_t work, const Body& body) {
  constexpr int64_t kLeastWork = 100000;  // multiply-adds
  if (work < kLeastWork) {
    for (int64_t i = 0; i < count; ++i) body(i);
  } else {
    ParallelFor(count, [&](int64_t i, int) { body(i); });
  }
}

}  // namespace

void LinearForward(const Tensor& x, const Tensor& weight, const Tensor* bias,
                   const LinearForwardOptions& options, Tensor& y) {
  DispatchFloat(x.dtype(), [&]<typename T>() {
    ForEach(x.size(0), x.size(0) * weight.elements(),
            [&](int64_t row) { ForwardRow<T>(x, weight, bias, options, y, row); });
  });
}

void LinearBackwardInput(const Tensor& dy, const Tensor& weight,
                         const LinearBackwardInputOptions& options, Tensor& dx) {
  DispatchFloat(dy.dtype(), [&]<typename T>() {
    ForEach(dy.size(0), dy.size(0) * weight.elements(),
            [&](int64_t row) { BackwardInputRow<T>(dy, weight, options, dx, row); });
  });
}

void LinearBackwardWeight(const Tensor& x, const Tensor& dy, Tensor& dweight, Tensor* dbias) {
  DispatchFloat(x.dtype(), [&]<typename T>() {
    ForEach(dy.size(1), x.size(0) * dweight.elements(),
            [&](int64_t o) { BackwardWeightRow<T>(x, dy, dweight, dbias, o); });
  });
}

}  // namespace headlight::reference
