// What the parts of the built-in text share: the plan of a passage, free of language, and the
// builder with which a language tells it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
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

// Two scenes, each of two characters, then two deeds by different characters. The label is the
// category of the one who does the harmful deed.
struct Plan {
  std::array<Character, 4> characters;  // in the order of the text, two for each scene
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

// What joins the last sentence.
struct LastSentence {
  std::span<const char* const> openings;
  std::span<const char* const> joints;
  const char* comma;
  const char* stop;
};

// The two scenes and the last sentence. add_scene(characters) adds two characters and returns their
// noun phrases; add_deed(noun phrase, harmful) what the pronoun for one of them does.
template <typename AddScene, typename AddDeed>
void Tell(const Plan& plan, const LastSentence& words, RandomStream& random,
          PassageBuilder& passage, const AddScene& add_scene, const AddDeed& add_deed) {
  const auto first = add_scene(&plan.characters[0]);
  const auto second = add_scene(&plan.characters[2]);
  const std::array phrases = {first[0], first[1], second[0], second[1]};
  if (Chance(60, random)) passage.Add(Pick(words.openings, random));
  for (size_t place = 0; place < plan.deeds.size(); ++place) {
    if (place > 0) passage.Add(Pick(words.joints, random));
    add_deed(phrases[plan.deeds[place].actor], plan.deeds[place].harmful);
    passage.EndClause(place > 0 ? words.stop : words.comma);
  }
}

void TellEnglish(const Plan& plan, RandomStream& random, PassageBuilder& passage);
void TellChinese(const Plan& plan, RandomStream& random, PassageBuilder& passage);

}  // namespace headlight::relations_internal
