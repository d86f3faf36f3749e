#include "apps/headlight/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "headlight/train/config_field.h"

namespace headlight::app {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

Table MostConfused(const ClassificationMetrics& metrics, const std::vector<std::string>& labels) {
  std::vector<std::tuple<int64_t, size_t, size_t>> pairs;
  for (size_t label = 0; label < labels.size(); ++label) {
    for (size_t predicted = 0; predicted < labels.size(); ++predicted) {
      const int64_t count = metrics.confusion[label][predicted];
      if (label != predicted && count > 0) pairs.emplace_back(-count, label, predicted);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.resize(std::min<size_t>(pairs.size(), 10));
  Table table({{"label", "", Align::kLeft}, {"predicted", "", Align::kLeft}, {"texts", ""}});
  table.title = "most often confused";
  for (const auto& [count, label, predicted] : pairs) {
    table.AddRow({labels[label], labels[predicted], -count});
  }
  return table;
}

}  // namespace

Table ResultTable(const RunResult& result) {
  Table table({{"", "measure", Align::kLeft}, {"value", ""}});
  table.AddRow({"parameters", result.parameters});
  table.AddRow({"training texts", result.train_texts});
  table.AddRow({"validation texts", result.valid_texts});
  table.AddRow({"vocabulary", result.vocabulary});
  table.AddRow({"steps", result.steps});
  table.AddRow({"ended by", result.ended_by});
  table.AddRow({"best step", result.best_step});
  table.AddRow({"train loss", Cell::Real(result.train_loss, 4)});
  table.AddRow({"valid loss", Cell::Real(result.valid.loss, 4)});
  table.AddRow({"valid accuracy", Cell::Percent(result.valid.accuracy, 2)});
  table.AddRow({"valid macro-F1", Cell::Percent(result.valid.macro_f1, 2)});
  if (result.nonfinite_scores_replaced > 0) {
    table.AddRow({"non-finite scores replaced", result.nonfinite_scores_replaced});
  }
  table.AddRow({"seconds per epoch", Cell::Real(result.seconds_per_epoch, 2)});
  table.AddRow({"tokens/s", Cell::Real(result.tokens_per_second, 0)});
  for (const auto& [tag, bytes] : result.peak_bytes) {
    table.AddRow({"peak " + tag + ", MiB", Cell::Real(static_cast<double>(bytes) / kMiB, 1)});
  }
  table.AddRow({"peak resident, MiB",
                Cell::Real(static_cast<double>(result.peak_resident_bytes) / kMiB, 1)});
  return table;
}

Table MetricsTable(const ClassificationMetrics& metrics) {
  Table table({{"texts"}, {"loss"}, {"accuracy"}, {"macro-F1"}});
  table.AddRow({metrics.count, Cell::Real(metrics.loss, 4), Cell::Percent(metrics.accuracy, 2),
                Cell::Percent(metrics.macro_f1, 2)});
  return table;
}

Table ConfusionTable(const ClassificationMetrics& metrics, const std::vector<std::string>& labels) {
  if (labels.size() > kMostLabels) return MostConfused(metrics, labels);
  std::vector<Column> columns = {{"label", "", Align::kLeft}};
  for (const std::string& label : labels) {
    Column column{label, ""};
    column.group = "predicted";
    columns.push_back(column);
  }
  Table table(std::move(columns));
  for (size_t label = 0; label < labels.size(); ++label) {
    std::vector<Cell> cells = {labels[label]};
    for (int64_t count : metrics.confusion[label]) cells.emplace_back(count);
    table.AddRow(std::move(cells));
  }
  return table;
}

Table RunsTable(const std::vector<RunSummary>& runs) {
  Table table({{"run", "", Align::kLeft},
               {"heads"},
               {"dim"},
               {"layers"},
               {"seed"},
               {"state", "", Align::kLeft},
               {"step"},
               {"valid loss", "valid_loss"},
               {"valid accuracy", "valid_accuracy"},
               {"parameters"}});
  for (const RunSummary& run : runs) {
    const auto choice = [&run](const char* name) {
      return run.config ? Cell(GetField(*run.config, name)) : Cell();
    };
    std::vector<Cell> cells = {run.directory, choice("heads"), choice("dim"), choice("layers"),
                               choice("seed")};
    if (run.result) {
      cells.emplace_back("finished");
      cells.emplace_back(run.result->steps);
      cells.push_back(Cell::Real(run.result->valid.loss, 4));
      cells.push_back(Cell::Percent(run.result->valid.accuracy, 2));
      cells.emplace_back(run.result->parameters);
    } else {
      cells.emplace_back(run.problem.empty() ? "not finished" : run.problem);
      cells.emplace_back(run.last_step);
      cells.resize(table.columns().size());
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace headlight::app
