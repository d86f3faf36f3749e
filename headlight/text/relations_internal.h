// What the parts of the built-in text share: the plan of a passage, free of language, and the
// builder with which a language tells it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "headlight/base/random.h"
#include "headlight/text/relations.h"

namespace headlight::relations_internal {

// The order of the pronoun classes and of the categories in every table.
enum NounClass { kHe, kShe, kIt, kThey };
inline constexpr size_t kNounClasses = 4;
inline constexpr size_t kCategories = 4;
inline constexpr std::array<const char*, kCategories> kCategoryNames = {"size", "age", "mood",
                                                                        "character"};

struct Character {
  size_t noun_class;
  size_t category;  // of the adjective that describes it
};

// What a character does in the last sentence, where a pronoun stands for it.
struct Deed {
  size_t actor;  // index of a character
  bool harmful;
};

// Two actions, each between two characters, then two deeds by different characters. The label is
// the category of the one who does the harmful deed.
struct Plan {
  std::array<Character, 4> characters;  // in the order of the text, two for each action
  std::array<Deed, 2> deeds;            // in the order of the text, one of them harmful
};

// Token indices, half-open.
struct Span {
  int32_t begin = 0;
  int32_t end = 0;
};

// Writes text, tokens and relations side by side.
class PassageBuilder {
 public:
  explicit PassageBuilder(RelationsLanguage language) : language_(language) {}

  // English: words with spaces between them. Chinese: characters. An empty string adds nothing.
  Span Add(std::string_view words);
  // One relation from each token of `from` to the whole of `to`.
  void Relate(RelationKind kind, Span from, Span to);
  // Adds the closing mark and relates the clause's words to it.
  void EndClause(std::string_view mark);

  RelationsExample Finish(std::string_view label);

 private:
  void AddToken(std::string_view token);

  RelationsLanguage language_;
  RelationsExample example_;
  int32_t clause_begin_ = 0;
};

// A uniform draw from a table (a C array or std::array).
template <typename Table>
const auto& Pick(const Table& table, RandomStream& random) {
  return table[random.Below(std::size(table))];
}

inline bool Chance(int percent, RandomStream& random) {
  return random.Below(100) < static_cast<uint64_t>(percent);
}

void TellEnglish(const Plan& plan, RandomStream& random, PassageBuilder& passage);
void TellChinese(const Plan& plan, RandomStream& random, PassageBuilder& passage);

}  // namespace headlight::relations_internal
