// Initial values of parameters.
//
// A parameter draws from the random stream of its own name, so its initial value depends on the
// seed, the name and the shape alone: adding a layer or another parameter changes no other value.
// Values are drawn in double and then rounded: an f32 and an f64 model of one seed start equal up
// to rounding.
#pragma once

#include <cstdint>
#include <string_view>

#include "headlight/nn/parameter.h"

namespace headlight {

// FNV-1a of the name, 64 bits.
uint64_t StreamOfName(std::string_view name);

// Glorot and Bengio 2010, equation 16, as torch.nn.init.xavier_uniform_ with gain 1: uniform in
// +-sqrt(6 / (fan_in + fan_out)) for a weight [fan_out, fan_in].
void InitXavierUniform(Parameter& parameter, uint64_t seed);
// Normal with mean 0.
void InitNormal(Parameter& parameter, double standard_deviation, uint64_t seed);
void InitConstant(Parameter& parameter, double value);

}  // namespace headlight
