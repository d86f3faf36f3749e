// The script and the style of the pages, embedded by cmake/WebBundle.cmake. Internal to report/.
#pragma once

#include <string_view>

namespace headlight {

std::string_view WebScript();
std::string_view WebStyle();

}  // namespace headlight
