// Classes of tokens that head statistics speak of.
#pragma once

#include <string_view>

namespace headlight {

// Every character is punctuation (Unicode general category P) or a symbol (S).
bool IsPunctuationToken(std::string_view token);

}  // namespace headlight
