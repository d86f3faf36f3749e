// What all drawn pictures share. The same input gives the same bytes, for every format.
#pragma once

#include <string>
#include <string_view>

namespace headlight {

enum class PictureFormat { kPng, kSvg, kPdf };

// "png", "svg", "pdf"; kUsage else.
PictureFormat ParsePictureFormat(std::string_view name);

}  // namespace headlight
