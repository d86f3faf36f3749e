// The plain loops of layer_norm.h, for f32 and f64 alike.
#pragma once

#include "headlight/kernels/norm/layer_norm.h"

namespace headlight::reference {

void LayerNormForward(const LayerNormInput& input, const LayerNormOutput& output);
void LayerNormBackward(const LayerNormBackwardInput& input, const LayerNormGradient& gradient);

}  // namespace headlight::reference
