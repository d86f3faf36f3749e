// UTF-8, normalisation and scripts. Everything here is independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

// One decoded code point. A broken sequence decodes to U+FFFD with valid = false and the length of
// its maximal broken part (Unicode Standard, section 3.9, "Best practices for U+FFFD").
struct CodePoint {
  char32_t value = 0;
  int length = 0;  // bytes taken, at least 1
  bool valid = true;
};
// Decodes the code point at `offset`, which must be < text.size().
CodePoint DecodeUtf8(std::string_view text, size_t offset);
// Appends `value` in UTF-8; a surrogate or a value above U+10FFFF becomes U+FFFD.
void AppendUtf8(char32_t value, std::string* out);

struct Utf8Check {
  int64_t broken = 0;                  // broken sequences
  std::vector<int64_t> broken_places;  // byte offsets of the first of them
  int64_t replacement_characters = 0;  // U+FFFD that the text itself holds
};
// Counts broken sequences; remembers the first `max_places` byte offsets.
Utf8Check CheckUtf8(std::string_view text, size_t max_places = 8);
bool IsValidUtf8(std::string_view text);
// Each broken sequence becomes one U+FFFD. A valid text comes back as it is.
std::string RepairUtf8(std::string_view text);

// Normalisation form C. `text` may be any bytes: broken sequences become U+FFFD.
std::string Nfc(std::string_view text);
// Lower case by the root locale's rules (full mappings, final sigma).
std::string ToLower(std::string_view text);

// Unicode White_Space.
bool IsWhitespace(char32_t value);
// True when the text holds nothing but white space.
bool IsBlank(std::string_view text);
// Without white space at both ends.
std::string_view Trim(std::string_view text);

// What makes two texts "the same text" (duplicates, leaks between train and valid): NFC, white
// space trimmed and each run of it made one space.
std::string TextKey(std::string_view text);

struct ScriptCount {
  std::string script;  // "Latin", "Han", ...; Common and Inherited are not counted
  int64_t characters = 0;
};
// Adds the characters of `text` per script to `counts`, which stays sorted by script name.
void CountScripts(std::string_view text, std::vector<ScriptCount>* counts);

}  // namespace headlight
