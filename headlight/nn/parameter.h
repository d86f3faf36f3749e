// Parameter: a named value with its gradient. The name is the checkpoint's key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/tensor/tensor.h"

namespace headlight {

// Parameter gradients accumulate over backward passes until ZeroGradients; a layer never clears
// them. Value and gradient are contiguous, of one shape and dtype (f32 or f64). They may be windows
// on a larger buffer (the query, key and value weights of a layer lie in one).
struct Parameter {
  std::string name;
  Tensor value;
  Tensor gradient;
  bool decay = true;  // weight decay applies: false for norms and biases
};

// A parameter of zeros with a gradient of zeros, charged to kParameters and kGradients.
Parameter MakeParameter(std::string name, const Shape& shape, DType dtype, bool decay);

// Rows [begin, end) of `whole` under their own name.
Parameter ParameterWindow(std::string name, const Parameter& whole, int64_t begin, int64_t end);

void ZeroGradients(const std::vector<Parameter*>& parameters);

// Number of values in all.
int64_t ParameterCount(const std::vector<Parameter*>& parameters);

}  // namespace headlight
