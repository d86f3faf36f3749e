// A comparison: a grid of training runs on one split of one data set, each in a run directory of
// its own, so that an interrupted comparison goes on where it was.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headlight/base/progress.h"
#include "headlight/experiment/grid.h"
#include "headlight/experiment/linear_baseline.h"
#include "headlight/train/config.h"
#include "headlight/train/metrics_log.h"
#include "headlight/train/run_directory.h"

namespace headlight {

struct CompareOptions {
  // The cells' run directories lie below it. Where it holds a report, every run there is to be a
  // cell of this grid, which may be larger.
  std::string directory;
  TrainConfig base;  // what is not varied; its seed is the first seed
  std::vector<Variation> variations;
  int64_t seeds = 1;  // base seed, base seed + 1, ...
  bool baseline = true;
  Progress* progress = nullptr;
  // Asked as a cell begins to train; until then there is nothing to save, and nobody need wait.
  std::function<const std::atomic<bool>*()> stop = [] { return nullptr; };
};

// One run of the grid.
struct ComparedRun {
  std::string directory;
  int64_t seed = 0;
  RunResult result;
  RunHistory history;
};

// A run in which a value became non-finite.
struct FailedRun {
  Choices choices;
  int64_t seed = 0;
  std::string directory;
  std::string problem;  // names the step and the place
};

// One combination of choices, over its seeds.
struct ComparedChoices {
  Choices choices;
  std::vector<ComparedRun> runs;
};

struct Comparison {
  std::string directory;
  TrainConfig base;
  std::vector<Variation> variations;
  std::vector<ComparedChoices> rows;  // with at least one run each
  std::vector<FailedRun> failed;      // in no row
  // On the data of the first row; absent when it was not asked for.
  std::optional<LinearBaseline> baseline;
  int64_t classes = 0;
};

// Trains every cell that has no result yet, choices in order and seeds within. All configurations
// are checked before the first run begins. A run in which a value becomes non-finite fails alone.
// Throws kUsage for choices that make no sense (or a directory whose cells were trained with
// others), kNumeric when every run failed, and what else Train throws.
Comparison RunComparison(const CompareOptions& options);

// The values of one measure over the seeds of a row.
std::vector<double> Accuracies(const ComparedChoices& row);

// What the rows differ in, tested: for every pair of rows whose accuracies differ beyond the seeds'
// spread (Welch's test at 5 %, divided by the number of pairs), and the best row.
struct PairDifference {
  size_t a = 0;  // rows; a has the higher mean
  size_t b = 0;
  double difference = 0;  // of mean accuracy
  double p = 1;
};
struct Findings {
  size_t best = 0;      // row with the highest mean valid accuracy
  bool tested = false;  // every row has at least two seeds, and there are two rows
  size_t pairs = 0;     // tested
  std::vector<PairDifference> different;  // those beyond the spread
};
Findings FindDifferences(const Comparison& comparison);

}  // namespace headlight
