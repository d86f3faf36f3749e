#include "headlight/report/width.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <memory>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr UChar32 kReplacement = 0xFFFD;
constexpr UChar32 kZeroWidthJoiner = 0x200D;

// What stands in for a character that would act on a terminal instead of being shown.
UChar32 Visible(UChar32 c) {
  if (c < 0) return kReplacement;                  // broken UTF-8
  if (c < 0x20) return 0x2400 + c;                 // control pictures
  if (c == 0x7F) return 0x2421;                    // symbol for delete
  if (c >= 0x80 && c < 0xA0) return kReplacement;  // C1 controls
  if (c == 0x2028 || c == 0x2029) return 0x2424;   // symbol for newline
  if ((c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)) return kReplacement;  // bidi
  return c;
}

int CharacterWidth(UChar32 c) {
  switch (u_charType(c)) {
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
    case U_FORMAT_CHAR:
      return c == 0x00AD ? 1 : 0;  // terminals show the soft hyphen
    default:
      break;
  }
  const int hangul = u_getIntPropertyValue(c, UCHAR_HANGUL_SYLLABLE_TYPE);
  if (hangul == U_HST_VOWEL_JAMO || hangul == U_HST_TRAILING_JAMO) return 0;
  const int width = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

// Calls function(code point after Visible).
template <typename Function>
void ForEachCharacter(std::string_view text, const Function& function) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    UChar32 c = 0;
    U8_NEXT(bytes, i, length, c);
    function(Visible(c));
  }
}

// Characters joined to an emoji by U+200D, or that only change its skin, take no room of their own.
class WidthCounter {
 public:
  void Add(UChar32 c) {
    const bool joined = after_joiner_ || (width_ > 0 && c >= 0x1F3FB && c <= 0x1F3FF);
    if (!joined) width_ += CharacterWidth(c);
    after_joiner_ = c == kZeroWidthJoiner;
  }
  int width() const { return width_; }

 private:
  int width_ = 0;
  bool after_joiner_ = false;
};

int PrintableWidth(std::string_view printable) {
  WidthCounter counter;
  ForEachCharacter(printable, [&](UChar32 c) { counter.Add(c); });
  return counter.width();
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  ForEachCharacter(text, [&](UChar32 c) {
    char bytes[U8_MAX_LENGTH];
    int32_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, c);
    result.append(bytes, static_cast<size_t>(length));
  });
  return result;
}

int DisplayWidth(std::string_view text) { return PrintableWidth(text); }

std::string TruncateToWidth(std::string_view text, int width) {
  std::string printable = Printable(text);
  if (PrintableWidth(printable) <= width) return printable;
  if (width < 1) return "";
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> clusters(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::kResource, "width: ICU has no character boundaries: {}",
                u_errorName(status));
  }
  const icu::UnicodeString wide = icu::UnicodeString::fromUTF8(printable);
  clusters->setText(wide);
  std::string kept;
  int used = 0;
  for (int32_t begin = clusters->first(), end = clusters->next(); end != icu::BreakIterator::DONE;
       begin = end, end = clusters->next()) {
    std::string cluster;
    wide.tempSubStringBetween(begin, end).toUTF8String(cluster);
    used += PrintableWidth(cluster);
    if (used > width - 1) break;
    kept += cluster;
  }
  return kept + "…";
}

std::string FitToWidth(std::string_view text, int width, Align align) {
  std::string fitted = TruncateToWidth(text, width);
  const int missing = width - PrintableWidth(fitted);
  if (missing <= 0) return fitted;
  int left = 0;
  if (align == Align::kRight) left = missing;
  if (align == Align::kCentre) left = missing / 2;
  return std::string(static_cast<size_t>(left), ' ') + fitted +
         std::string(static_cast<size_t>(missing - left), ' ');
}

}  // namespace headlight
