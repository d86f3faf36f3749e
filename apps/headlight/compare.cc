// headlight compare: a grid of runs, one table, one page.
#include <fmt/ranges.h>

#include <memory>

#include "apps/headlight/command.h"
#include "apps/headlight/exit_codes.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/experiment/compare.h"
#include "headlight/io/file.h"
#include "headlight/report/comparison_report.h"

namespace headlight::app {
namespace {

struct CompareArguments {
  TrainFlags flags;
  std::vector<std::string> vary;
  std::string out = "runs/compare";
  int64_t seeds = 1;
  bool no_baseline = false;
  bool json = false;
};

CompareOptions OptionsOf(const CompareArguments& arguments) {
  CompareOptions options;
  TrainFlags::Grid grid = arguments.flags.SplitGrid();
  options.base = std::move(grid.base);
  options.variations = std::move(grid.variations);
  for (const std::string& text : arguments.vary) options.variations.push_back(ParseVariation(text));
  // The question that the command is there for.
  if (options.variations.empty()) {
    options.variations.push_back(
        ParseVariation("heads=" + arguments.flags.Given("heads", "1,2,4,8")));
  }
  options.directory = arguments.out;
  options.seeds = arguments.seeds;
  options.baseline = !arguments.no_baseline;
  options.stop = [] { return &StopRequested(); };
  return options;
}

void WriteReports(const Comparison& comparison) {
  const Table table = ComparisonTable(comparison);
  const std::string& out = comparison.directory;
  std::string markdown = TableAsMarkdown(table) + "\n";
  for (const std::string& sentence : ComparisonSentences(comparison))
    markdown += "- " + sentence + "\n";
  WriteFileAtomically(out + "/report.json", TableAsJson(table) + "\n");  // tells a report as ours
  WriteFileAtomically(out + "/report.md", markdown);
  WriteFileAtomically(out + "/report.csv", TableAsCsv(table));
  WriteFileAtomically(out + "/report.html", ComparisonPage(MakeComparisonReport(comparison)));
}

void RunCompare(const CompareArguments& arguments) {
  CompareOptions options = OptionsOf(arguments);
  TerminalProgress progress(stderr);
  options.progress = &progress;
  const Comparison comparison = RunComparison(options);
  WriteReports(comparison);
  if (arguments.json) {
    PrintBytes(TableAsJson(ComparisonTable(comparison)) + "\n");
  } else {
    PrintTable(ComparisonTable(comparison));
    PrintBytes("\n");
    for (const std::string& sentence : ComparisonSentences(comparison)) PrintBytes(sentence + "\n");
  }
  Say("report: {}/report.html (also .md, .csv, .json)", arguments.out);
  if (comparison.failed.empty()) return;
  std::vector<std::string> failed;
  for (const FailedRun& run : comparison.failed) failed.push_back(run.directory);
  Say("failed, and in no mean of the table: {}", fmt::join(failed, ", "));
  SetExitCode(kExitFailed);
}

}  // namespace

void AddCompareCommand(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "compare",
      "Train a grid of choices (heads 1,2,4,8 unless said) and compare them in one table");
  auto arguments = std::make_shared<CompareArguments>();
  command
      ->add_option(
          "--vary", arguments->vary,
          "Any flag of train with its values: heads=1,2,4,8; may be repeated. A flag given "
          "with commas (--heads 1,2) means the same")
      ->type_name("NAME=VALUE,...");
  command->add_option("--seeds", arguments->seeds, "Runs per combination, from --seed on")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option(
          "--out", arguments->out,
          "Directory of the runs and the report; its comparison may be extended, not replaced")
      ->check(NotEmpty)
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag("--no-baseline", arguments->no_baseline, "Leave the linear baseline out");
  command->add_flag("--json", arguments->json, "The table as JSON on stdout");
  arguments->flags.AddTo(*command, TrainConfig(), EveryField);
  command->get_option("--data")->required();
  command->callback([arguments] { RunCompare(*arguments); });
}

}  // namespace headlight::app
