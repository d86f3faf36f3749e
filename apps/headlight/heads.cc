// headlight heads: what every head of a run does, and how well it does what grammar asks.
#include <fmt/format.h>

#include <memory>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/analysis/head_summary.h"
#include "headlight/analysis/relation_scores.h"
#include "headlight/base/error.h"
#include "headlight/io/file.h"
#include "headlight/report/heads_report.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/prepared_data.h"

namespace headlight::app {
namespace {

struct HeadsArguments {
  std::string run;
  std::string gold;
  std::vector<std::string> data;
  int64_t texts = 200;
  uint64_t shuffle_gold = 0;
  bool shuffle = false;
  bool all = false;
  bool json = false;
};

PreparedData OwnData(const RunPaths& paths, const TrainConfig& config) {
  try {
    PreparedData data = PrepareRunData(paths, config);
    if (!BeganOnOtherData(paths, data)) return data;
    throw Error(ErrorKind::kInput, "run {}: the data are not those that the run began on",
                paths.root);
  } catch (const Error& error) {
    throw Error(error.kind(), "{}; --data FILE measures on other text", error.what());
  }
}

// The run's own validation text.
std::vector<std::string> OwnTexts(const std::string& run, const LoadedClassifier& loaded) {
  const PreparedData data = OwnData(RunPaths(run), loaded.config);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < data.valid.size(); ++i) {
    std::string text;
    for (int64_t t = data.valid.offsets[static_cast<size_t>(i)];
         t < data.valid.offsets[static_cast<size_t>(i) + 1]; ++t) {
      text += loaded.encoder.vocabulary().Token(data.valid.ids[static_cast<size_t>(t)]) + " ";
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<AnalysedText> TextsOf(const HeadsArguments& arguments, const LoadedClassifier& loaded) {
  std::vector<std::string> texts;
  if (arguments.data.empty()) {
    texts = OwnTexts(arguments.run, loaded);
  } else {
    for (const Example& example :
         ReadEvaluationData(arguments.data, loaded.config.data.read).examples) {
      texts.push_back(example.text);
    }
  }
  if (static_cast<int64_t>(texts.size()) > arguments.texts)
    texts.resize(static_cast<size_t>(arguments.texts));
  return EncodeForAnalysis(loaded.encoder, texts);
}

std::vector<GoldText> GoldOf(const HeadsArguments& arguments, const LoadedClassifier& loaded) {
  std::vector<RelationsExample> examples = ParseRelations(ReadFile(arguments.gold), arguments.gold);
  if (examples.empty()) {
    throw Error(ErrorKind::kInput, "{}: is empty; `data make relations` writes gold relations",
                arguments.gold);
  }
  if (static_cast<int64_t>(examples.size()) > arguments.texts)
    examples.resize(static_cast<size_t>(arguments.texts));
  GoldTexts gold = AlignGold(loaded.encoder, examples, arguments.gold);
  if (gold.relations_cut > 0)
    Say("{} relations lie beyond the run's max-len and are left out", gold.relations_cut);
  if (arguments.shuffle) ShuffleGold(gold.texts, arguments.shuffle_gold);
  return std::move(gold.texts);
}

void PrintHeads(const HeadsArguments& arguments, const std::vector<HeadSummary>& summaries,
                const std::vector<RelationScore>& scores) {
  const RoleThresholds thresholds;
  const Table heads = HeadTable(summaries, scores, thresholds);
  const Table relations = arguments.all ? RelationTable(scores) : BestHeadsTable(scores);
  if (arguments.json) {
    PrintBytes(fmt::format("{{\"heads\":{},\"relations\":{}}}\n", TableAsJson(heads),
                           TableAsJson(RelationTable(scores))));
    return;
  }
  PrintTable(heads);
  PrintBytes("\nRoles, first that holds:\n");
  for (const std::string& line : DescribeThresholds(thresholds)) PrintBytes("  " + line + "\n");
  if (scores.empty()) return;
  PrintBytes(arguments.all ? "\nEvery head against the gold relations\n"
                           : "\nThe best head of each relation, beside the best fixed offset and "
                             "its own other queries\n");
  PrintTable(relations);
  PrintBytes("\n" + RelationSentence(scores) + "\n");
}

void RunHeads(const HeadsArguments& arguments) {
  const LoadedClassifier loaded = LoadClassifier(arguments.run);
  if (arguments.gold.empty()) {
    PrintHeads(arguments, SummarizeHeads(loaded.model, TextsOf(arguments, loaded)), {});
    return;
  }
  const std::vector<GoldText> gold = GoldOf(arguments, loaded);
  std::vector<AnalysedText> texts;
  texts.reserve(gold.size());
  for (const GoldText& text : gold) texts.push_back(text.text);
  PrintHeads(arguments, SummarizeHeads(loaded.model, texts), ScoreRelations(loaded.model, gold));
}

}  // namespace

void AddHeadsCommand(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("heads", "Measure every head: entropy, distances, shares, role");
  auto arguments = std::make_shared<HeadsArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  auto* gold = command->add_option("--gold", arguments->gold,
                                   "Gold relations (JSONL of `data make relations`)");
  gold->type_name("FILE");
  command
      ->add_option("--data", arguments->data,
                   "Text to measure on; the run's validation text unless given")
      ->type_name("PATH")
      ->excludes(gold);
  command->add_option("--texts", arguments->texts, "Texts measured, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->type_name("N")
      ->capture_default_str();
  auto* shuffle = AddSeed(*command, arguments->shuffle_gold,
                          "A control: move each relation's target to a random place, by this seed",
                          "--shuffle-gold");
  shuffle->default_str("")->type_name("SEED")->needs(gold);
  command->add_flag("--all", arguments->all,
                    "Every head against every relation, not only the best");
  command->add_flag("--json", arguments->json, "JSON on stdout");
  command->callback([arguments, shuffle] {
    arguments->shuffle = shuffle->count() > 0;
    RunHeads(*arguments);
  });
}

}  // namespace headlight::app
