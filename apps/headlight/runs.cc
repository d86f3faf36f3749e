// headlight runs: the run directories of a folder with their results.
#include <memory>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/run_tables.h"
#include "headlight/train/run_directory.h"

namespace headlight::app {

void AddRunsCommand(CLI::App& program) {
  struct Arguments {
    std::string folder = "runs";
    bool json = false;
  };
  CLI::App* command = program.add_subcommand("runs", "List run directories with their results");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("folder", arguments->folder, "Folder of runs")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "JSON on stdout");
  command->callback([arguments] {
    const Table table = RunsTable(ListRuns(arguments->folder));
    if (arguments->json) {
      PrintBytes(TableAsJson(table) + "\n");
    } else {
      PrintTable(table);
    }
  });
}

}  // namespace headlight::app
