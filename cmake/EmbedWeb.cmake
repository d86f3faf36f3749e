# cmake -DSCRIPT=page.js -DSTYLE=page.css -DOUTPUT=web_bundle.cc -P EmbedWeb.cmake: files as arrays of bytes.

include(${CMAKE_CURRENT_LIST_DIR}/EmbedBytes.cmake)

bytes_of(${SCRIPT} kScript)
bytes_of(${STYLE} kStyle)
file(WRITE ${OUTPUT} "// Made by cmake/EmbedWeb.cmake from web/.
#include \"headlight/report/web_bundle.h\"

namespace headlight {
namespace {
${source}
}  // namespace

std::string_view WebScript() { return {reinterpret_cast<const char*>(kScript), sizeof(kScript)}; }
std::string_view WebStyle() { return {reinterpret_cast<const char*>(kStyle), sizeof(kStyle)}; }

}  // namespace headlight
")
