// The words and the grammar of the English passages.
#include "headlight/text/relations_internal.h"

namespace headlight::relations_internal {
namespace {

// Everyone can be with everyone and do every deed, so that a noun never tells who acts.
constexpr const char* kNouns[kNounClasses][8] = {
    {"king", "father", "brother", "uncle", "boy", "wizard", "prince", "monk"},
    {"queen", "mother", "sister", "aunt", "girl", "witch", "princess", "nun"},
    {"cat", "dog", "horse", "rabbit", "goat", "fox", "donkey", "parrot"},
    {"children", "students", "farmers", "soldiers", "sailors", "twins", "neighbours", "doctors"}};

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

// Harmful and helpful deeds. Each fits every thing, so that the thing does not tell them apart, and
// past and participle are alike, so that the form does not tell the voice.
constexpr const char* kDeeds[2][12] = {
    {"dropped", "scratched", "smashed", "damaged", "ruined", "wrecked", "cracked", "spoiled",
     "dented", "burned", "kicked", "soiled"},
    {"cleaned", "mended", "repaired", "polished", "fetched", "painted", "washed", "wrapped",
     "improved", "restored", "dusted", "rescued"}};
constexpr const char* kThings[] = {"basket", "lamp", "cup",   "mirror", "plate",  "chair",
                                   "ladder", "box",  "bench", "bucket", "window", "table"};
// Describe the things; of no category.
constexpr const char* kThingAdjectives[] = {"plain", "warm",  "wooden", "round",
                                            "white", "empty", "heavy",  "new"};

constexpr const char* kDeterminers[] = {"the", "our"};
constexpr const char* kPlaces[] = {"village", "city", "mountain", "harbour", "forest", "castle"};
constexpr const char* kGroups[] = {"choir", "guard", "school", "family"};
constexpr const char* kDegrees[] = {"very", "rather", "quite", "always"};
constexpr const char* kAfterthoughts[] = {"indeed", "today", "still", "then"};
constexpr const char* kTimes[] = {"yesterday",     "once",      "last week",   "this morning",
                                  "some time ago", "on monday", "one evening", "long ago"};
constexpr const char* kManners[] = {"quickly", "quietly", "suddenly", "finally", "often", "gladly"};
constexpr const char* kScenes[] = {"in the garden", "near the bridge", "behind the church",
                                   "on the road",   "in the rain",     "at the lake"};
constexpr const char* kBeside[] = {"with", "near", "beside", "behind"};
constexpr const char* kTurns[] = {"also", "just", "soon", "later", "even", "twice"};
constexpr const char* kClosings[] = {"then", "now", "soon", "after that", "at last", "meanwhile"};
constexpr const char* kMarks[] = {".", ";", "!"};
constexpr const char* kJoints[] = {"and", "while", "but"};

struct NounPhrase {
  Span noun;
  const Pronoun* pronoun;
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
  NounPhrase phrase{{}, &kPronouns[character.noun_class], false};
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

// Two characters: "the tiny castle king was near the cat, quite lazy indeed;" or "in the garden
// were the king, quite tiny today, and the lazy harbour cat."
std::array<NounPhrase, 2> AddScene(const Character* characters, RandomStream& random,
                                   PassageBuilder& passage) {
  if (Chance(15, random)) passage.Add(Pick(kTimes, random));
  const bool scene_first = Chance(50, random);
  if (scene_first) {
    passage.Add(Pick(kScenes, random));
    passage.Add("were");
  }
  const NounPhrase first = AddNounPhrase(characters[0], random, passage);
  if (first.open) passage.Add(",");
  if (scene_first) {
    passage.Add("and");
  } else {
    passage.Add(first.pronoun->was);
    passage.Add(Pick(kBeside, random));
  }
  const NounPhrase second = AddNounPhrase(characters[1], random, passage);
  passage.EndClause(Pick(kMarks, random));
  return {first, second};
}

// "he quickly dropped the heavy basket", "the basket was dropped by him".
void AddDeed(const NounPhrase& antecedent, const char* verb, RandomStream& random,
             PassageBuilder& passage) {
  Span actor;
  const auto add_actor = [&](const char* word) {
    actor = passage.Add(word);
    passage.Relate(RelationKind::kPronoun, actor, antecedent.noun);
  };
  Span described, thing;
  const auto add_thing = [&] {
    passage.Add("the");
    if (Chance(40, random)) described = passage.Add(Pick(kThingAdjectives, random));
    thing = passage.Add(Pick(kThings, random));
  };
  const auto add_manner = [&] {
    if (Chance(50, random)) passage.Add(Pick(kManners, random));
  };
  Span acts;
  if (Chance(50, random)) {
    add_thing();
    passage.Add("was");
    add_manner();
    acts = passage.Add(verb);
    if (Chance(35, random)) {
      passage.Add(Pick(kScenes, random));
    } else {
      add_manner();
    }
    passage.Add("by");
    add_actor(antecedent.pronoun->acted_upon);
  } else {
    add_actor(antecedent.pronoun->acting);
    if (Chance(35, random)) {
      passage.Add(",");
      passage.Add(Pick(kScenes, random));
      passage.Add(",");
    } else if (Chance(50, random)) {
      passage.Add(Pick(kTurns, random));
    }
    add_manner();
    acts = passage.Add(verb);
    add_thing();
  }
  passage.Relate(RelationKind::kAdjective, described, thing);
  passage.Relate(RelationKind::kSubject, actor, acts);
  passage.Relate(RelationKind::kVerbObject, acts, thing);
}

}  // namespace

void TellEnglish(const Plan& plan, RandomStream& random, PassageBuilder& passage) {
  Tell(
      plan, {kClosings, kJoints, ",", "."}, random, passage,
      [&](const Character* characters) { return AddScene(characters, random, passage); },
      [&](const NounPhrase& antecedent, bool harmful) {
        AddDeed(antecedent, Pick(kDeeds[harmful ? 0 : 1], random), random, passage);
      });
}

}  // namespace headlight::relations_internal
