#include "headlight/nn/parameter.h"

#include <utility>

namespace headlight {

Parameter MakeParameter(std::string name, const Shape& shape, DType dtype, bool decay) {
  return {std::move(name), Tensor::Zeros(shape, dtype, MemoryTag::kParameters),
          Tensor::Zeros(shape, dtype, MemoryTag::kGradients), decay};
}

Parameter ParameterWindow(std::string name, const Parameter& whole, int64_t begin, int64_t end) {
  return {std::move(name), whole.value.Slice(0, begin, end), whole.gradient.Slice(0, begin, end),
          whole.decay};
}

void ZeroGradients(const std::vector<Parameter*>& parameters) {
  for (Parameter* parameter : parameters) parameter->gradient.FillZero();
}

int64_t ParameterCount(const std::vector<Parameter*>& parameters) {
  int64_t count = 0;
  for (const Parameter* parameter : parameters) count += parameter->value.elements();
  return count;
}

}  // namespace headlight
