#include "headlight/text/relations.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/text/relations_internal.h"

namespace headlight {

namespace relations_internal {
namespace {

// Length in bytes of the UTF-8 character that starts with `lead`; the tables are valid UTF-8.
size_t CharacterBytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

bool IsEnglishMark(std::string_view token) {
  return token == "." || token == "," || token == ";" || token == "!";
}

}  // namespace

void PassageBuilder::AddToken(std::string_view token) {
  const bool space =
      language_ == RelationsLanguage::kEnglish && !example_.text.empty() && !IsEnglishMark(token);
  if (space) example_.text += ' ';
  example_.text += token;
  example_.tokens.emplace_back(token);
}

Span PassageBuilder::Add(std::string_view words) {
  Span span;
  span.begin = static_cast<int32_t>(example_.tokens.size());
  while (!words.empty()) {
    const size_t length = language_ == RelationsLanguage::kChinese
                              ? CharacterBytes(words.front())
                              : std::min(words.find(' '), words.size());
    if (length > 0) AddToken(words.substr(0, length));
    words.remove_prefix(length);
    if (!words.empty() && words.front() == ' ') words.remove_prefix(1);
  }
  span.end = static_cast<int32_t>(example_.tokens.size());
  return span;
}

void PassageBuilder::Relate(RelationKind kind, Span from, Span to) {
  for (int32_t token = from.begin; token < from.end; ++token) {
    example_.relations.push_back({kind, token, to.begin, to.end});
  }
}

void PassageBuilder::EndClause(std::string_view mark) {
  const auto clause_end = static_cast<int32_t>(example_.tokens.size());
  const Span to = Add(mark);
  Relate(RelationKind::kPunctuation, {clause_begin_, clause_end}, to);
  clause_begin_ = to.end;
}

RelationsExample PassageBuilder::Finish(std::string_view label) {
  example_.label = label;
  std::ranges::stable_sort(example_.relations, {}, [](const GoldRelation& gold) {
    return std::pair(gold.kind, gold.from);
  });
  return std::move(example_);
}

}  // namespace relations_internal

namespace {

using namespace relations_internal;

// The label of example i: a shuffle of the categories for each block of four examples.
size_t DrawLabel(const RelationsOptions& options, uint64_t index, uint64_t stream_base) {
  std::vector<size_t> categories(kCategories);
  std::iota(categories.begin(), categories.end(), size_t{0});
  RandomStream random(options.seed, stream_base + index / kCategories);
  random.Shuffle(categories);
  return categories[index % kCategories];
}

// Percent. With equal weights only the whole chain lowers the loss, and training stays at chance
// for thousands of steps. Uneven ones give it first steps: the harmful deed is mostly by the first
// character, and by the nouns of one class more than by those of the next. No weight shows in a bag
// of words and bigrams, and none is right for more than 60 labels in 100 by itself.
constexpr std::array<uint64_t, kCategories> kHarmerByOrder = {60, 40, 0, 0};
constexpr std::array<uint64_t, kNounClasses> kHarmerByClass = {48, 28, 16, 8};  // kHe, ...
constexpr int kBothOfOneScene = 60;
constexpr int kHarmFirst = 70;

// An index with probability weights[index] / 100.
size_t DrawWeighted(const std::array<uint64_t, 4>& weights, RandomStream& random) {
  uint64_t draw = random.Below(100);
  size_t index = 0;
  while (draw >= weights[index]) draw -= weights[index++];
  return index;
}

// 0, 1, 2, 3 in random order, but `value` at `place`.
std::vector<size_t> ShuffleAround(size_t place, size_t value, RandomStream& random) {
  std::vector<size_t> order;
  for (size_t other = 0; other < 4; ++other) {
    if (other != value) order.push_back(other);
  }
  random.Shuffle(order);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), value);
  return order;
}

// Classes, categories and order are drawn independently, given the label.
Plan DrawPlan(size_t label, RandomStream& random) {
  Plan plan{};
  const size_t harmer = DrawWeighted(kHarmerByOrder, random);
  const size_t same_scene = harmer ^ 1;
  const size_t other_scene = (harmer & ~size_t{1}) ^ 2;
  const size_t helper =
      Chance(kBothOfOneScene, random) ? same_scene : other_scene + random.Below(2);
  plan.deeds = {{{harmer, true}, {helper, false}}};
  if (!Chance(kHarmFirst, random)) std::swap(plan.deeds[0], plan.deeds[1]);
  const size_t harmer_class = DrawWeighted(kHarmerByClass, random);
  const std::vector<size_t> classes = ShuffleAround(harmer, harmer_class, random);
  const std::vector<size_t> categories = ShuffleAround(harmer, label, random);
  for (size_t index = 0; index < 4; ++index) {
    plan.characters[index] = {classes[index], categories[index]};
  }
  return plan;
}

}  // namespace

const char* RelationName(RelationKind kind) {
  switch (kind) {
    case RelationKind::kPronoun:
      return "pronoun";
    case RelationKind::kVerbObject:
      return "verb-object";
    case RelationKind::kAdjective:
      return "adjective";
    case RelationKind::kSubject:
      return "subject";
    case RelationKind::kPunctuation:
      return "punctuation";
  }
  throw Error(ErrorKind::kInternal, "relations: no name for kind {}", static_cast<int>(kind));
}

RelationKind RelationFromName(std::string_view name) {
  for (int kind = 0; kind < kRelationKinds; ++kind) {
    const auto candidate = static_cast<RelationKind>(kind);
    if (name == RelationName(candidate)) return candidate;
  }
  throw Error(ErrorKind::kInput,
              "relations: a relation must be pronoun, verb-object, adjective, subject or "
              "punctuation, found '{}'",
              name);
}

RelationsLanguage RelationsLanguageFromName(std::string_view name) {
  if (name == "zh") return RelationsLanguage::kChinese;
  if (name == "en") return RelationsLanguage::kEnglish;
  throw Error(ErrorKind::kUsage, "relations: the language must be zh or en, found '{}'", name);
}

std::vector<RelationsExample> MakeRelations(const RelationsOptions& options) {
  if (options.count < 0 || options.count > kMostPassages) {
    throw Error(ErrorKind::kUsage, "relations: the count must be 0 to {}, found {}", kMostPassages,
                options.count);
  }
  const bool chinese = options.language == RelationsLanguage::kChinese;
  // Streams of one seed: the top bits tell passages and labels of the two languages apart.
  const uint64_t passage_stream = chinese ? uint64_t{1} << 60 : uint64_t{2} << 60;
  const uint64_t label_stream = chinese ? uint64_t{3} << 60 : uint64_t{4} << 60;

  std::vector<RelationsExample> examples;
  examples.reserve(static_cast<size_t>(std::min<int64_t>(options.count, 1 << 20)));
  for (uint64_t index = 0; index < static_cast<uint64_t>(options.count); ++index) {
    const size_t label = DrawLabel(options, index, label_stream);
    RandomStream random(options.seed, passage_stream + index);
    const Plan plan = DrawPlan(label, random);
    PassageBuilder passage(options.language);
    if (chinese) {
      TellChinese(plan, random, passage);
    } else {
      TellEnglish(plan, random, passage);
    }
    examples.push_back(passage.Finish(kCategoryNames[label]));
  }
  return examples;
}

}  // namespace headlight
