# cmake -DSOURCE=tree -DVERSION=0.1.0 -DOUTPUT=build_info.cc -P WriteBuildInfo.cmake: written only where it changes.

execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=12 --match=nothing --dirty=-modified
  OUTPUT_VARIABLE commit RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed OR NOT top STREQUAL SOURCE)
  set(commit "unknown")  # no git here, or the tree lies inside another repository
endif()
set(text "// Made by cmake/WriteBuildInfo.cmake.
#include \"headlight/base/build_info.h\"

namespace headlight {

std::string_view Version() { return \"${VERSION}\"; }
std::string_view Commit() { return \"${commit}\"; }

}  // namespace headlight
")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
