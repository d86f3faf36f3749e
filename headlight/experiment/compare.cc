#include "headlight/experiment/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/experiment/interval.h"
#include "headlight/train/config_field.h"
#include "headlight/train/prepared_data.h"
#include "headlight/train/trainer.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

TrainConfig ConfigOf(const CompareOptions& options, const Choices& choices, int64_t seed) {
  TrainConfig config = options.base;
  for (const auto& [name, value] : choices) SetField(config, name, value);
  config.training.seed += seed;
  ValidateTrainConfig(config);
  return config;
}

// Shows a run's progress under the name of its cell.
class CellProgress : public Progress {
 public:
  CellProgress(Progress* target, std::string name) : target_(target), name_(std::move(name)) {}
  void Update(const ProgressState& state) override {
    ProgressState named = state;
    named.title = name_ + " " + state.title;
    target_->Update(named);
  }
  void Message(const std::string& line) override { target_->Message(name_ + ": " + line); }
  void Finish() override { target_->Finish(); }

 private:
  Progress* target_;
  std::string name_;
};

std::vector<std::vector<int32_t>> IdsOf(const EncodedDataset& texts) {
  std::vector<std::vector<int32_t>> result;
  for (int64_t i = 0; i < texts.size(); ++i) {
    result.emplace_back(texts.ids.begin() + texts.offsets[static_cast<size_t>(i)],
                        texts.ids.begin() + texts.offsets[static_cast<size_t>(i) + 1]);
  }
  return result;
}

LinearBaseline FitBaseline(const PreparedData& data) {
  const auto train = IdsOf(data.train), valid = IdsOf(data.valid);
  return FitLinearBaseline({train, data.train.labels}, {valid, data.valid.labels});
}

// Prepares data when the last config's do not fit: a grid mostly varies the model.
class DataCache {
 public:
  const PreparedData& For(const TrainConfig& config) {
    if (data_ == nullptr || !SameData(config_, config)) {
      data_.reset();  // two sets of data need not be in memory at once
      data_ = std::make_unique<PreparedData>(PrepareData(config));
      config_ = config;
    }
    return *data_;
  }

 private:
  TrainConfig config_;
  std::unique_ptr<PreparedData> data_;
};

// A cell before it is trained.
struct GridCell {
  Choices choices;
  TrainConfig config;
  std::string directory;
};

GridCell CellOf(const CompareOptions& options, const Choices& choices, int64_t seed) {
  TrainConfig config = ConfigOf(options, choices, seed);
  const std::string name = CellName(choices, static_cast<uint64_t>(config.training.seed));
  return {choices, std::move(config), options.directory + "/" + name};
}

ComparedRun TrainCell(const CompareOptions& options, const GridCell& cell,
                      const PreparedData& data) {
  ComparedRun run{cell.directory, cell.config.training.seed, {}, {}};
  std::unique_ptr<CellProgress> progress;
  if (options.progress != nullptr) {
    progress = std::make_unique<CellProgress>(
        options.progress, fmt::format("{} seed {}", ChoicesLabel(cell.choices), run.seed));
  }
  run.result = Train(cell.config, data,
                     {run.directory, OnExisting::kResume, progress.get(), options.stop()});
  run.history = ReadHistory(RunPaths(run.directory));
  return run;
}

// A folder of other things is not made a comparison: a name was mistyped. Nor does a report
// replace what is compared on.
void RefuseForeignFolder(const CompareOptions& options, const std::set<fs::path>& cells) {
  std::error_code ignored;
  for (const std::vector<std::string>* files :
       {&options.base.data.data, &options.base.data.valid}) {
    for (const std::string& file : *files) {
      const fs::path path = fs::weakly_canonical(file, ignored);
      const bool inside = path.parent_path() == fs::weakly_canonical(options.directory, ignored);
      if (!inside || path.stem() != "report") continue;
      throw Error(ErrorKind::kUsage, "compare {}: its report could replace {}; name another --out",
                  options.directory, file);
    }
  }
  bool empty = true, cell = false, report = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.directory, ignored)) {
    const RunPaths run(entry.path());
    empty = false;
    report |= entry.path().stem() == "report";
    cell |= HoldsRun(run) ||
            (cells.contains(entry.path().filename()) && fs::exists(run.lock(), ignored));
  }
  // A report is ours where its table, which is written first, lies beside it.
  const bool ours = cell && (!report || fs::exists(options.directory + "/report.json", ignored));
  if (!fs::exists(RunPaths(options.directory).config(), ignored) && (empty || ours)) return;
  throw Error(ErrorKind::kUsage,
              "compare {}: holds other files and no comparison; name a new directory",
              options.directory);
}

// Before anything is trained: the runs that are there go on, and the report that is there is not
// replaced by one without its runs.
void CheckDirectory(const CompareOptions& options, const std::vector<Choices>& combinations) {
  std::error_code ignored;
  std::set<fs::path> cells;
  for (const Choices& choices : combinations) {
    for (int64_t seed = 0; seed < options.seeds; ++seed) {
      const GridCell cell = CellOf(options, choices, seed);
      const RunPaths paths(cell.directory);
      if (fs::exists(paths.config(), ignored)) CheckSameChoices(paths, cell.config);
      cells.insert(fs::path(cell.directory).filename());
    }
  }
  RefuseForeignFolder(options, cells);
  if (!fs::exists(options.directory + "/report.json", ignored)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.directory, ignored)) {
    const bool run = fs::exists(RunPaths(entry.path()).config(), ignored);
    if (!run || cells.contains(entry.path().filename())) continue;
    throw Error(ErrorKind::kUsage,
                "compare {}: holds the report of another comparison ({} is not in this one); name "
                "another --out, or delete that folder",
                options.directory, entry.path().filename().string());
  }
}

// The run joins `row`, or the comparison's failed ones.
void AddCell(const CompareOptions& options, const GridCell& cell, const PreparedData& data,
             ComparedChoices& row, Comparison& comparison) {
  try {
    row.runs.push_back(TrainCell(options, cell, data));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNumeric) throw;
    comparison.failed.push_back(
        {cell.choices, cell.config.training.seed, cell.directory, error.what()});
    if (options.progress != nullptr) {
      options.progress->Message(fmt::format("{} failed: {}", cell.directory, error.what()));
    }
  }
}

}  // namespace

Comparison RunComparison(const CompareOptions& options) {
  if (options.seeds < 1 || options.seeds > 1000) {
    throw Error(ErrorKind::kUsage, "--seeds: must be 1 to 1000, found {}", options.seeds);
  }
  const std::vector<Choices> combinations = ExpandGrid(options.variations);
  for (const Choices& choices : combinations) ConfigOf(options, choices, options.seeds - 1);
  CheckDirectory(options, combinations);

  Comparison comparison;
  comparison.directory = options.directory;
  comparison.base = options.base;
  comparison.variations = options.variations;
  DataCache cache;
  for (const Choices& choices : combinations) {
    ComparedChoices row{choices, {}};
    for (int64_t seed = 0; seed < options.seeds; ++seed) {
      const GridCell cell = CellOf(options, choices, seed);
      const PreparedData& data = cache.For(cell.config);
      if (options.baseline && !comparison.baseline) comparison.baseline = FitBaseline(data);
      comparison.classes = static_cast<int64_t>(data.encoder.labels().size());
      AddCell(options, cell, data, row, comparison);
    }
    if (!row.runs.empty()) comparison.rows.push_back(std::move(row));
  }
  if (comparison.rows.empty()) {
    const FailedRun& first = comparison.failed.front();
    throw Error(ErrorKind::kNumeric, "compare {}: every run failed, the first in {}: {}",
                options.directory, first.directory, first.problem);
  }
  return comparison;
}

std::vector<double> Accuracies(const ComparedChoices& row) {
  std::vector<double> values;
  for (const ComparedRun& run : row.runs) values.push_back(run.result.valid.accuracy);
  return values;
}

Findings FindDifferences(const Comparison& comparison) {
  Findings findings;
  std::vector<double> means;
  bool enough_seeds = true;
  for (const ComparedChoices& row : comparison.rows) {
    const std::vector<double> values = Accuracies(row);
    means.push_back(MeanWithInterval(values).mean);
    enough_seeds = enough_seeds && values.size() >= 2;
    if (means.back() > means[findings.best]) findings.best = means.size() - 1;
  }
  const size_t rows = means.size();
  findings.tested = enough_seeds && rows >= 2;
  if (!findings.tested) return findings;
  findings.pairs = rows * (rows - 1) / 2;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = i + 1; j < rows; ++j) {
      const double p = WelchPValue(Accuracies(comparison.rows[i]), Accuracies(comparison.rows[j]));
      if (p * static_cast<double>(findings.pairs) >= 0.05) continue;
      const bool i_better = means[i] >= means[j];
      findings.different.push_back(
          {i_better ? i : j, i_better ? j : i, std::abs(means[i] - means[j]), p});
    }
  }
  return findings;
}

}  // namespace headlight
