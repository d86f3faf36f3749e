// The JSON of an attention picture, for files and for the page. Internal to report/.
#pragma once

#include <string>

#include "headlight/report/attention_picture.h"

namespace headlight {

// Weights with so many significant digits, or all of them for 0. weights[layer][head] is a flat
// array of n * n, as in the struct.
std::string AttentionJson(const AttentionPicture& picture, int digits,
                          const HeadChoice& choice = {});

}  // namespace headlight
