// headlight eval: a run's model on labelled text.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/run_tables.h"
#include "apps/headlight/train_flags.h"
#include "headlight/base/error.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/evaluate.h"
#include "headlight/train/prepared_data.h"

namespace headlight::app {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> data;
  TrainFlags flags;
  PrecisionFlag precision;
  bool json = false;
};

nlohmann::json ToJson(const ClassificationMetrics& metrics, const EncodedDataset& texts,
                      const std::vector<std::string>& labels) {
  return {{"texts", metrics.count}, {"skipped", texts.skipped},      {"cut", texts.cut},
          {"loss", metrics.loss},   {"accuracy", metrics.accuracy},  {"macro_f1", metrics.macro_f1},
          {"labels", labels},       {"confusion", metrics.confusion}};
}

void RunEval(const EvalArguments& arguments) {
  const LoadedClassifier loaded =
      LoadClassifier(arguments.run, CheckpointChoice::kBest, arguments.precision.Given());
  const Dataset dataset = ReadEvaluationData(arguments.data, arguments.flags.Config().data.read);
  const EncodedDataset texts = loaded.encoder.EncodeDataset(dataset);
  if (texts.size() == 0) {
    throw Error(ErrorKind::kInput,
                "eval: {}: no row can be used; {} are skipped, for their text or label is empty",
                fmt::join(arguments.data, ", "), texts.skipped);
  }
  const ClassificationMetrics metrics = Evaluate(loaded.model, texts, {});
  if (arguments.json) {
    PrintBytes(ToJson(metrics, texts, loaded.encoder.labels()).dump() + "\n");
    return;
  }
  if (texts.skipped > 0) Say("{} rows without text or label are skipped", texts.skipped);
  PrintTable(MetricsTable(metrics));
  PrintBytes("\n");
  PrintTable(ConfusionTable(metrics, loaded.encoder.labels()));
}

}  // namespace

void AddEvalCommand(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("eval", "Loss, accuracy and confusions of a run on labelled text");
  auto arguments = std::make_shared<EvalArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  command->add_option("--data", arguments->data, "Labelled text")->required()->type_name("PATH");
  arguments->precision.AddTo(*command);
  command->add_flag("--json", arguments->json, "JSON on stdout");
  arguments->flags.AddTo(*command, TrainConfig(), ReaderField);
  command->callback([arguments] { RunEval(*arguments); });
}

}  // namespace headlight::app
