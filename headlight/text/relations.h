// Built-in text: short passages whose grammatical relations are known.
//
// A passage shows four characters, one of each pronoun class (he, she, it, they), each described by
// an adjective of another category (size, age, mood, character). In its last sentence two of them
// do something, one harm and the other good, and pronouns stand for them:
//
//   the ancient mountain cat was with our short castle sailors. this morning our honest city prince
//   was with our nun, who was always happy indeed; now she even painted the empty bench, and the
//   white mirror was quietly dented gladly by them.
//
// The label is the category of the adjective that describes the one who does harm (above: "dented
// by them", the sailors, "short", so "size"). It takes subject -> verb (which pronoun does harm),
// pronoun -> antecedent and adjective -> noun together; verb -> object and punctuation are there
// beside them. Every passage holds all four classes and all four categories, one harmful and one
// helpful deed, and an adjective never stands beside a word that tells whom it describes, so a bag
// of words and bigrams stays at chance (one in four).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

enum class RelationKind {
  kPronoun,      // pronoun -> the noun that it stands for
  kVerbObject,   // verb -> noun that is acted upon
  kAdjective,    // adjective -> the noun that it describes
  kSubject,      // acting noun or pronoun -> its verb
  kPunctuation,  // every word of a clause -> the mark that ends the clause
};
inline constexpr int kRelationKinds = 5;

// "pronoun", "verb-object", "adjective", "subject", "punctuation".
const char* RelationName(RelationKind kind);
// The inverse. Throws kInput for another name.
RelationKind RelationFromName(std::string_view name);

// Indices count tokens. A word of several tokens (Chinese is cut per character) has one
// GoldRelation for each of its tokens; what it relates to is a range, over which attention may be
// summed.
struct GoldRelation {
  RelationKind kind;
  int32_t from;
  int32_t to_begin;  // half-open [to_begin, to_end)
  int32_t to_end;

  bool operator==(const GoldRelation&) const = default;
};

struct RelationsExample {
  std::string text;   // UTF-8; English is in lower case
  std::string label;  // "size", "age", "mood" or "character"
  // As the `auto` tokenizer cuts the text: Chinese per character, words whole, punctuation single.
  std::vector<std::string> tokens;
  std::vector<GoldRelation> relations;

  bool operator==(const RelationsExample&) const = default;
};

enum class RelationsLanguage { kChinese, kEnglish };

// "zh" or "en". Throws kUsage for another name.
RelationsLanguage RelationsLanguageFromName(std::string_view name);

struct RelationsOptions {
  RelationsLanguage language = RelationsLanguage::kEnglish;
  int64_t count = 0;
  uint64_t seed = 0;
};

inline constexpr int64_t kMostPassages = 1'000'000;

// Example i depends on (language, seed, i) alone and never changes. Every four consecutive
// examples, counted from 0, hold each label once. Throws kUsage for a count that is negative or
// beyond kMostPassages.
std::vector<RelationsExample> MakeRelations(const RelationsOptions& options);

// One JSON object a line: {"text", "label", "tokens": [...], "relations": [{"relation", "from",
// "to": [begin, end]}, ...]}, so that a reader of JSON lines finds "text" and "label" in it.
std::string FormatRelations(const std::vector<RelationsExample>& examples);

// The inverse, for files from anywhere. Throws kInput with `origin` (a file name) and the line for
// a broken line, a missing field or an index outside the tokens. Blank lines and a byte order mark
// are skipped.
std::vector<RelationsExample> ParseRelations(std::string_view bytes, std::string_view origin);

}  // namespace headlight
