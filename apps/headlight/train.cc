// headlight train: one run.

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/run_tables.h"
#include "apps/headlight/train_flags.h"
#include "headlight/train/prepared_data.h"
#include "headlight/train/trainer.h"

namespace headlight::app {
namespace {

struct TrainArguments {
  TrainFlags flags;
  std::string out;
  bool resume = false;
  bool replace = false;
  bool json = false;
};

OnExisting ExistingOf(const TrainArguments& arguments) {
  if (arguments.resume) return OnExisting::kResume;
  return arguments.replace ? OnExisting::kReplace : OnExisting::kRefuse;
}

void RunTrain(const TrainArguments& arguments) {
  const TrainConfig config = arguments.flags.Config();
  ValidateTrainConfig(config);
  const PreparedData data = PrepareData(config);
  if (data.train.skipped + data.valid.skipped > 0) {
    Say("{} rows without text or label are skipped", data.train.skipped + data.valid.skipped);
  }
  TerminalProgress progress(stderr);
  const RunResult result =
      Train(config, data, {arguments.out, ExistingOf(arguments), &progress, &StopRequested()});
  if (arguments.json) {
    PrintBytes(RunResultToJson(result) + "\n");
    return;
  }
  PrintTable(ResultTable(result));
  PrintBytes("\n");
  PrintTable(ConfusionTable(result.valid, result.labels));
  Say("run: {}", arguments.out);
}

}  // namespace

void AddTrainCommand(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("train", "Train a text classifier into a run directory");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("--out", arguments->out, "Run directory, created if need be")
      ->required()
      ->check(NotEmpty)
      ->type_name("DIR");
  auto* resume = command->add_flag("--resume", arguments->resume,
                                   "Go on with an interrupted run; a finished one is shown");
  command->add_flag("--replace", arguments->replace, "Start anew where a run exists")
      ->excludes(resume);
  command->add_flag("--json", arguments->json, "The result as JSON on stdout");
  arguments->flags.AddTo(*command, TrainConfig(), EveryField);
  command->get_option("--data")->required();
  command->callback([arguments] { RunTrain(*arguments); });
}

}  // namespace headlight::app
