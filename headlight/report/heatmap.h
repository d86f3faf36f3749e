// Attention heat maps: query tokens down, key tokens across, darker is more.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/report/attention_picture.h"
#include "headlight/report/picture.h"

namespace headlight {

// One head, at full size. Layers and heads count from 0 here. Throws kUsage when there is no such
// head, or no token.
std::string DrawHead(const AttentionPicture& picture, int64_t layer, int64_t head,
                     PictureFormat format);

// A grid of heads, layers down and heads across, one colour scale; layer -1: all layers; head -1:
// all heads.
std::string DrawHeadGrid(const AttentionPicture& picture, int64_t layer, int64_t head,
                         PictureFormat format);

}  // namespace headlight
