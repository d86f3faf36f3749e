#include "headlight/text/tokenizer.h"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utext.h>
#include <unicode/uversion.h>

#include <array>

#include "headlight/base/error.h"
#include "headlight/text/mapped_text.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

// Offsets are 32 bits wide, and a text can grow threefold in NFC or when it is repaired.
constexpr size_t kMaxTextBytes = size_t{1} << 28;

constexpr std::array<TokenizerKind, 4> kKinds = {TokenizerKind::kWords, TokenizerKind::kCharacters,
                                                 TokenizerKind::kBytes, TokenizerKind::kAuto};

Token MakeToken(const MappedText& mapped, size_t begin, size_t end) {
  return {mapped.text().substr(begin, end - begin), mapped.SourceBegin(begin),
          mapped.SourceEnd(end - 1)};
}

std::vector<Token> TokenizeBytes(std::string_view text) {
  std::vector<Token> tokens;
  tokens.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const auto at = static_cast<int32_t>(i);
    const bool printable = byte >= 0x20 && byte < 0x7F;
    tokens.push_back(
        {printable ? std::string(1, text[i]) : fmt::format("<0x{:02X}>", byte), at, at + 1});
  }
  return tokens;
}

std::vector<Token> TokenizeCharacters(const MappedText& mapped) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < mapped.text().size();) {
    const size_t next = i + static_cast<size_t>(DecodeUtf8(mapped.text(), i).length);
    tokens.push_back(MakeToken(mapped, i, next));
    i = next;
  }
  return tokens;
}

std::vector<Token> TokenizeWords(const MappedText& mapped, const icu::BreakIterator& prototype) {
  UErrorCode status = U_ZERO_ERROR;
  UText utext = UTEXT_INITIALIZER;
  utext_openUTF8(&utext, mapped.text().data(), static_cast<int64_t>(mapped.text().size()), &status);
  const std::unique_ptr<icu::BreakIterator> words(prototype.clone());
  if (words != nullptr) words->setText(&utext, status);
  if (U_FAILURE(status) || words == nullptr) {
    throw Error(ErrorKind::kInternal, "tokenizer: ICU word boundaries failed: {}",
                u_errorName(status));
  }
  std::vector<Token> tokens;
  int32_t begin = words->first();
  for (int32_t end = words->next(); end != icu::BreakIterator::DONE; end = words->next()) {
    const auto from = static_cast<size_t>(begin);
    const auto to = static_cast<size_t>(end);
    if (!IsBlank(std::string_view(mapped.text()).substr(from, to - from))) {
      tokens.push_back(MakeToken(mapped, from, to));
    }
    begin = end;
  }
  utext_close(&utext);
  return tokens;
}

enum class AutoClass {
  kSpace,   // dropped
  kLetter,  // runs stay whole
  kDigit,   // the same
  kSingle,  // of a script written without spaces: a token of its own
  kSign,    // a token of its own
  kExtend,  // belongs to what stands before it
};

bool IsUnspacedScript(UScriptCode script) {
  switch (script) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_BOPOMOFO:
    case USCRIPT_YI:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR:
      return true;
    default:
      return false;
  }
}

AutoClass ClassOfNonAscii(char32_t value) {
  if (IsWhitespace(value)) return AutoClass::kSpace;
  if (value == 0x30FC || value == 0xFF70) return AutoClass::kSingle;  // kana length mark: "Common"
  if (value >= 0x1F3FB && value <= 0x1F3FF) return AutoClass::kExtend;  // skin tones
  const auto point = static_cast<UChar32>(value);
  const int8_t type = u_charType(point);
  switch (type) {
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
    case U_COMBINING_SPACING_MARK:
    case U_FORMAT_CHAR:
      return AutoClass::kExtend;
    case U_CONTROL_CHAR:
      return AutoClass::kSpace;
    case U_UPPERCASE_LETTER:
    case U_LOWERCASE_LETTER:
    case U_TITLECASE_LETTER:
    case U_MODIFIER_LETTER:
    case U_OTHER_LETTER:
    case U_DECIMAL_DIGIT_NUMBER:
    case U_LETTER_NUMBER:
    case U_OTHER_NUMBER: {
      UErrorCode status = U_ZERO_ERROR;
      if (IsUnspacedScript(uscript_getScript(point, &status)) && U_SUCCESS(status)) {
        return AutoClass::kSingle;
      }
      return type == U_DECIMAL_DIGIT_NUMBER ? AutoClass::kDigit : AutoClass::kLetter;
    }
    default:
      return AutoClass::kSign;
  }
}

AutoClass ClassOf(char32_t value) {
  if (value >= 0x80) return ClassOfNonAscii(value);
  if ((value >= 'a' && value <= 'z') || (value >= 'A' && value <= 'Z')) return AutoClass::kLetter;
  if (value >= '0' && value <= '9') return AutoClass::kDigit;
  return value <= 0x20 || value == 0x7F ? AutoClass::kSpace : AutoClass::kSign;
}

// Signs that hold a word together when it goes on behind them.
bool Joins(char32_t sign, AutoClass before, AutoClass after) {
  const bool letters = before == AutoClass::kLetter && after == AutoClass::kLetter;
  const bool digits = before == AutoClass::kDigit && after == AutoClass::kDigit;
  const bool word = (before == AutoClass::kLetter || before == AutoClass::kDigit) &&
                    (after == AutoClass::kLetter || after == AutoClass::kDigit);
  switch (sign) {
    case '\'':
    case 0x2019:
    case 0xB7:  // Catalan "l·l"
      return letters;
    case '.':
    case ',':
      return digits;
    case '_':
      return word;
    default:
      return false;
  }
}

class AutoScanner {
 public:
  explicit AutoScanner(const MappedText& mapped) : mapped_(mapped), text_(mapped.text()) {}

  std::vector<Token> Scan() {
    while (position_ < text_.size()) {
      const CodePoint point = DecodeUtf8(text_, position_);
      const AutoClass kind = ClassOf(point.value);
      if (kind == AutoClass::kSpace || (kind == AutoClass::kExtend && !open_)) {
        Close();
        position_ += static_cast<size_t>(point.length);
      } else {
        Step(point, kind);
      }
    }
    Close();
    return std::move(tokens_);
  }

 private:
  static constexpr char32_t kJoiner = 0x200D;  // joins the parts of an emoji

  static bool InWord(AutoClass kind) {
    return kind == AutoClass::kLetter || kind == AutoClass::kDigit;
  }

  void Step(const CodePoint& point, AutoClass kind) {
    const auto length = static_cast<size_t>(point.length);
    const bool goes_on =
        open_ && (kind == AutoClass::kExtend || (InWord(kind) && InWord(last_)) ||
                  (kind == AutoClass::kSign && last_ == AutoClass::kSign && joiner_) ||
                  (kind == AutoClass::kSign && InWord(last_) &&
                   Joins(point.value, last_, ClassAt(position_ + length))));
    if (!goes_on) {
      Close();
      open_ = true;
      begin_ = position_;
    }
    // A mark or a joining sign leaves the word what it was.
    if (!(goes_on && (kind == AutoClass::kExtend || InWord(last_))) || InWord(kind)) last_ = kind;
    joiner_ = point.value == kJoiner;
    position_ += length;
  }

  AutoClass ClassAt(size_t offset) const {
    return offset < text_.size() ? ClassOf(DecodeUtf8(text_, offset).value) : AutoClass::kSpace;
  }

  void Close() {
    if (open_) tokens_.push_back(MakeToken(mapped_, begin_, position_));
    open_ = false;
    joiner_ = false;
  }

  const MappedText& mapped_;
  std::string_view text_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  size_t begin_ = 0;  // of the open token
  bool open_ = false;
  bool joiner_ = false;                 // the last code point was a joiner
  AutoClass last_ = AutoClass::kSpace;  // of the open token
};

}  // namespace

struct Tokenizer::WordBreaker {
  std::unique_ptr<icu::BreakIterator> iterator;
};

const char* TokenizerKindName(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::kWords:
      return "words";
    case TokenizerKind::kCharacters:
      return "characters";
    case TokenizerKind::kBytes:
      return "bytes";
    case TokenizerKind::kAuto:
      return "auto";
  }
  return "auto";
}

TokenizerKind ParseTokenizerKind(std::string_view name) {
  if (name == "chars") return TokenizerKind::kCharacters;
  for (const TokenizerKind kind : kKinds) {
    if (name == TokenizerKindName(kind)) return kind;
  }
  throw Error(ErrorKind::kUsage, "tokenizer: must be words, characters, bytes or auto, found '{}'",
              name);
}

Tokenizer::Tokenizer(const TokenizerOptions& options) : options_(options) {
  if (options.kind != TokenizerKind::kWords) return;
  UErrorCode status = U_ZERO_ERROR;
  auto breaker = std::make_shared<WordBreaker>();
  breaker->iterator.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
  if (U_FAILURE(status) || breaker->iterator == nullptr) {
    throw Error(ErrorKind::kInternal, "tokenizer: ICU has no word boundaries: {}",
                u_errorName(status));
  }
  word_breaker_ = std::move(breaker);
}

std::vector<Token> Tokenizer::Tokenize(std::string_view text) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ErrorKind::kInput, "tokenizer: a text may have at most {} bytes, found {}",
                kMaxTextBytes, text.size());
  }
  if (options_.kind == TokenizerKind::kBytes) return TokenizeBytes(text);
  const MappedText mapped = NormalizeText(text, options_);
  switch (options_.kind) {
    case TokenizerKind::kWords:
      return TokenizeWords(mapped, *word_breaker_->iterator);
    case TokenizerKind::kCharacters:
      return TokenizeCharacters(mapped);
    default:
      return AutoScanner(mapped).Scan();
  }
}

std::string IcuVersion() {
  UVersionInfo version;
  u_getVersion(version);
  return fmt::format("{}.{}", version[0], version[1]);
}

}  // namespace headlight
