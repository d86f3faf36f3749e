# cmake -DFILES=a.txt,b.txt -DOUTPUT=shape_lists.cc -P EmbedShapes.cmake: lists of shapes as arrays of bytes.

include(${CMAKE_CURRENT_LIST_DIR}/EmbedBytes.cmake)
string(REPLACE "," ";" files "${FILES}")
foreach(file IN LISTS files)
  cmake_path(GET file STEM name)
  bytes_of(${file} k_${name})
  string(APPEND rows "      {\"${name}\", {reinterpret_cast<const char*>(k_${name}), sizeof(k_${name})}},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/EmbedShapes.cmake from bench/shapes/.
#include \"apps/headlight/shape_lists.h\"

namespace headlight::app {
namespace {
${source}
}  // namespace

const std::vector<ShapeList>& ShapeLists() {
  static const std::vector<ShapeList> lists = {
${rows}  };
  return lists;
}

}  // namespace headlight::app
")
