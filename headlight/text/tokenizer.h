// From text to tokens. The same text gives the same tokens for ever (text.json records what the
// rules were).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

enum class TokenizerKind {
  // Word boundaries of ICU (UAX #29, and ICU's dictionaries for Chinese, Japanese, Thai, ...: the
  // one kind whose tokens depend on ICU's version). White space is dropped, punctuation is kept.
  kWords,
  // Every code point after NFC, white space too.
  kCharacters,
  // Every byte of the given text as it is: letter case, HTML and NFC do not apply. Printable ASCII
  // is shown as itself, another byte as <0xE4>.
  kBytes,
  // Own rules on Unicode properties, no dictionary: characters of scripts that are written without
  // spaces (Han, kana, Thai, ...) one by one with their combining marks; runs of other letters,
  // digits and marks whole ("don't", "3.14" too); other signs one by one; white space dropped.
  kAuto,
};
// "words", "characters", "bytes", "auto"; Parse also takes "chars" and throws kUsage otherwise.
const char* TokenizerKindName(TokenizerKind kind);
TokenizerKind ParseTokenizerKind(std::string_view name);

enum class LetterCase { kKeep, kLower };
// kClean: line breaks, paragraphs and other HTML tags that real reviews hold become white space,
// and character references (&amp; &#39; &quot; ...) the character. "a < b" stays.
enum class HtmlHandling { kKeep, kClean };

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::kAuto;
  LetterCase letter_case = LetterCase::kLower;
  HtmlHandling html = HtmlHandling::kClean;
};

struct Token {
  std::string text;   // normalised
  int32_t begin = 0;  // byte offsets into the given text: [begin, end)
  int32_t end = 0;
};

// Immutable; may be used from several threads at once.
class Tokenizer {
 public:
  // Throws kInternal when ICU cannot be set up.
  explicit Tokenizer(const TokenizerOptions& options = {});

  const TokenizerOptions& options() const { return options_; }

  // Broken UTF-8 becomes U+FFFD. Tokens are in order and do not overlap, save that tokens which
  // come from one indivisible piece of source (a character reference, say) share its range.
  // Throws kInput for a text of more than 256 MiB.
  std::vector<Token> Tokenize(std::string_view text) const;

 private:
  struct WordBreaker;  // ICU's iterator, behind the header

  TokenizerOptions options_;
  std::shared_ptr<const WordBreaker> word_breaker_;  // kWords only
};

// The version of the ICU that this program runs on, "72.1".
std::string IcuVersion();

}  // namespace headlight
