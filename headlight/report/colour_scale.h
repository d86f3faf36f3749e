// The one scale of all heat maps: light is 0, dark is the largest weight of the whole picture.
// Internal to report/.
#pragma once

#include "headlight/report/attention_picture.h"
#include "headlight/report/canvas.h"

namespace headlight {

// A blue of even steps in lightness; share in [0, 1], NaN is a warning colour.
Colour HeatColour(double share);

// The largest weight of all heads, rounded up to a number whose quarters are short.
double LargestWeight(const AttentionPicture& picture);

}  // namespace headlight
