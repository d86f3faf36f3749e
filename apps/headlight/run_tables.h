// Results of runs as tables.
#pragma once

#include <string>
#include <vector>

#include "headlight/report/table.h"
#include "headlight/train/metrics.h"
#include "headlight/train/run_directory.h"

namespace headlight::app {

// The final numbers of one run.
Table ResultTable(const RunResult& result);

// Loss, accuracy, macro-F1 of an evaluation.
Table MetricsTable(const ClassificationMetrics& metrics);

// Rows are labels, columns predictions. With more than `kMostLabels` labels: the pairs most often
// confused.
inline constexpr size_t kMostLabels = 12;
Table ConfusionTable(const ClassificationMetrics& metrics, const std::vector<std::string>& labels);

// A row per run.
Table RunsTable(const std::vector<RunSummary>& runs);

}  // namespace headlight::app
