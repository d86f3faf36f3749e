// headlight gradcheck: every layer and the whole model against central differences.
#include <algorithm>
#include <memory>

#include "apps/headlight/command.h"
#include "apps/headlight/exit_codes.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/models/gradcheck.h"

namespace headlight::app {
namespace {

struct GradcheckArguments {
  GradCheckOptions options;
  bool json = false;
};

Table GradcheckTable(const std::vector<GradCheckRow>& rows) {
  Table table({{"layer", "", Align::kLeft},
               {"tensor", "", Align::kLeft},
               {"values"},
               {"largest error", "max_error"},
               {"tolerance"},
               {"", "ok", Align::kLeft}});
  for (const GradCheckRow& row : rows) {
    table.AddRow({row.layer, row.tensor, row.checked,
                  Cell::Text(fmt::format("{:.1e}", row.max_error), row.max_error),
                  Cell::Text(fmt::format("{:.0e}", row.tolerance), row.tolerance),
                  row.ok ? "ok" : "WRONG"});
  }
  return table;
}

void RunGradcheck(const GradcheckArguments& arguments) {
  std::vector<GradCheckRow> rows;
  for (const GradCheckCase& check : AllGradCheckCases(arguments.options.seed)) {
    const std::vector<GradCheckRow> more = CheckGradients(check, arguments.options);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const Table table = GradcheckTable(rows);
  if (arguments.json) {
    PrintBytes(TableAsJson(table) + "\n");
  } else {
    PrintTable(table);
  }
  const auto wrong =
      std::count_if(rows.begin(), rows.end(), [](const GradCheckRow& row) { return !row.ok; });
  Say("{} of {} gradients agree with central differences",
      static_cast<int64_t>(rows.size()) - wrong, rows.size());
  if (wrong > 0) SetExitCode(kExitCheckFailed);
}

}  // namespace

void AddGradcheckCommand(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "gradcheck", "Check every gradient by central differences in f64; exit 4 if one fails");
  auto arguments = std::make_shared<GradcheckArguments>();
  AddSeed(*command, arguments->options.seed, "Seed of the values");
  command->add_option("--values", arguments->options.values_per_tensor, "Values checked per tensor")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "JSON on stdout");
  command->callback([arguments] { RunGradcheck(*arguments); });
}

}  // namespace headlight::app
