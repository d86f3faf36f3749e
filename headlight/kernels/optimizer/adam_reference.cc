#include "headlight/kernels/optimizer/adam_reference.h"

#include <cmath>

namespace headlight::reference {

void AdamStep(const AdamOptions& options, int64_t step, double gradient_scale,
              const AdamTensors& tensors, AfterStep after) {
  const auto power = static_cast<double>(step);
  const double correction1 = 1 - std::pow(options.beta1, power);
  const double correction2 = 1 - std::pow(options.beta2, power);
  DispatchFloat(tensors.value.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < tensors.value.elements(); ++i) {
      auto value = static_cast<double>(tensors.value.data<T>()[i]);
      double g = gradient_scale * static_cast<double>(tensors.gradient.data<T>()[i]);
      if (options.decay == WeightDecay::kCoupled) {
        g += options.weight_decay * value;
      } else {
        value *= 1 - options.learning_rate * options.weight_decay;
      }
      auto m = static_cast<double>(tensors.first_moment.data<T>()[i]);
      auto v = static_cast<double>(tensors.second_moment.data<T>()[i]);
      m += (1 - options.beta1) * (g - m);
      v = options.beta2 * v + (1 - options.beta2) * g * g;
      value -= options.learning_rate / correction1 * m /
               (std::sqrt(v) / std::sqrt(correction2) + options.epsilon);
      tensors.value.data<T>()[i] = static_cast<T>(value);
      tensors.first_moment.data<T>()[i] = static_cast<T>(m);
      tensors.second_moment.data<T>()[i] = static_cast<T>(v);
      if (after == AfterStep::kClearGradient) tensors.gradient.data<T>()[i] = T{0};
    }
  });
}

double SumOfSquares(const Tensor& tensor) {
  double sum = 0;
  DispatchFloat(tensor.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const auto value = static_cast<double>(tensor.data<T>()[i]);
      sum += value * value;
    }
  });
  return sum;
}

}  // namespace headlight::reference
