// A comparison as a table, sentences and charts.
#pragma once

#include <string>
#include <vector>

#include "headlight/experiment/compare.h"
#include "headlight/report/page.h"
#include "headlight/report/table.h"

namespace headlight {

// A row per combination of choices, means over its seeds, then the runs that failed and the linear
// baseline.
Table ComparisonTable(const Comparison& comparison);

// What the table says, in words: the best row, whether differences exceed the seeds' spread, what
// attention bought over the linear baseline.
std::vector<std::string> ComparisonSentences(const Comparison& comparison);

// Learning curves of all cells; accuracy, time and memory against the first varied choice.
std::vector<ReportFigure> ComparisonFigures(const Comparison& comparison);

// All of it, for report.html.
ComparisonReport MakeComparisonReport(const Comparison& comparison);

}  // namespace headlight
