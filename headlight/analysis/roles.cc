#include "headlight/analysis/roles.h"

#include <fmt/format.h>

namespace headlight {
namespace {

HeadRole RoleOf(RelationKind relation) {
  switch (relation) {
    case RelationKind::kPronoun:
      return HeadRole::kPronoun;
    case RelationKind::kVerbObject:
      return HeadRole::kVerbObject;
    case RelationKind::kAdjective:
      return HeadRole::kAdjective;
    case RelationKind::kSubject:
      return HeadRole::kSubject;
    case RelationKind::kPunctuation:
      return HeadRole::kPunctuation;
  }
  return HeadRole::kMixed;
}

// The head's relation that stands out most over the offset baseline, or null.
const RelationScore* BestRelation(const HeadSummary& summary, std::span<const RelationScore> scores,
                                  double least_top1) {
  const RelationScore* best = nullptr;
  const auto gain = [](const RelationScore& score) {
    return score.top1.share - score.best_offset_top1.share;
  };
  for (const RelationScore& score : scores) {
    if (score.layer != summary.layer || score.head != summary.head) continue;
    if (!score.above_baselines || score.top1.share < least_top1) continue;
    if (best == nullptr || gain(score) > gain(*best)) best = &score;
  }
  return best;
}

}  // namespace

const char* HeadRoleName(HeadRole role) {
  switch (role) {
    case HeadRole::kPronoun:
      return "pronoun";
    case HeadRole::kVerbObject:
      return "verb-object";
    case HeadRole::kAdjective:
      return "adjective";
    case HeadRole::kSubject:
      return "subject";
    case HeadRole::kPunctuation:
      return "punctuation";
    case HeadRole::kNeighbour:
      return "neighbour";
    case HeadRole::kUniform:
      return "uniform";
    case HeadRole::kMixed:
      return "mixed";
    case HeadRole::kDegenerate:
      return "degenerate";
  }
  return "";
}

NamedRole NameRole(const HeadSummary& summary, std::span<const RelationScore> scores,
                   const RoleThresholds& thresholds) {
  if (summary.first >= thresholds.stuck_first) {
    return {HeadRole::kDegenerate,
            fmt::format("{:.2f} of its mass lies on the first token", summary.first)};
  }
  const bool uniform = summary.relative_entropy >= thresholds.uniform;
  if (!uniform && summary.query_dependence < thresholds.same_for_all_queries) {
    return {HeadRole::kDegenerate,
            fmt::format("every query attends alike (query dependence {:.3f})",
                        summary.query_dependence)};
  }
  if (uniform) {
    return {HeadRole::kUniform, fmt::format("relative entropy {:.3f}", summary.relative_entropy)};
  }
  if (const RelationScore* best = BestRelation(summary, scores, thresholds.relation_top1)) {
    return {RoleOf(best->relation),
            fmt::format("top-1 {:.2f} {}, best offset {:.2f}", best->top1.share,
                        RelationDirectionName(best->direction), best->best_offset_top1.share)};
  }
  if (summary.punctuation >= thresholds.punctuation &&
      summary.punctuation >= 2 * summary.uniform_punctuation) {
    return {HeadRole::kPunctuation, fmt::format("{:.2f} on punctuation (uniform: {:.2f})",
                                                summary.punctuation, summary.uniform_punctuation)};
  }
  const double near = summary.previous + summary.self + summary.next;
  if (near >= thresholds.neighbour) {
    return {HeadRole::kNeighbour, fmt::format("previous {:.2f}, itself {:.2f}, next {:.2f}",
                                              summary.previous, summary.self, summary.next)};
  }
  return {HeadRole::kMixed, "no threshold is reached"};
}

std::vector<std::string> DescribeThresholds(const RoleThresholds& thresholds) {
  return {
      fmt::format("degenerate: {:.2f} or more on the first token, or every query attends alike "
                  "(dependence below {:.2f}) without being uniform",
                  thresholds.stuck_first, thresholds.same_for_all_queries),
      fmt::format("uniform: relative entropy at least {:.2f}", thresholds.uniform),
      fmt::format(
          "pronoun, verb-object, adjective, subject, punctuation: top-1 at least {:.2f}, above the "
          "best fixed offset and above that of other queries",
          thresholds.relation_top1),
      fmt::format("punctuation (without gold): at least {:.2f}, and twice a uniform head's share",
                  thresholds.punctuation),
      fmt::format("neighbour: previous + itself + next at least {:.2f}", thresholds.neighbour),
      "mixed: none of these",
  };
}

}  // namespace headlight
