// What this library was built from.
#pragma once

#include <string_view>

namespace headlight {

// "0.1.0"
std::string_view Version();

// The commit of the source tree when it was built, "f6538c1d2ab3", with "-modified" where files
// differed from it; "unknown" where it was built outside of git.
std::string_view Commit();

}  // namespace headlight
