#include "headlight/text/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr std::string_view kPadName = "<pad>";
constexpr std::string_view kUnknownName = "<unk>";

bool IsReserved(std::string_view token) { return token == kPadName || token == kUnknownName; }

}  // namespace

void TokenCounts::Add(std::string_view token, int64_t count) {
  const auto at = counts_.find(token);
  if (at != counts_.end()) {
    at->second += count;
  } else {
    counts_.emplace(token, count);
  }
}

void TokenCounts::Add(const std::vector<Token>& tokens) {
  for (const Token& token : tokens) Add(token.text);
}

void TokenCounts::Merge(const TokenCounts& other) {
  for (const auto& [token, count] : other.counts_) Add(token, count);
}

Vocabulary::Vocabulary() : tokens_{std::string(kPadName), std::string(kUnknownName)} {}

Vocabulary Vocabulary::Build(const TokenCounts& counts, const VocabularyOptions& options) {
  if (options.max_size < 3 || options.max_size > std::numeric_limits<int32_t>::max()) {
    throw Error(ErrorKind::kUsage, "vocabulary: the size must be 3 or more, found {}",
                options.max_size);
  }
  if (options.min_count < 1) {
    throw Error(ErrorKind::kUsage, "vocabulary: the minimum count must be 1 or more, found {}",
                options.min_count);
  }
  std::vector<std::pair<int64_t, std::string_view>> ranked;
  for (const auto& [token, count] : counts.counts()) {
    if (count >= options.min_count && !IsReserved(token)) ranked.emplace_back(-count, token);
  }
  std::sort(ranked.begin(), ranked.end());
  const size_t size = std::min(ranked.size(), static_cast<size_t>(options.max_size - 2));
  std::vector<std::string> tokens = Vocabulary().tokens_;
  for (size_t i = 0; i < size; ++i) tokens.emplace_back(ranked[i].second);
  return FromTokens(std::move(tokens));
}

Vocabulary Vocabulary::FromTokens(std::vector<std::string> tokens) {
  if (tokens.size() < 2 || tokens[0] != kPadName || tokens[1] != kUnknownName) {
    throw Error(ErrorKind::kInput, "vocabulary: the first tokens must be {} and {}", kPadName,
                kUnknownName);
  }
  if (tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(ErrorKind::kInput, "vocabulary: too many tokens, found {}", tokens.size());
  }
  Vocabulary vocabulary;
  vocabulary.tokens_ = std::move(tokens);
  vocabulary.ids_.reserve(vocabulary.tokens_.size());
  for (int32_t id = 2; id < vocabulary.size(); ++id) {
    const std::string& token = vocabulary.tokens_[static_cast<size_t>(id)];
    if (IsReserved(token) || !vocabulary.ids_.emplace(token, id).second) {
      throw Error(ErrorKind::kInput, "vocabulary: token '{}' occurs twice (again as id {})", token,
                  id);
    }
  }
  return vocabulary;
}

int32_t Vocabulary::Id(std::string_view token) const {
  const auto at = ids_.find(token);
  return at == ids_.end() ? kUnknown : at->second;
}

const std::string& Vocabulary::Token(int32_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(ErrorKind::kUsage, "vocabulary: an id must be in [0, {}), found {}", size(), id);
  }
  return tokens_[static_cast<size_t>(id)];
}

}  // namespace headlight
