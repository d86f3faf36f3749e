// Naming what a head does, by stated thresholds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headlight/analysis/head_summary.h"
#include "headlight/analysis/relation_scores.h"

namespace headlight {

enum class HeadRole {
  kPronoun,
  kVerbObject,
  kAdjective,
  kSubject,
  kPunctuation,
  kNeighbour,
  kUniform,
  kMixed,
  kDegenerate,
};
// "pronoun", "verb-object", "adjective", "subject", "punctuation", "neighbour", "uniform", "mixed",
// "degenerate".
const char* HeadRoleName(HeadRole role);

// Tried from top to bottom; the first that holds names the role.
struct RoleThresholds {
  // Degenerate: the head puts this share on the first token whoever asks ...
  double stuck_first = 0.90;
  // ... or every query of a text attends alike (HeadSummary::query_dependence below this) although
  // the weights are not uniform.
  double same_for_all_queries = 0.02;
  // Uniform: relative entropy at least this.
  double uniform = 0.95;
  // A relation (either direction): above the fixed-offset baseline, and top-1 at least this.
  double relation_top1 = 0.40;
  // Punctuation: at least this share, and twice what a uniform head puts there.
  double punctuation = 0.50;
  // Neighbour: previous, next and the token itself together.
  double neighbour = 0.60;
};

struct NamedRole {
  HeadRole role = HeadRole::kMixed;
  std::string reason;  // the figure that decided: "top-1 0.83 forward, best offset 0.21"
};

// `scores` are the relation scores of all heads, or empty when there are none.
NamedRole NameRole(const HeadSummary& summary, std::span<const RelationScore> scores,
                   const RoleThresholds& thresholds);

// The thresholds in words, one line each, for the program's output.
std::vector<std::string> DescribeThresholds(const RoleThresholds& thresholds);

}  // namespace headlight
