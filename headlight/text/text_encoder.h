// What a trained model needs to read text: tokenizer, vocabulary, labels, largest length. Saved
// with the run as text.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headlight/text/dataset.h"
#include "headlight/text/tokenizer.h"
#include "headlight/text/vocabulary.h"

namespace headlight {

struct TextEncoderOptions {
  TokenizerOptions tokenizer;
  VocabularyOptions vocabulary;
  int64_t max_len = 512;  // tokens; the rest of a longer text is cut off
};

struct EncodedText {
  std::vector<Token> tokens;  // at most max_len
  std::vector<int32_t> ids;   // of the same length
};

// A whole dataset as ids, ragged.
struct EncodedDataset {
  std::vector<int32_t> ids;            // of all texts, one after another
  std::vector<int64_t> offsets = {0};  // texts + 1
  std::vector<int32_t> labels;         // index into TextEncoder::labels()
  std::vector<int64_t> rows;           // index into Dataset::examples
  int64_t skipped = 0;                 // rows without a token or without a label
  int64_t cut = 0;                     // texts longer than max_len
  int64_t unknown_tokens = 0;          // of ids.size()

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

class TextEncoder {
 public:
  // Builds the vocabulary and the label set from `train` alone. Throws kInput when it has fewer
  // than two labels or no token at all, kUsage for options out of range.
  static TextEncoder Build(const Dataset& train, const TextEncoderOptions& options);

  // text.json. FromJson checks everything and throws kInput; `name` is for its messages.
  std::string ToJson() const;
  static TextEncoder FromJson(std::string_view json, const std::string& name);
  // Whole or not at all. Throws kResource.
  void Save(const std::string& path) const;
  static TextEncoder Load(const std::string& path);

  // At most max_len ids; none for a text without a token.
  std::vector<int32_t> Encode(std::string_view text) const;
  EncodedText EncodeWithTokens(std::string_view text) const;
  // Runs on the compute executor. Throws kInput for a label that is not among labels(), naming the
  // row.
  EncodedDataset EncodeDataset(const Dataset& dataset) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<std::string>& labels() const { return labels_; }
  int64_t max_len() const { return max_len_; }
  // -1 when there is none such.
  int32_t LabelId(std::string_view label) const;
  // The ICU that tokenized the training text; it matters for TokenizerKind::kWords only.
  const std::string& icu_version() const { return icu_version_; }

 private:
  TextEncoder(const TokenizerOptions& tokenizer, Vocabulary vocabulary,
              std::vector<std::string> labels, int64_t max_len, std::string icu_version);

  Tokenizer tokenizer_;
  Vocabulary vocabulary_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> label_ids_;
  int64_t max_len_;
  std::string icu_version_;
};

}  // namespace headlight
