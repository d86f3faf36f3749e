// A normalised text that remembers where each of its bytes comes from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/text/tokenizer.h"

namespace headlight {

// `begins[i]`, `ends[i]` is the range of source bytes that byte i of `text` comes from. Both are
// empty while every byte stands for itself.
class MappedText {
 public:
  explicit MappedText(std::string_view source) : text_(source) {}

  const std::string& text() const { return text_; }
  // Of a byte of text().
  int32_t SourceBegin(size_t byte) const {
    return begins_.empty() ? static_cast<int32_t>(byte) : begins_[byte];
  }
  int32_t SourceEnd(size_t byte) const {
    return ends_.empty() ? static_cast<int32_t>(byte) + 1 : ends_[byte];
  }

  // Broken UTF-8 becomes U+FFFD.
  void Repair();
  // HTML tags become a space, character references the character.
  void CleanHtml();
  // Both need valid UTF-8.
  void Normalize();
  void Lower();

 private:
  class Rewriter;

  bool IsAscii() const;

  std::string text_;
  std::vector<int32_t> begins_;
  std::vector<int32_t> ends_;
};

// The steps of `options` in the order above. The kind is not looked at.
MappedText NormalizeText(std::string_view source, const TokenizerOptions& options);

}  // namespace headlight
