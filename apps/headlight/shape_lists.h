// The lists of bench/shapes, built into the program (cmake/ShapeLists.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace headlight::app {

struct ShapeList {
  std::string_view name;  // "dense", of bench/shapes/dense.txt
  std::string_view text;
};

// By name.
const std::vector<ShapeList>& ShapeLists();

}  // namespace headlight::app
