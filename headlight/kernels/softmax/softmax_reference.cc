#include "headlight/kernels/softmax/softmax_reference.h"

#include <cmath>
#include <limits>

namespace headlight::reference {
namespace {

template <typename T>
double RowLogSumExp(const T* x, int64_t columns) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < columns; ++c) {
    const auto value = static_cast<double>(x[c]);
    if (std::isnan(value) || value == std::numeric_limits<double>::infinity()) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    largest = std::fmax(largest, value);
  }
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(x[c]) - largest);
  return largest + std::log(sum);
}

}  // namespace

void Softmax(const Tensor& x, Tensor& y) {
  DispatchFloat(x.dtype(), [&]<typename T>() {
    for (int64_t r = 0; r < x.size(0); ++r) {
      const T* from = x.view<T>().row(r);
      T* to = y.view<T>().row(r);
      const double lse = RowLogSumExp(from, x.size(1));
      for (int64_t c = 0; c < x.size(1); ++c) {
        const bool nothing = lse == -std::numeric_limits<double>::infinity();
        to[c] = nothing ? T{0} : static_cast<T>(std::exp(static_cast<double>(from[c]) - lse));
      }
    }
  });
}

void LogSumExp(const Tensor& x, Tensor& lse) {
  DispatchFloat(x.dtype(), [&]<typename T>() {
    for (int64_t r = 0; r < x.size(0); ++r) {
      lse.data<T>()[r] = static_cast<T>(RowLogSumExp(x.view<T>().row(r), x.size(1)));
    }
  });
}

}  // namespace headlight::reference
