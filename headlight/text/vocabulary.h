// Tokens to ids, by frequency in the training texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headlight/text/tokenizer.h"

namespace headlight {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// How often each token occurs.
class TokenCounts {
 public:
  void Add(std::string_view token, int64_t count = 1);
  void Add(const std::vector<Token>& tokens);
  // Adds all counts of `other`.
  void Merge(const TokenCounts& other);
  const std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>>& counts() const {
    return counts_;
  }

 private:
  std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>> counts_;
};

struct VocabularyOptions {
  int64_t max_size = 50000;  // ids in all, the two reserved ones included; at least 3
  int64_t min_count = 1;     // a rarer token is unknown
};

class Vocabulary {
 public:
  static constexpr int32_t kPad = 0;      // "<pad>"
  static constexpr int32_t kUnknown = 1;  // "<unk>"

  // Only the two reserved ids.
  Vocabulary();
  // The most frequent tokens get the lowest ids; ties go by bytes. Throws kUsage for options out of
  // range.
  static Vocabulary Build(const TokenCounts& counts, const VocabularyOptions& options);
  // `tokens` in the order of ids, the two reserved ones first. Throws kInput when they are not, or
  // one occurs twice.
  static Vocabulary FromTokens(std::vector<std::string> tokens);

  // kUnknown for a token that is not in it. The reserved names are not tokens: a text that holds
  // "<pad>" gives kUnknown.
  int32_t Id(std::string_view token) const;
  // Throws kUsage unless 0 <= id < size().
  const std::string& Token(int32_t id) const;
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;
};

}  // namespace headlight
