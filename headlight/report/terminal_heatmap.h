// An attention heat map of characters.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/report/attention_picture.h"

namespace headlight {

struct TerminalHeatMapOptions {
  bool colour = false;  // 256-colour escape codes; else the shades ' ' ░ ▒ ▓ █
  int columns = 80;     // of the terminal; a wider map is cut into blocks of keys
};

// Throws kUsage as DrawHead does.
std::string TerminalHeatMap(const AttentionPicture& picture, int64_t layer, int64_t head,
                            const TerminalHeatMapOptions& options);

}  // namespace headlight
