// Scoring heads against gold relations: which head attends from a pronoun to its antecedent, from a
// verb to its object, and so on, and is that more than a head would do that knows only positions,
// or only which keys are worth a look?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/analysis/attention_walk.h"
#include "headlight/text/relations.h"

namespace headlight {

// kForward: the query is the relation's first word (a pronoun looks at its antecedent). kBackward:
// the query is the second (the antecedent looks at the pronoun).
enum class RelationDirection { kForward, kBackward };
inline constexpr int kRelationDirections = 2;
const char* RelationDirectionName(RelationDirection direction);  // "forward", "backward"

// A share with its 95 % interval; texts, not tokens, are the independent units (ratio estimator,
// Cochran 1977, section 6.3).
struct ShareInterval {
  double share = 0;
  double low = 0;
  double high = 0;
};

struct RelationScore {
  int layer = 0;
  int head = 0;
  RelationKind relation = RelationKind::kPronoun;
  RelationDirection direction = RelationDirection::kForward;
  int64_t queries = 0;
  ShareInterval mass;  // mean attention mass on the gold keys
  ShareInterval top1;  // share of queries whose largest weight lies on a gold key
  // The best of all heads that look at one fixed offset, on the same queries: its offset
  // (key - query) and top-1 share. Chosen on these very texts, so it is generous to the baseline.
  int64_t best_offset = 0;
  ShareInterval best_offset_top1;
  // What the head owes to the keys alone: the share of the same text's other tokens whose largest
  // weight lies on the same gold keys. A head that looks at every pronoun from everywhere finds
  // pronouns for their antecedents as well, but knows nothing of who they are.
  ShareInterval other_queries_top1;
  // top1's lower end lies above best_offset_top1's upper end, and the difference between top1 and
  // other_queries_top1, text by text, above zero; at 95 % over all rows together (Bonferroni: each
  // row is tested at 5 % / rows). The difference is held against the larger of its error and that
  // of queries drawn at random from their texts.
  bool above_baselines = false;
};

// A text with its gold relations, as the model reads it.
struct GoldText {
  AnalysedText text;
  std::vector<GoldRelation> relations;  // those within the tokens that the model sees
};

struct GoldTexts {
  std::vector<GoldText> texts;
  int64_t relations_cut = 0;  // beyond the model's max_len
};

// Checks that the model's tokenizer cuts each text into the gold tokens. Throws kInput naming
// `origin` and the example (from 1) where it does not.
GoldTexts AlignGold(const TextEncoder& encoder, std::span<const RelationsExample> examples,
                    const std::string& origin);

// A control: every relation's target moves to a random place of the same width in the same text,
// every token of which is as likely (a range that would pass the end goes on at the beginning).
// Scores against it must show no head above the baselines.
void ShuffleGold(std::span<GoldText> texts, uint64_t seed);

// One score per layer, head, relation and direction that occurs in the gold.
std::vector<RelationScore> ScoreRelations(const TextClassifier& model,
                                          std::span<const GoldText> texts);

}  // namespace headlight
