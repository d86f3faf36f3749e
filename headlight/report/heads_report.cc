#include "headlight/report/heads_report.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace headlight {
namespace {

using RelationKey = std::pair<RelationKind, RelationDirection>;

std::map<RelationKey, const RelationScore*> BestByRelation(std::span<const RelationScore> scores) {
  std::map<RelationKey, const RelationScore*> best;
  for (const RelationScore& score : scores) {
    const RelationScore*& entry = best[{score.relation, score.direction}];
    const auto rank = [](const RelationScore& of) {
      return std::pair(of.above_baselines, of.top1.share);
    };
    if (entry == nullptr || rank(score) > rank(*entry)) entry = &score;
  }
  return best;
}

Cell ShareCell(const ShareInterval& share) {
  return Cell::Text(fmt::format("{:.3f} [{:.3f}, {:.3f}]", share.share, share.low, share.high),
                    share.share);
}

std::vector<Column> ScoreColumns() {
  return {{"relation", "", Align::kLeft},
          {"direction", "", Align::kLeft},
          {"queries"},
          {"layer"},
          {"head"},
          {"mass [95 %]", "mass"},
          {"top-1 [95 %]", "top1"},
          {"top-1 low", "top1_low", Align::kRight, Audience::kMachines},
          {"top-1 high", "top1_high", Align::kRight, Audience::kMachines},
          {"best offset", "best_offset"},
          {"its top-1 [95 %]", "best_offset_top1"},
          {"other queries' top-1 [95 %]", "other_queries_top1"},
          {"clearly above", "above_baselines"}};
}

void AddScore(const RelationScore& score, Table& table) {
  table.AddRow(
      {RelationName(score.relation), RelationDirectionName(score.direction), score.queries,
       score.layer, score.head, ShareCell(score.mass), ShareCell(score.top1),
       Cell::Real(score.top1.low, 3), Cell::Real(score.top1.high, 3),
       Cell::Text(fmt::format("{:+d}", score.best_offset), static_cast<double>(score.best_offset)),
       ShareCell(score.best_offset_top1), ShareCell(score.other_queries_top1),
       score.above_baselines ? "yes" : "no"});
}

}  // namespace

Table HeadTable(std::span<const HeadSummary> summaries, std::span<const RelationScore> scores,
                const RoleThresholds& thresholds) {
  Table table({{"layer"},
               {"head"},
               {"entropy"},
               {"relative", "relative_entropy"},
               {"mean dist", "mean_distance"},
               {"argmax dist", "argmax_distance"},
               {"max dist", "max_distance"},
               {"first"},
               {"punct", "punctuation"},
               {"prev", "previous"},
               {"self"},
               {"next"},
               {"by query", "query_dependence"},
               {"role", "", Align::kLeft},
               {"why", "", Align::kLeft}});
  for (const HeadSummary& head : summaries) {
    const NamedRole role = NameRole(head, scores, thresholds);
    table.AddRow({head.layer, head.head, Cell::Real(head.entropy, 3),
                  Cell::Real(head.relative_entropy, 3), Cell::Real(head.mean_distance, 2),
                  Cell::Real(head.argmax_distance, 2), Cell::Real(head.max_distance, 0),
                  Cell::Real(head.first, 3), Cell::Real(head.punctuation, 3),
                  Cell::Real(head.previous, 3), Cell::Real(head.self, 3), Cell::Real(head.next, 3),
                  Cell::Real(head.query_dependence, 3), HeadRoleName(role.role), role.reason});
  }
  return table;
}

Table BestHeadsTable(std::span<const RelationScore> scores) {
  Table table(ScoreColumns());
  for (const auto& [key, score] : BestByRelation(scores)) AddScore(*score, table);
  return table;
}

Table RelationTable(std::span<const RelationScore> scores) {
  Table table(ScoreColumns());
  for (const RelationScore& score : scores) AddScore(score, table);
  return table;
}

std::string RelationSentence(std::span<const RelationScore> scores) {
  std::set<RelationKind> above;
  for (const RelationScore& score : scores) {
    if (score.above_baselines) above.insert(score.relation);
  }
  if (above.empty()) return "No head lies clearly above both baselines for any relation.";
  std::string names;
  for (RelationKind relation : above)
    names += (names.empty() ? "" : ", ") + std::string(RelationName(relation));
  return fmt::format("Heads lie clearly above both baselines for {} relation{}: {}.", above.size(),
                     above.size() == 1 ? "" : "s", names);
}

}  // namespace headlight
