// headlight predict: labels for a text, a file's lines, or the lines of stdin.
#include <fmt/format.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/base/error.h"
#include "headlight/io/file.h"
#include "headlight/report/width.h"
#include "headlight/text/unicode.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/evaluate.h"

namespace headlight::app {
namespace {

struct PredictArguments {
  std::string run;
  std::optional<std::string> text;
  std::optional<std::string> file;
  PrecisionFlag precision;
  bool json = false;
};

constexpr size_t kLinesPerPass = 256;  // answers come while lines are still being read

std::string WithoutLineEnd(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

nlohmann::json ToJson(const std::string& text, const Prediction& prediction,
                      const std::vector<std::string>& labels) {
  nlohmann::json probabilities = nlohmann::json::object();
  for (size_t i = 0; i < labels.size(); ++i) probabilities[labels[i]] = prediction.probabilities[i];
  return {{"text", RepairUtf8(text)},
          {"label", prediction.label},
          {"probability", prediction.probability},
          {"probabilities", probabilities},
          {"tokens", prediction.tokens},
          {"unknown_tokens", prediction.unknown_tokens}};
}

void PrintPredictions(const LoadedClassifier& loaded, const std::vector<std::string>& texts,
                      bool json) {
  const std::vector<Prediction> predictions = Predict(loaded.model, loaded.encoder, texts, {});
  for (size_t i = 0; i < texts.size(); ++i) {
    if (json) {
      PrintBytes(ToJson(texts[i], predictions[i], loaded.encoder.labels()).dump() + "\n");
    } else {
      PrintBytes(fmt::format("{}\t{:.4f}\t{}\n", Printable(predictions[i].label),
                             predictions[i].probability, Printable(texts[i])));
    }
  }
  FlushStdout();
}

void PredictLines(const LoadedClassifier& loaded, std::istream& lines, bool json) {
  std::vector<std::string> texts;
  for (std::string line; std::getline(lines, line);) {
    texts.push_back(WithoutLineEnd(std::move(line)));
    // On a terminal or a slow pipe, each line is answered at once.
    if (texts.size() == kLinesPerPass || lines.rdbuf()->in_avail() <= 0) {
      PrintPredictions(loaded, texts, json);
      texts.clear();
    }
  }
  const int failure = lines.bad() ? errno : 0;
  if (!texts.empty()) PrintPredictions(loaded, texts, json);
  if (failure != 0) {
    throw Error(ErrorKind::kInput, "read standard input: {}",
                std::generic_category().message(failure));
  }
}

void RunPredict(const PredictArguments& arguments) {
  const LoadedClassifier loaded =
      LoadClassifier(arguments.run, CheckpointChoice::kBest, arguments.precision.Given());
  if (arguments.text) {
    PrintPredictions(loaded, {*arguments.text}, arguments.json);
  } else if (arguments.file) {
    std::istringstream lines(ReadFile(*arguments.file));
    PredictLines(loaded, lines, arguments.json);
  } else {
    std::ios::sync_with_stdio(false);  // so that in_avail sees what is buffered
    PredictLines(loaded, std::cin, arguments.json);
  }
}

}  // namespace

void AddPredictCommand(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "predict", "Label and probability of a text, or of each line of a file or stdin");
  auto arguments = std::make_shared<PredictArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  auto* text =
      command->add_option("text", arguments->text, "A text; without it and --file, lines of stdin");
  command->add_option("--file", arguments->file, "A file with a text a line")
      ->type_name("FILE")
      ->excludes(text);
  arguments->precision.AddTo(*command);
  command->add_flag("--json", arguments->json,
                    "A JSON object a line, with the probabilities of all labels");
  command->callback([arguments] { RunPredict(*arguments); });
}

}  // namespace headlight::app
