// Any bytes as text.json, and as text for every tokenizer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headlight/base/error.h"
#include "headlight/text/text_encoder.h"

namespace {

void CheckTokens(const std::string& text, headlight::TokenizerKind kind) {
  static const headlight::Tokenizer* const kTokenizers[] = {
      new headlight::Tokenizer({headlight::TokenizerKind::kWords}),
      new headlight::Tokenizer({headlight::TokenizerKind::kCharacters}),
      new headlight::Tokenizer({headlight::TokenizerKind::kBytes}),
      new headlight::Tokenizer({headlight::TokenizerKind::kAuto})};
  int32_t last = 0;
  for (const headlight::Token& token : kTokenizers[static_cast<int>(kind)]->Tokenize(text)) {
    if (token.text.empty() || token.begin < last || token.end <= token.begin ||
        token.end > static_cast<int32_t>(text.size())) {
      std::abort();
    }
    last = token.begin;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  for (const headlight::TokenizerKind kind :
       {headlight::TokenizerKind::kWords, headlight::TokenizerKind::kCharacters,
        headlight::TokenizerKind::kBytes, headlight::TokenizerKind::kAuto}) {
    CheckTokens(bytes, kind);
  }
  try {
    const headlight::TextEncoder encoder = headlight::TextEncoder::FromJson(bytes, "fuzz");
    const std::string saved = encoder.ToJson();
    if (headlight::TextEncoder::FromJson(saved, "fuzz").ToJson() != saved) std::abort();
    encoder.Encode("a few words, 中文");
  } catch (const headlight::Error&) {
  }
  return 0;
}
