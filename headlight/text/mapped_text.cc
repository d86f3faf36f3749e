#include "headlight/text/mapped_text.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/edits.h>
#include <unicode/normalizer2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

void CheckIcu(UErrorCode status, const char* operation) {
  if (U_FAILURE(status)) {
    throw Error(ErrorKind::kInternal, "tokenizer: {} failed in ICU: {}", operation,
                u_errorName(status));
  }
}

icu::StringPiece Piece(std::string_view text) {
  return {text.data(), static_cast<int32_t>(text.size())};
}

// Tags that texts from the web hold; a "<" before anything else stays.
constexpr std::array<std::string_view, 38> kTags = {
    "a",  "b",     "blockquote", "body", "br", "center", "code", "div",    "em",  "font",
    "h1", "h2",    "h3",         "h4",   "h5", "h6",     "hr",   "html",   "i",   "img",
    "li", "ol",    "p",          "pre",  "s",  "small",  "span", "strong", "sub", "sup",
    "tt", "table", "tbody",      "td",   "th", "tr",     "u",    "ul"};
constexpr size_t kLongestTag = 1024;  // bytes

constexpr std::array<std::pair<std::string_view, char32_t>, 32> kReferences = {{
    {"amp", '&'},      {"lt", '<'},        {"gt", '>'},       {"quot", '"'},     {"apos", '\''},
    {"nbsp", 0xA0},    {"hellip", 0x2026}, {"mdash", 0x2014}, {"ndash", 0x2013}, {"lsquo", 0x2018},
    {"rsquo", 0x2019}, {"ldquo", 0x201C},  {"rdquo", 0x201D}, {"laquo", 0xAB},   {"raquo", 0xBB},
    {"bull", 0x2022},  {"middot", 0xB7},   {"copy", 0xA9},    {"reg", 0xAE},     {"trade", 0x2122},
    {"deg", 0xB0},     {"euro", 0x20AC},   {"pound", 0xA3},   {"yen", 0xA5},     {"eacute", 0xE9},
    {"egrave", 0xE8},  {"agrave", 0xE0},   {"ccedil", 0xE7},  {"ouml", 0xF6},    {"uuml", 0xFC},
    {"auml", 0xE4},    {"szlig", 0xDF},
}};

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
char AsciiLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Length of the tag that begins at `at` (which holds '<'), 0 when none does.
size_t TagLength(std::string_view text, size_t at) {
  size_t i = at + 1;
  if (i < text.size() && text[i] == '/') ++i;
  std::string name;
  while (i < text.size() && (IsAsciiLetter(text[i]) || IsAsciiDigit(text[i])) && name.size() < 11) {
    name.push_back(AsciiLower(text[i++]));
  }
  if (i >= text.size() || std::find(kTags.begin(), kTags.end(), name) == kTags.end()) return 0;
  if (text[i] != '>' && text[i] != '/' && text[i] != ' ' && text[i] != '\n') return 0;
  const size_t close = text.substr(i, kLongestTag).find_first_of("<>");
  if (close == std::string_view::npos || text[i + close] == '<') return 0;
  // "a <b and c> d" is no tag: what stands behind the name is nothing or has attributes.
  const std::string_view rest = text.substr(i, close);
  if (rest.find_first_not_of(" /\n") != std::string_view::npos &&
      rest.find('=') == std::string_view::npos) {
    return 0;
  }
  return i + close + 1 - at;
}

struct Reference {
  char32_t value;
  size_t length;  // "&" and ";" included
};

std::optional<char32_t> NumericReference(std::string_view digits) {
  const bool hex = !digits.empty() && (digits[0] == 'x' || digits[0] == 'X');
  if (hex) digits.remove_prefix(1);
  if (digits.empty() || digits.size() > 7) return std::nullopt;
  char32_t value = 0;
  for (const char c : digits) {
    const char lower = AsciiLower(c);
    char32_t digit = 0;
    if (IsAsciiDigit(c)) {
      digit = static_cast<char32_t>(c - '0');
    } else if (hex && lower >= 'a' && lower <= 'f') {
      digit = static_cast<char32_t>(lower - 'a') + 10;
    } else {
      return std::nullopt;
    }
    value = value * (hex ? 16 : 10) + digit;
  }
  return value;
}

// The character reference that begins at `at` (which holds '&').
std::optional<Reference> ReferenceAt(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at + 1, 10);
  const size_t end = rest.find(';');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const std::string_view name = rest.substr(0, end);
  if (name[0] == '#') {
    const std::optional<char32_t> value = NumericReference(name.substr(1));
    if (!value) return std::nullopt;
    return Reference{*value, end + 2};
  }
  const auto found = std::find_if(kReferences.begin(), kReferences.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  if (found == kReferences.end()) return std::nullopt;
  return Reference{found->second, end + 2};
}

}  // namespace

// Builds the next text beside its map, from pieces of the present one.
class MappedText::Rewriter {
 public:
  explicit Rewriter(MappedText* mapped) : mapped_(mapped) {
    text_.reserve(mapped->text_.size());
    begins_.reserve(mapped->text_.size());
    ends_.reserve(mapped->text_.size());
  }

  // Bytes [begin, end) of the present text, each for itself.
  void Keep(size_t begin, size_t end) {
    text_.append(mapped_->text_, begin, end - begin);
    for (size_t i = begin; i < end; ++i) {
      begins_.push_back(mapped_->SourceBegin(i));
      ends_.push_back(mapped_->SourceEnd(i));
    }
  }
  // `bytes` in place of [begin, end), which is not empty.
  void Replace(size_t begin, size_t end, std::string_view bytes) {
    text_.append(bytes);
    begins_.insert(begins_.end(), bytes.size(), mapped_->SourceBegin(begin));
    ends_.insert(ends_.end(), bytes.size(), mapped_->SourceEnd(end - 1));
  }
  void Finish() {
    mapped_->text_ = std::move(text_);
    mapped_->begins_ = std::move(begins_);
    mapped_->ends_ = std::move(ends_);
  }
  // `result` with the edits that ICU made on the way to it.
  void Follow(const icu::Edits& edits, std::string_view result) {
    UErrorCode status = U_ZERO_ERROR;
    icu::Edits::Iterator edit = edits.getFineIterator();
    while (edit.next(status)) {
      const auto begin = static_cast<size_t>(edit.sourceIndex());
      const size_t end = begin + static_cast<size_t>(edit.oldLength());
      if (!edit.hasChange()) {
        Keep(begin, end);
      } else if (begin < end) {
        Replace(begin, end,
                result.substr(static_cast<size_t>(edit.destinationIndex()),
                              static_cast<size_t>(edit.newLength())));
      }
    }
    CheckIcu(status, "following edits");
    Finish();
  }

 private:
  MappedText* mapped_;
  std::string text_;
  std::vector<int32_t> begins_;
  std::vector<int32_t> ends_;
};

bool MappedText::IsAscii() const {
  return std::all_of(text_.begin(), text_.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

void MappedText::Repair() {
  if (IsValidUtf8(text_)) return;
  Rewriter out(this);
  for (size_t i = 0; i < text_.size();) {
    const CodePoint point = DecodeUtf8(text_, i);
    const size_t next = i + static_cast<size_t>(point.length);
    if (point.valid) {
      out.Keep(i, next);
    } else {
      out.Replace(i, next, "\xEF\xBF\xBD");
    }
    i = next;
  }
  out.Finish();
}

void MappedText::CleanHtml() {
  if (text_.find_first_of("<&") == std::string::npos) return;
  Rewriter out(this);
  size_t kept = 0;  // everything before it is written
  for (size_t i = text_.find_first_of("<&"); i != std::string::npos;
       i = text_.find_first_of("<&", i)) {
    size_t length = 0;
    std::string replacement = " ";
    if (text_[i] == '<') {
      length = TagLength(text_, i);
    } else if (const std::optional<Reference> reference = ReferenceAt(text_, i)) {
      length = reference->length;
      replacement.clear();
      AppendUtf8(reference->value, &replacement);
    }
    if (length == 0) {
      ++i;
      continue;
    }
    out.Keep(kept, i);
    out.Replace(i, i + length, replacement);
    i += length;
    kept = i;
  }
  out.Keep(kept, text_.size());
  out.Finish();
}

void MappedText::Normalize() {
  if (IsAscii()) return;
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
  CheckIcu(status, "loading NFC");
  if (nfc->isNormalizedUTF8(Piece(text_), status)) return;
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  icu::Edits edits;
  nfc->normalizeUTF8(0, Piece(text_), sink, &edits, status);
  CheckIcu(status, "NFC");
  Rewriter(this).Follow(edits, result);
}

void MappedText::Lower() {
  if (IsAscii()) {  // the same length: the map stays
    std::transform(text_.begin(), text_.end(), text_.begin(), AsciiLower);
    return;
  }
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  icu::Edits edits;
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, Piece(text_), sink, &edits, status);
  CheckIcu(status, "lower case");
  if (!edits.hasChanges()) return;
  Rewriter(this).Follow(edits, result);
}

MappedText NormalizeText(std::string_view source, const TokenizerOptions& options) {
  MappedText mapped(source);
  mapped.Repair();
  if (options.html == HtmlHandling::kClean) mapped.CleanHtml();
  mapped.Normalize();
  if (options.letter_case == LetterCase::kLower) mapped.Lower();
  return mapped;
}

}  // namespace headlight
