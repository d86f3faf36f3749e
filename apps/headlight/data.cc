// headlight data describe|split|make: looking at text, splitting it, making built-in text.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/io/file.h"
#include "headlight/text/describe.h"
#include "headlight/text/readers.h"
#include "headlight/text/relations.h"
#include "headlight/text/split.h"
#include "headlight/text/unicode.h"

namespace headlight::app {
namespace {

namespace fs = std::filesystem;

struct DescribeArguments {
  std::vector<std::string> data;
  std::vector<std::string> valid;
  TrainFlags flags;
  bool json = false;
};

nlohmann::json ToJson(const DatasetDescription& description) {
  nlohmann::json labels = nlohmann::json::array(), scripts = labels, defects = labels;
  for (const LabelCount& label : description.labels) {
    labels.push_back({{"label", RepairUtf8(label.label)}, {"count", label.count}});
  }
  for (const ScriptCount& script : description.scripts) {
    scripts.push_back({{"script", script.script}, {"characters", script.characters}});
  }
  for (const Defect& defect : description.defects) {
    nlohmann::json places = nlohmann::json::array();
    for (const std::string& place : defect.places) places.push_back(RepairUtf8(place));
    defects.push_back({{"name", defect.name}, {"count", defect.count}, {"places", places}});
  }
  const LengthSummary& lengths = description.lengths;
  return {{"rows", description.rows},
          {"format", description.format},
          {"labels", labels},
          {"tokens",
           {{"p50", lengths.p50},
            {"p90", lengths.p90},
            {"p99", lengths.p99},
            {"max", lengths.max},
            {"total", lengths.total}}},
          {"scripts", scripts},
          {"defects", defects}};
}

void PrintDescription(const DatasetDescription& description) {
  PrintBytes(fmt::format("{} rows, {} labels, read as {}\n\n", description.rows,
                         description.labels.size(), description.format));
  Table labels({{"label", "", Align::kLeft}, {"rows"}, {"share"}});
  for (const LabelCount& label : description.labels) {
    const double share = static_cast<double>(label.count) / static_cast<double>(description.rows);
    labels.AddRow({label.label, label.count, Cell::Percent(share, 1)});
  }
  PrintTable(labels);
  const LengthSummary& lengths = description.lengths;
  Table tokens(
      {{"tokens per text", "", Align::kLeft}, {"p50"}, {"p90"}, {"p99"}, {"max"}, {"in all"}});
  tokens.AddRow({"", lengths.p50, lengths.p90, lengths.p99, lengths.max, lengths.total});
  PrintBytes("\n");
  PrintTable(tokens);
  Table scripts({{"script", "", Align::kLeft}, {"characters"}});
  for (const ScriptCount& script : description.scripts)
    scripts.AddRow({script.script, script.characters});
  PrintBytes("\n");
  PrintTable(scripts);
  Table defects({{"defect", "", Align::kLeft}, {"rows"}, {"first places", "", Align::kLeft}});
  for (const Defect& defect : description.defects) {
    defects.AddRow({defect.name, defect.count, fmt::format("{}", fmt::join(defect.places, ", "))});
  }
  PrintBytes("\n");
  PrintTable(defects);
}

void RunDescribe(const DescribeArguments& arguments) {
  const TrainConfig config = arguments.flags.Config();
  ReadOptions read = config.data.read;
  DatasetParts parts = ReadDatasetParts(arguments.data, read);
  for (Dataset* other : {&parts.valid, &parts.test}) {  // data of one part, not for training
    if (parts.train.examples.empty()) std::swap(parts.train, *other);
  }
  Dataset valid =
      arguments.valid.empty() ? std::move(parts.valid) : ReadDataset(arguments.valid, read);
  DescribeOptions options;
  options.tokenizer = config.text.tokenizer;
  const DatasetDescription train =
      Describe(parts.train, valid.examples.empty() ? nullptr : &valid, options);
  if (valid.examples.empty()) {
    if (arguments.json) {
      PrintBytes(ToJson(train).dump() + "\n");
    } else {
      PrintDescription(train);
    }
    return;
  }
  const DatasetDescription other = Describe(valid, nullptr, options);
  if (arguments.json) {
    nlohmann::json both = ToJson(train);
    both["valid"] = ToJson(other);
    PrintBytes(both.dump() + "\n");
    return;
  }
  PrintBytes("training text: ");
  PrintDescription(train);
  PrintBytes("\nvalidation text: ");
  PrintDescription(other);
}

void AddDescribe(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("describe", "Rows, labels, lengths, scripts and defects of text");
  auto arguments = std::make_shared<DescribeArguments>();
  command->add_option("data", arguments->data, "Files, archives or folders")
      ->required()
      ->type_name("PATH");
  command->add_option("--valid", arguments->valid, "Validation text, to look for texts in both")
      ->type_name("PATH");
  command->add_flag("--json", arguments->json, "JSON on stdout");
  arguments->flags.AddTo(*command, TrainConfig(), TokenizerField);
  command->callback([arguments] { RunDescribe(*arguments); });
}

struct SplitArguments {
  std::vector<std::string> data;
  TrainFlags flags;
  SplitOptions options;
  std::string train_out, valid_out;
};

DataFormat FormatOf(const char* flag, const std::string& path) {
  if (path.ends_with(".jsonl")) return DataFormat::kJsonl;
  if (path.ends_with(".csv")) return DataFormat::kCsv;
  throw Error(ErrorKind::kUsage, "{}: the file must end in .csv or .jsonl, found '{}'", flag, path);
}

// Whether `path` names the file `other`, or one below it; they need not exist.
bool IsOrLiesIn(const std::string& path, const std::string& other) {
  std::error_code code;  // what cannot be looked at is another file
  if (fs::equivalent(path, other, code)) return true;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, code), code);
  const fs::path folder = fs::weakly_canonical(fs::absolute(other, code), code);
  return !folder.empty() &&
         std::mismatch(folder.begin(), folder.end(), whole.begin(), whole.end()).first ==
             folder.end();
}

// Nothing that is read is written over, and neither part by the other.
void CheckOutputs(const SplitArguments& arguments) {
  if (IsOrLiesIn(arguments.train_out, arguments.valid_out) ||
      IsOrLiesIn(arguments.valid_out, arguments.train_out)) {
    throw Error(ErrorKind::kUsage,
                "--valid-out: must be another file than --train-out {}, found {}",
                arguments.train_out, arguments.valid_out);
  }
  const std::pair<const char*, const std::string&> outputs[] = {
      {"--train-out", arguments.train_out}, {"--valid-out", arguments.valid_out}};
  for (const auto& [flag, path] : outputs) {
    for (const std::string& input : arguments.data) {
      if (!IsOrLiesIn(path, input)) continue;
      throw Error(ErrorKind::kUsage, "{}: must lie outside of what is split, {}, found {}", flag,
                  input, path);
    }
  }
}

void RunSplit(const SplitArguments& arguments) {
  const DataFormat train_format = FormatOf("--train-out", arguments.train_out);
  const DataFormat valid_format = FormatOf("--valid-out", arguments.valid_out);
  CheckOutputs(arguments);
  ReadOptions read = arguments.flags.Config().data.read;
  read.split = "all";
  Dataset dataset = ReadDataset(arguments.data, read);
  const int64_t dropped = DropUnusable(&dataset);
  if (dropped > 0) Say("{} rows without text or label are left out", dropped);
  const TrainValid parts = StratifiedSplit(dataset, arguments.options);
  StagedFile train(arguments.train_out, FormatDataset(parts.train, train_format));
  StagedFile valid(arguments.valid_out, FormatDataset(parts.valid, valid_format));
  train.Commit();
  valid.Commit();
  Say("{}: {} rows; {}: {} rows", arguments.train_out, parts.train.examples.size(),
      arguments.valid_out, parts.valid.examples.size());
}

void AddSplit(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("split", "Stratified, seeded split; all copies of a text go to one side");
  auto arguments = std::make_shared<SplitArguments>();
  command->add_option("data", arguments->data, "Files, archives or folders")
      ->required()
      ->type_name("PATH");
  command->add_option("--train-out", arguments->train_out, "Training part (.csv or .jsonl)")
      ->required()
      ->type_name("FILE");
  command->add_option("--valid-out", arguments->valid_out, "Validation part (.csv or .jsonl)")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--valid-share", arguments->options.valid_share,
                   "Share of each label for validation")
      ->type_name("SHARE")
      ->capture_default_str();
  AddSeed(*command, arguments->options.seed, "Seed");
  arguments->flags.AddTo(*command, TrainConfig(), ReaderField);
  command->callback([arguments] { RunSplit(*arguments); });
}

struct MakeArguments {
  std::string language = "en";
  RelationsOptions options;
  std::string out;
  bool shuffle_labels = false;
};

// A control: the labels keep their counts and lose their meaning.
void ShuffleLabels(std::vector<RelationsExample>& examples, uint64_t seed) {
  RandomStream random(seed, 1);
  for (size_t i = examples.size(); i > 1; --i) {
    std::swap(examples[i - 1].label, examples[random.Below(i)].label);
  }
}

void RunMake(MakeArguments& arguments) {
  arguments.options.language = RelationsLanguageFromName(arguments.language);
  std::vector<RelationsExample> examples = MakeRelations(arguments.options);
  if (arguments.shuffle_labels) ShuffleLabels(examples, arguments.options.seed);
  WriteFileAtomically(arguments.out, FormatRelations(examples));
  Say("{}: {} passages", arguments.out, examples.size());
}

void AddMake(CLI::App& data) {
  CLI::App* make = data.add_subcommand("make", "Make built-in text");
  make->require_subcommand(1);
  CLI::App* command = make->add_subcommand(
      "relations",
      "Passages with known pronoun, object, adjective, subject and punctuation relations");
  auto arguments = std::make_shared<MakeArguments>();
  arguments->options.count = 8000;
  arguments->options.seed = 1;
  command->add_option("--language", arguments->language, "zh or en")
      ->type_name("zh|en")
      ->capture_default_str();
  command->add_option("--count", arguments->options.count, "Passages")
      ->check(CLI::Range(int64_t{0}, kMostPassages))
      ->type_name("N")
      ->capture_default_str();
  AddSeed(*command, arguments->options.seed, "Seed; passages of two seeds differ");
  command->add_option("--out", arguments->out, "JSONL file")->required()->type_name("FILE");
  command->add_flag("--shuffle-labels", arguments->shuffle_labels,
                    "A control that nothing can be learned from");
  command->callback([arguments] { RunMake(*arguments); });
}

}  // namespace

void AddDataCommand(CLI::App& program) {
  CLI::App* data = program.add_subcommand("data", "Look at text, split it, make built-in text");
  data->require_subcommand(1);
  AddDescribe(*data);
  AddSplit(*data);
  AddMake(*data);
}

}  // namespace headlight::app
