#include "headlight/analysis/word_class.h"

#include <unicode/uchar.h>

#include "headlight/text/unicode.h"

namespace headlight {

bool IsPunctuationToken(std::string_view token) {
  if (token.empty()) return false;
  for (size_t offset = 0; offset < token.size();) {
    const CodePoint point = DecodeUtf8(token, offset);
    const auto value = static_cast<UChar32>(point.value);
    if (!point.valid || (U_GET_GC_MASK(value) & (U_GC_P_MASK | U_GC_S_MASK)) == 0) return false;
    offset += static_cast<size_t>(point.length);
  }
  return true;
}

}  // namespace headlight
