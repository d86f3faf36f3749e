// The words and the grammar of the English passages.
#include "headlight/text/relations_internal.h"

namespace headlight::relations_internal {
namespace {

// Everyone can act on everyone, so that a noun never tells who acts.
constexpr const char* kNouns[kNounClasses][10] = {
    {"king", "father", "brother", "uncle", "boy", "prince", "grandfather", "waiter", "monk",
     "wizard"},
    {"queen", "mother", "sister", "aunt", "girl", "princess", "grandmother", "waitress", "nun",
     "witch"},
    {"cat", "dog", "horse", "donkey", "rabbit", "goat", "monkey", "parrot", "tiger", "fox"},
    {"children", "students", "farmers", "soldiers", "sailors", "neighbours", "doctors", "birds",
     "twins", "kittens"}};

constexpr const char* kAdjectives[kCategories][6] = {
    {"big", "small", "tall", "short", "tiny", "huge"},
    {"old", "young", "elderly", "aged", "youthful", "ancient"},
    {"happy", "sad", "angry", "cheerful", "worried", "excited"},
    {"kind", "clever", "brave", "lazy", "honest", "rude"}};

struct Pronoun {
  const char* acting;
  const char* acted_upon;
  const char* was;
};
constexpr Pronoun kPronouns[kNounClasses] = {
    {"he", "him", "was"}, {"she", "her", "was"}, {"it", "it", "was"}, {"they", "them", "were"}};

// One form for the past and the participle, so that the form does not tell the voice.
constexpr const char* kVerbs[] = {
    "helped",  "pushed",  "followed", "watched",  "called",  "thanked", "chased",    "rescued",
    "greeted", "warned",  "visited",  "ignored",  "carried", "trusted", "invited",   "stopped",
    "touched", "noticed", "admired",  "startled", "tricked", "guided",  "comforted", "teased"};

struct Deed {
  const char* verb;
  const char* objects[4];
};
constexpr Deed kDeeds[] = {{"finished", {"milk", "tea", "soup", "juice"}},
                           {"tasted", {"bread", "cake", "apple", "cheese"}},
                           {"opened", {"door", "window", "gate", "box"}},
                           {"dropped", {"basket", "bag", "lamp", "cup"}},
                           {"cleaned", {"table", "floor", "mirror", "plate"}},
                           {"moved", {"chair", "ladder", "bench", "bucket"}}};
// Describe the things of the last clause; of no category.
constexpr const char* kThingAdjectives[] = {"fresh", "warm",  "wooden", "round",
                                            "white", "empty", "heavy",  "broken"};

constexpr const char* kDeterminers[] = {"the", "our"};
constexpr const char* kPlaces[] = {"village", "city", "mountain", "harbour", "forest", "castle"};
constexpr const char* kGroups[] = {"choir", "guard", "school", "family"};
constexpr const char* kDegrees[] = {"very", "rather", "quite", "always"};
constexpr const char* kAfterthoughts[] = {"indeed", "today", "still", "then"};
constexpr const char* kTimes[] = {"yesterday",     "once",      "last week",   "this morning",
                                  "some time ago", "on monday", "one evening", "later"};
constexpr const char* kManners[] = {"quickly", "quietly", "suddenly", "finally", "often", "gladly"};
constexpr const char* kScenes[] = {"in the garden", "near the bridge", "behind the church",
                                   "at noon",       "in the rain",     "again"};
constexpr const char* kClosings[] = {"then", "now", "soon", "after that", "at last", "meanwhile"};
constexpr const char* kMarks[] = {".", ";", "!"};

struct NounPhrase {
  Span noun;
  bool open;  // ends with a description, to be closed by a comma if the clause goes on
};

// "the tiny castle king", "the tiny castle choir king", "the king, quite tiny indeed": an adjective
// stands on either side of its noun at several distances, and never beside a word that tells who
// acts.
NounPhrase AddNounPhrase(const Character& character, RandomStream& random,
                         PassageBuilder& passage) {
  const char* noun = Pick(kNouns[character.noun_class], random);
  const char* adjective = Pick(kAdjectives[character.category], random);
  const uint64_t form = random.Below(10);
  passage.Add(Pick(kDeterminers, random));
  NounPhrase phrase{};
  Span described;
  if (form < 5) {
    described = passage.Add(adjective);
    passage.Add(Pick(kPlaces, random));
    if (form >= 3) passage.Add(Pick(kGroups, random));
    phrase.noun = passage.Add(noun);
  } else {
    phrase.noun = passage.Add(noun);
    passage.Add(",");
    if (form >= 8) {
      passage.Add(character.noun_class == kIt ? "which" : "who");
      passage.Add(character.noun_class == kThey ? "were" : "was");
    }
    passage.Add(Pick(kDegrees, random));
    described = passage.Add(adjective);
    passage.Add(Pick(kAfterthoughts, random));
    phrase.open = true;
  }
  passage.Relate(RelationKind::kAdjective, described, phrase.noun);
  return phrase;
}

// Two characters with a verb between them. Sets their nouns.
void AddAction(const Plan& plan, size_t action, const char* verb, RandomStream& random,
               PassageBuilder& passage, std::array<Span, 4>& nouns) {
  const size_t first = 2 * action;
  const size_t second = first + 1;
  const bool passive = plan.passive[action];
  if (Chance(15, random)) passage.Add(Pick(kTimes, random));
  const NounPhrase before = AddNounPhrase(plan.characters[first], random, passage);
  if (before.open) passage.Add(",");
  if (passive) passage.Add(kPronouns[plan.characters[first].noun_class].was);
  if (Chance(10, random)) passage.Add(Pick(kManners, random));
  const Span acts = passage.Add(verb);
  if (passive) passage.Add("by");
  const NounPhrase after = AddNounPhrase(plan.characters[second], random, passage);
  if (!after.open && Chance(10, random)) passage.Add(Pick(kScenes, random));

  nouns[first] = before.noun;
  nouns[second] = after.noun;
  passage.Relate(RelationKind::kSubject, nouns[passive ? second : first], acts);
  passage.Relate(RelationKind::kVerbObject, acts, nouns[passive ? first : second]);
  passage.EndClause(Pick(kMarks, random));
}

// What the last clause acts on: "the heavy basket" or "her".
struct Target {
  const char* word;     // a thing, or the object form of a pronoun
  const char* subject;  // the same as the subject of a passive clause
  const char* was;
  bool is_thing;
};

Span AddTarget(const Target& target, bool as_subject, RandomStream& random,
               PassageBuilder& passage) {
  if (!target.is_thing) return passage.Add(as_subject ? target.subject : target.word);
  passage.Add("the");
  Span described;
  if (Chance(40, random)) described = passage.Add(Pick(kThingAdjectives, random));
  const Span thing = passage.Add(target.word);
  passage.Relate(RelationKind::kAdjective, described, thing);
  return thing;
}

struct Closing {
  Span actor;   // the pronoun that acts
  Span target;  // the thing or pronoun that is acted upon
};

// "then he dropped the heavy basket", "then she was called by him".
Closing AddClosing(const Pronoun& actor, const char* verb, const Target& target,
                   RandomStream& random, PassageBuilder& passage) {
  if (Chance(60, random)) passage.Add(Pick(kClosings, random));
  Closing closing;
  Span acts;
  if (Chance(30, random)) {
    closing.target = AddTarget(target, true, random, passage);
    passage.Add(target.was);
    acts = passage.Add(verb);
    passage.Add("by");
    closing.actor = passage.Add(actor.acted_upon);
  } else {
    closing.actor = passage.Add(actor.acting);
    if (Chance(30, random)) passage.Add(Pick(kManners, random));
    acts = passage.Add(verb);
    closing.target = AddTarget(target, false, random, passage);
  }
  passage.Relate(RelationKind::kSubject, closing.actor, acts);
  passage.Relate(RelationKind::kVerbObject, acts, closing.target);
  passage.EndClause(".");
  return closing;
}

}  // namespace

void TellEnglish(const Plan& plan, RandomStream& random, PassageBuilder& passage) {
  std::array<const char*, 3> verbs{};
  PickDistinct(kVerbs, random, verbs);
  std::array<Span, 4> nouns;
  for (size_t action = 0; action < plan.passive.size(); ++action) {
    AddAction(plan, action, verbs[action], random, passage, nouns);
  }

  const Pronoun& actor = kPronouns[plan.characters[plan.actor].noun_class];
  const Deed& deed = Pick(kDeeds, random);
  Target target{Pick(deed.objects, random), nullptr, "was", true};
  if (plan.has_target) {
    const Pronoun& other = kPronouns[plan.characters[plan.target].noun_class];
    target = {other.acted_upon, other.acting, other.was, false};
  }
  const char* verb = plan.has_target ? verbs[2] : deed.verb;
  const Closing closing = AddClosing(actor, verb, target, random, passage);
  passage.Relate(RelationKind::kPronoun, closing.actor, nouns[plan.actor]);
  if (plan.has_target) {
    passage.Relate(RelationKind::kPronoun, closing.target, nouns[plan.target]);
  }
}

}  // namespace headlight::relations_internal
