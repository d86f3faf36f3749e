#include "headlight/text/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/normalizer2.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <string>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

uint8_t ByteAt(std::string_view text, size_t offset) { return static_cast<uint8_t>(text[offset]); }

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

// What may follow a lead byte (Unicode Standard, table 3-7): only the first continuation byte has a
// range of its own.
struct Lead {
  int continuations = -1;  // -1: not a lead byte
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  uint8_t bits = 0;  // the lead byte's share of the value
};

Lead LeadOf(uint8_t byte) {
  const auto masked = [byte](int mask) { return static_cast<uint8_t>(byte & mask); };
  if (byte < 0xC2) return {};
  if (byte <= 0xDF) return {1, 0x80, 0xBF, masked(0x1F)};
  if (byte == 0xE0) return {2, 0xA0, 0xBF, masked(0x0F)};
  if (byte == 0xED) return {2, 0x80, 0x9F, masked(0x0F)};  // no surrogates
  if (byte <= 0xEF) return {2, 0x80, 0xBF, masked(0x0F)};
  if (byte == 0xF0) return {3, 0x90, 0xBF, masked(0x07)};
  if (byte <= 0xF3) return {3, 0x80, 0xBF, masked(0x07)};
  if (byte == 0xF4) return {3, 0x80, 0x8F, masked(0x07)};
  return {};
}

void CheckIcu(UErrorCode status, const char* operation) {
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::kInternal, "unicode: {} failed in ICU: {}", operation,
                u_errorName(status));
  }
}

icu::StringPiece Piece(std::string_view text) {
  return {text.data(), static_cast<int32_t>(text.size())};
}

// ICU counts in 32 bits.
void CheckSize(std::string_view text) {
  if (text.size() > (size_t{1} << 29)) {
    throw Error(ErrorKind::kInput, "unicode: a text may have at most {} bytes, found {}",
                size_t{1} << 29, text.size());
  }
}

}  // namespace

CodePoint DecodeUtf8(std::string_view text, size_t offset) {
  const uint8_t first = ByteAt(text, offset);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = LeadOf(first);
  if (lead.continuations < 0) return {kReplacement, 1, false};
  char32_t value = lead.bits;
  for (int i = 1; i <= lead.continuations; ++i) {
    const size_t at = offset + static_cast<size_t>(i);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (at >= text.size() || ByteAt(text, at) < low || ByteAt(text, at) > high) {
      return {kReplacement, i, false};
    }
    value = (value << 6) | (ByteAt(text, at) & 0x3Fu);
  }
  return {value, lead.continuations + 1, true};
}

void AppendUtf8(char32_t value, std::string* out) {
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) value = kReplacement;
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

Utf8Check CheckUtf8(std::string_view text, size_t max_places) {
  Utf8Check check;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = DecodeUtf8(text, i);
    if (!point.valid) {
      ++check.broken;
      if (check.broken_places.size() < max_places) {
        check.broken_places.push_back(static_cast<int64_t>(i));
      }
    } else if (point.value == kReplacement) {
      ++check.replacement_characters;
    }
    i += static_cast<size_t>(point.length);
  }
  return check;
}

bool IsValidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = DecodeUtf8(text, i);
    if (!point.valid) return false;
    i += static_cast<size_t>(point.length);
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = DecodeUtf8(text, i);
    const auto length = static_cast<size_t>(point.length);
    if (point.valid) {
      out.append(text.substr(i, length));
    } else {
      AppendUtf8(kReplacement, &out);
    }
    i += length;
  }
  return out;
}

std::string Nfc(std::string_view text) {
  if (IsAscii(text)) return std::string(text);
  CheckSize(text);
  const std::string valid = RepairUtf8(text);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
  CheckIcu(status, "loading NFC");
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  nfc->normalizeUTF8(0, Piece(valid), sink, nullptr, status);
  CheckIcu(status, "NFC");
  return out;
}

std::string ToLower(std::string_view text) {
  std::string out;
  if (IsAscii(text)) {
    out.assign(text);
    for (char& c : out) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
  }
  CheckSize(text);
  const std::string valid = RepairUtf8(text);
  UErrorCode status = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out);
  icu::CaseMap::utf8ToLower("", 0, Piece(valid), sink, nullptr, status);
  CheckIcu(status, "lower case");
  return out;
}

bool IsWhitespace(char32_t value) {
  return (value >= 0x09 && value <= 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 ||
         value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 ||
         value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

bool IsBlank(std::string_view text) { return Trim(text).empty(); }

std::string_view Trim(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = DecodeUtf8(text, i);
    const size_t next = i + static_cast<size_t>(point.length);
    if (!IsWhitespace(point.value)) {
      begin = std::min(begin, i);
      end = next;
    }
    i = next;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

std::string TextKey(std::string_view text) {
  const std::string normal = Nfc(text);
  std::string key;
  key.reserve(normal.size());
  bool space = false;
  for (size_t i = 0; i < normal.size();) {
    const CodePoint point = DecodeUtf8(normal, i);
    const auto length = static_cast<size_t>(point.length);
    if (IsWhitespace(point.value)) {
      space = true;
    } else {
      if (space && !key.empty()) key.push_back(' ');
      space = false;
      key.append(normal, i, length);
    }
    i += length;
  }
  return key;
}

void CountScripts(std::string_view text, std::vector<ScriptCount>* counts) {
  std::vector<std::pair<UScriptCode, int64_t>> found;  // a text has few scripts
  size_t last = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = DecodeUtf8(text, i);
    i += static_cast<size_t>(point.length);
    if (!point.valid) continue;
    UErrorCode status = U_ZERO_ERROR;
    const UScriptCode script = uscript_getScript(static_cast<UChar32>(point.value), &status);
    if (U_FAILURE(status) || script == USCRIPT_COMMON || script == USCRIPT_INHERITED ||
        script == USCRIPT_UNKNOWN) {
      continue;
    }
    if (last >= found.size() || found[last].first != script) {
      const auto at = std::find_if(found.begin(), found.end(),
                                   [script](const auto& entry) { return entry.first == script; });
      last = static_cast<size_t>(at - found.begin());
      if (at == found.end()) found.emplace_back(script, 0);
    }
    ++found[last].second;
  }
  for (const auto& [script, characters] : found) {
    const std::string name = uscript_getName(script);
    const auto at = std::lower_bound(
        counts->begin(), counts->end(), name,
        [](const ScriptCount& count, const std::string& wanted) { return count.script < wanted; });
    if (at != counts->end() && at->script == name) {
      at->characters += characters;
    } else {
      counts->insert(at, {name, characters});
    }
  }
}

}  // namespace headlight
