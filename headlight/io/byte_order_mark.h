// The mark that some editors put in front of UTF-8.
#pragma once

#include <string_view>

namespace headlight {

// `bytes` behind the mark, if there is one.
inline std::string_view WithoutByteOrderMark(std::string_view bytes) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kMark)) bytes.remove_prefix(kMark.size());
  return bytes;
}

}  // namespace headlight
