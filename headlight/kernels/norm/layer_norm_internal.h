// The f32 vector code behind layer_norm.h. Arguments are checked, f32, with rows, features > 0.
#pragma once

#include "headlight/kernels/norm/layer_norm.h"

namespace headlight::internal {

void LayerNormForwardF32(const LayerNormInput& input, const LayerNormOutput& output);
void LayerNormBackwardF32(const LayerNormBackwardInput& input, const LayerNormGradient& gradient);

}  // namespace headlight::internal
