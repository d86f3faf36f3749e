// Tables of what heads do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headlight/analysis/head_summary.h"
#include "headlight/analysis/relation_scores.h"
#include "headlight/analysis/roles.h"
#include "headlight/report/table.h"

namespace headlight {

// A row per head: its figures, its role, and the reason for it.
Table HeadTable(std::span<const HeadSummary> summaries, std::span<const RelationScore> scores,
                const RoleThresholds& thresholds);

// A row per relation and direction: the head that scores highest, one clearly above both baselines
// if there is one.
Table BestHeadsTable(std::span<const RelationScore> scores);

// A row per head, relation and direction.
Table RelationTable(std::span<const RelationScore> scores);

// The relations for which a head lies clearly above the offset baseline, in words.
std::string RelationSentence(std::span<const RelationScore> scores);

}  // namespace headlight
