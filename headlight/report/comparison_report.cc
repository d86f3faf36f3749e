#include "headlight/report/comparison_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "headlight/experiment/interval.h"
#include "headlight/report/chart.h"
#include "headlight/train/config_field.h"

namespace headlight {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

MeanInterval Over(const ComparedChoices& row,
                  const std::function<double(const RunResult&)>& value) {
  std::vector<double> values;
  for (const ComparedRun& run : row.runs) values.push_back(value(run.result));
  return MeanWithInterval(values);
}

double Mean(const ComparedChoices& row, const std::function<double(const RunResult&)>& value) {
  return Over(row, value).mean;
}

double PeakMiB(const RunResult& result, std::string_view tag) {
  for (const auto& [name, bytes] : result.peak_bytes) {
    if (name == tag) return static_cast<double>(bytes) / kMiB;
  }
  return std::nan("");
}

// "total", then the tags of the runs.
std::vector<std::string> MemoryTags(const Comparison& comparison) {
  std::vector<std::string> tags;
  for (const auto& entry : comparison.rows.front().runs.front().result.peak_bytes) {
    const std::string& name = entry.first;
    const bool used = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                  [&name](const ComparedChoices& row) {
                                    return PeakMiB(row.runs.front().result, name) >= 0.05;
                                  });
    if (used) tags.push_back(name);
  }
  std::stable_partition(tags.begin(), tags.end(), [](const auto& tag) { return tag == "total"; });
  return tags;
}

std::vector<Column> TableColumns(const Comparison& comparison) {
  std::vector<Column> columns;
  for (const Variation& variation : comparison.variations) {
    columns.push_back({variation.name, variation.name, Align::kRight});
  }
  if (columns.empty()) columns.push_back({"choices", "choices", Align::kLeft});
  for (const Column& column : std::vector<Column>{
           {"parameters", "parameters"},
           {"seeds", "seeds"},
           {"train loss", "train_loss"},
           {"valid loss", "valid_loss"},
           {"valid accuracy %", "valid_accuracy"},
           {"± 95 %", "valid_accuracy_half_width", Align::kRight, Audience::kMachines},
           {"s/epoch", "seconds_per_epoch"},
           {"tokens/s", "tokens_per_second"}}) {
    columns.push_back(column);
  }
  for (const std::string& tag : MemoryTags(comparison)) {
    columns.push_back({tag, "peak_mib_" + tag, Align::kRight, Audience::kBoth, "peak memory, MiB"});
  }
  columns.push_back(
      {"resident", "peak_mib_resident", Align::kRight, Audience::kBoth, "peak memory, MiB"});
  return columns;
}

std::vector<Cell> RowCells(const Comparison& comparison, const ComparedChoices& row) {
  std::vector<Cell> cells;
  for (const auto& [name, value] : row.choices) cells.emplace_back(value);
  if (cells.empty()) cells.emplace_back(ChoicesLabel(row.choices));
  const MeanInterval accuracy = MeanWithInterval(Accuracies(row));
  cells.emplace_back(row.runs.front().result.parameters);
  cells.emplace_back(static_cast<int64_t>(row.runs.size()));
  cells.push_back(Cell::Real(Mean(row, [](const RunResult& r) { return r.train_loss; }), 4));
  cells.push_back(Cell::Real(Mean(row, [](const RunResult& r) { return r.valid.loss; }), 4));
  cells.push_back(Cell::Text(FormatInterval(accuracy, 100, 2), accuracy.mean));
  cells.push_back(Cell::Real(accuracy.half_width, 4));
  cells.push_back(Cell::Real(Mean(row, [](const RunResult& r) { return r.seconds_per_epoch; }), 1));
  cells.emplace_back(static_cast<int64_t>(
      std::llround(Mean(row, [](const RunResult& r) { return r.tokens_per_second; }))));
  for (const std::string& tag : MemoryTags(comparison)) {
    cells.push_back(
        Cell::Real(Mean(row, [&tag](const RunResult& r) { return PeakMiB(r, tag); }), 1));
  }
  cells.push_back(Cell::Real(
      Mean(row,
           [](const RunResult& r) { return static_cast<double>(r.peak_resident_bytes) / kMiB; }),
      1));
  return cells;
}

// Whether rows differ in what they are trained on; the baseline is fitted on the texts of the
// first.
bool VariesTexts(const Comparison& comparison) {
  return std::any_of(comparison.variations.begin(), comparison.variations.end(),
                     [](const Variation& variation) {
                       const std::string& section = FindField(variation.name).section;
                       return section == "data" || section == "text";
                     });
}

void AddBaselineRow(const Comparison& comparison, Table& table) {
  const LinearBaseline& baseline = *comparison.baseline;
  std::vector<Cell> cells;
  for (const Column& column : table.columns()) {
    if (cells.empty()) {
      cells.emplace_back("words + bigrams");
    } else if (column.key == "parameters") {
      const int64_t models = comparison.classes == 2 ? 1 : comparison.classes;
      cells.emplace_back(baseline.features * models);
    } else if (column.key == "valid_accuracy") {
      cells.push_back(Cell::Text(fmt::format("{:.2f}", baseline.valid_accuracy * 100),
                                 baseline.valid_accuracy));
    } else {
      cells.emplace_back();
    }
  }
  table.StartGroup(
      fmt::format("logistic regression (liblinear) on {}",
                  VariesTexts(comparison) ? "the texts of the first row" : "the same split"));
  table.AddRow(std::move(cells));
}

void AddFailedRows(const Comparison& comparison, Table& table) {
  if (comparison.failed.empty()) return;
  table.StartGroup("failed: a value became non-finite");
  for (const FailedRun& run : comparison.failed) {
    std::vector<Cell> cells;
    for (const auto& [name, value] : run.choices) cells.emplace_back(value);
    if (cells.empty()) cells.emplace_back(ChoicesLabel(run.choices));
    for (size_t i = cells.size(); i < table.columns().size(); ++i) {
      const std::string& key = table.columns()[i].key;
      cells.emplace_back();
      // Null for machines: there are no numbers.
      if (key == "seeds") cells.back().text = fmt::format("seed {}", run.seed);
      if (key == "valid_accuracy") cells.back().text = "failed";
    }
    table.AddRow(std::move(cells));
  }
}

std::string Points(double share) { return fmt::format("{:.2f} points", share * 100); }

std::string DifferenceSentence(const Comparison& comparison, const Findings& findings) {
  if (comparison.rows.size() < 2)
    return "One combination of choices was trained: there is nothing to compare it with.";
  if (!findings.tested) {
    return "Whether rows differ by more than chance cannot be said from one seed each; use --seeds "
           "3 or more.";
  }
  if (findings.different.empty()) {
    return fmt::format(
        "No difference between rows exceeds the spread of the seeds (Welch's test, 5 % over all {} "
        "pairs): "
        "choose by cost.",
        findings.pairs);
  }
  std::string sentence = "Beyond the spread of the seeds (Welch's test, 5 % over all pairs): ";
  for (size_t i = 0; i < findings.different.size(); ++i) {
    const PairDifference& pair = findings.different[i];
    sentence += fmt::format("{}{} is better than {} by {}", i == 0 ? "" : "; ",
                            ChoicesLabel(comparison.rows[pair.a].choices),
                            ChoicesLabel(comparison.rows[pair.b].choices), Points(pair.difference));
  }
  if (findings.different.size() < findings.pairs) {
    sentence += fmt::format(". The other {} pairs do not differ beyond it",
                            findings.pairs - findings.different.size());
  }
  return sentence + ".";
}

std::string BaselineSentence(const Comparison& comparison, const MeanInterval& best) {
  if (VariesTexts(comparison)) {
    return fmt::format(
        "Logistic regression on words and bigrams reaches {:.2f} % on the texts of the first row; "
        "rows of other texts cannot be set beside it.",
        comparison.baseline->valid_accuracy * 100);
  }
  const double gain = best.mean - comparison.baseline->valid_accuracy;
  return fmt::format(
      "Logistic regression on words and bigrams reaches {:.2f} % on the same split; the best row "
      "is {} {}.",
      comparison.baseline->valid_accuracy * 100, Points(std::abs(gain)),
      gain >= 0 ? "above it" : "below it");
}

// A choice as a place on a logarithmic axis; nothing where it is no positive number.
std::optional<double> Abscissa(const std::string& choice) {
  char* end = nullptr;
  const double value = std::strtod(choice.c_str(), &end);
  if (choice.empty() || *end != '\0' || !(value > 0) || std::isinf(value)) return std::nullopt;
  return value;
}

// The choices as config.toml has them; where they were varied, all of them.
std::string ConfigurationText(const Comparison& comparison) {
  std::string text = TrainConfigToToml(comparison.base);
  for (const Variation& variation : comparison.variations) {
    const std::string key = "\n" + FindField(variation.name).TomlKey() + " = ";
    const size_t value = text.find(key) + key.size();
    text.replace(value, text.find('\n', value) - value,
                 fmt::format("{}  # varied", fmt::join(variation.values, ", ")));
  }
  return text;
}

// "naive · 8 · fp32": charts have no room for the names, which stand once, by VariedNames.
std::string Values(const Choices& choices) {
  std::vector<std::string> values;
  for (const auto& [name, value] : choices) values.push_back(value);
  return values.empty() ? ChoicesLabel(choices) : fmt::format("{}", fmt::join(values, " · "));
}

std::string VariedNames(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Variation& variation : comparison.variations) names.push_back(variation.name);
  return fmt::format("{}", fmt::join(names, " · "));
}

// Choices but for that on the axis: what makes a series of its own.
std::string SeriesName(Choices choices, size_t on_axis) {
  choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(on_axis));
  return choices.empty() ? "" : Values(choices);
}

ReportFigure LearningCurves(const Comparison& comparison) {
  LineChart chart;
  chart.title = "Learning curves";
  chart.x_label = "epoch";
  chart.y_label = "valid accuracy";
  chart.y_percent = true;
  chart.marks = Marks::kLineAndPoints;
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    for (const ComparedRun& run : comparison.rows[i].runs) {
      ChartSeries series;
      series.name = Values(comparison.rows[i].choices);
      series.style = static_cast<int>(i);
      for (const EpochRecord& record : run.history.epochs) {
        series.x.push_back(record.epoch);
        series.y.push_back(record.valid_accuracy);
      }
      chart.series.push_back(std::move(series));
    }
  }
  std::string caption = "Every seed is a line; seeds of the same choices share a colour.";
  if (!comparison.variations.empty()) {
    caption += fmt::format(" Names: {}.", VariedNames(comparison));
  }
  return {chart.title, caption, DrawLineChart(chart, PictureFormat::kSvg)};
}

// The varied choice against which accuracy is drawn: heads, else the first that is numbers alone.
std::optional<size_t> NumericVariation(const Comparison& comparison) {
  std::optional<size_t> first;
  for (size_t v = 0; v < comparison.variations.size(); ++v) {
    const bool numeric = std::all_of(
        comparison.rows.begin(), comparison.rows.end(),
        [v](const ComparedChoices& row) { return Abscissa(row.choices[v].second).has_value(); });
    if (numeric && comparison.variations[v].name == "heads") return v;
    if (numeric && !first) first = v;
  }
  return first;
}

ReportFigure AccuracyFigure(const Comparison& comparison, size_t on_axis) {
  LineChart chart;
  const std::string varied = comparison.variations[on_axis].name;
  bool intervals = false;
  chart.title = "Valid accuracy against " + varied;
  chart.x_label = varied;
  chart.y_label = "valid accuracy";
  chart.y_percent = true;
  chart.x_scale = XScale::kLog2;
  chart.marks = Marks::kLineAndPoints;
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedChoices& row = comparison.rows[i];
    const std::string name = SeriesName(row.choices, on_axis);
    auto series = std::find_if(chart.series.begin(), chart.series.end(),
                               [&name](const ChartSeries& s) { return s.name == name; });
    if (series == chart.series.end()) {
      chart.series.emplace_back();
      series = chart.series.end() - 1;
      series->name = name;
    }
    const MeanInterval accuracy = MeanWithInterval(Accuracies(row));
    const double half = std::isnan(accuracy.half_width) ? 0 : accuracy.half_width;
    intervals |= !std::isnan(accuracy.half_width);
    series->x.push_back(*Abscissa(row.choices[on_axis].second));
    series->y.push_back(accuracy.mean);
    series->low.push_back(std::max(0.0, accuracy.mean - half));
    series->high.push_back(std::min(1.0, accuracy.mean + half));
  }
  return {chart.title,
          intervals ? "Means over the seeds with 95 % intervals." : "One seed, so no intervals.",
          DrawLineChart(chart, PictureFormat::kSvg)};
}

ReportFigure CostFigure(const Comparison& comparison, const std::string& title,
                        const std::string& unit,
                        const std::function<double(const RunResult&)>& cost) {
  BarChart chart;
  chart.title = title;
  chart.x_label = VariedNames(comparison);
  chart.y_label = unit;
  BarSeries series{title, {}};
  for (const ComparedChoices& row : comparison.rows) {
    chart.categories.push_back(Values(row.choices));
    series.values.push_back(Mean(row, cost));
  }
  chart.series.push_back(std::move(series));
  return {title, "Means over the seeds.", DrawBarChart(chart, PictureFormat::kSvg)};
}

}  // namespace

Table ComparisonTable(const Comparison& comparison) {
  Table table(TableColumns(comparison));
  for (const ComparedChoices& row : comparison.rows) table.AddRow(RowCells(comparison, row));
  AddFailedRows(comparison, table);
  if (comparison.baseline) AddBaselineRow(comparison, table);
  return table;
}

std::vector<std::string> ComparisonSentences(const Comparison& comparison) {
  const Findings findings = FindDifferences(comparison);
  const ComparedChoices& best_row = comparison.rows[findings.best];
  const MeanInterval best = MeanWithInterval(Accuracies(best_row));
  std::vector<std::string> sentences;
  const auto level = std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                   [&best](const ComparedChoices& row) {
                                     return MeanWithInterval(Accuracies(row)).mean == best.mean;
                                   });
  sentences.push_back(fmt::format("Highest valid accuracy: {} with {} %{}.",
                                  ChoicesLabel(best_row.choices), FormatInterval(best, 100, 2),
                                  level < 2 ? "" : fmt::format(" ({} rows are level)", level)));
  sentences.push_back(DifferenceSentence(comparison, findings));
  if (comparison.baseline) sentences.push_back(BaselineSentence(comparison, best));
  for (const FailedRun& run : comparison.failed) {
    sentences.push_back(fmt::format("{} with seed {} failed and is in no mean ({}): {}.",
                                    ChoicesLabel(run.choices), run.seed, run.directory,
                                    run.problem));
  }
  return sentences;
}

std::vector<ReportFigure> ComparisonFigures(const Comparison& comparison) {
  std::vector<ReportFigure> figures = {LearningCurves(comparison)};
  if (const std::optional<size_t> on_axis = NumericVariation(comparison)) {
    figures.push_back(AccuracyFigure(comparison, *on_axis));
  }
  const std::string by = comparison.variations.empty() ? "" : " against " + VariedNames(comparison);
  figures.push_back(CostFigure(comparison, "Time per epoch" + by, "seconds",
                               [](const RunResult& r) { return r.seconds_per_epoch; }));
  figures.push_back(CostFigure(comparison, "Peak memory" + by, "MiB",
                               [](const RunResult& r) { return PeakMiB(r, "total"); }));
  return figures;
}

ComparisonReport MakeComparisonReport(const Comparison& comparison) {
  ComparisonReport report;
  report.title = "Headlight: comparison";
  const RunResult& first = comparison.rows.front().runs.front().result;
  report.summary =
      fmt::format("{} on {}: {} training and {} validation texts, {} classes, vocabulary {}.",
                  comparison.rows.size() == 1
                      ? "One combination of choices"
                      : fmt::format("{} combinations of choices", comparison.rows.size()),
                  GetField(comparison.base, "data"), first.train_texts, first.valid_texts,
                  comparison.classes, first.vocabulary);
  report.table = ComparisonTable(comparison);
  report.sentences = ComparisonSentences(comparison);
  report.figures = ComparisonFigures(comparison);
  report.config = ConfigurationText(comparison);
  const nlohmann::json environment = nlohmann::json::parse(EnvironmentJson());
  for (const auto& [name, value] : environment.items()) {
    report.environment.emplace_back(name,
                                    value.is_string() ? value.get<std::string>() : value.dump());
  }
  return report;
}

}  // namespace headlight
