// headlight profile: where a training step and an inference spend time and memory.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/io/file.h"
#include "headlight/kernels/attention/attention_implementation.h"
#include "headlight/kernels/peak/peak.h"
#include "headlight/report/profile_report.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/evaluate.h"
#include "headlight/train/prepared_data.h"
#include "headlight/train/trainer.h"

namespace headlight::app {
namespace {

struct ProfileArguments {
  std::string run;
  TrainFlags flags;
  int64_t steps = 20;
  int64_t warmup = 5;
  size_t top = 10;
  std::string trace;
  bool json = false;
};

// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "headlight-profile-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Error(ErrorKind::kResource, "{}: a temporary folder could not be made", pattern);
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool IsOptimizerStep(const ZoneEvent& event) { return event.kind == ZoneKind::kOptimizer; }

// The events between the end of the `skip`th optimizer step and that of the last: whole training
// steps, evaluation left out.
std::vector<ZoneEvent> WholeSteps(const std::vector<ZoneEvent>& events, int64_t skip) {
  int64_t seen = 0, begin = 0, end = 0;
  for (const ZoneEvent& event : events) {
    if (!IsOptimizerStep(event)) continue;
    if (++seen == skip) begin = event.end_ns;
    end = event.end_ns;
  }
  std::vector<ZoneEvent> steps;
  for (const ZoneEvent& event : events) {
    if (event.begin_ns >= begin && event.end_ns <= end) steps.push_back(event);
  }
  return steps;
}

struct Profile {
  std::vector<ZoneEvent> training;
  std::vector<ZoneEvent> inference;
  double peak = 0;
  std::string attention;  // what computes it: "fused f32 avx512", "naive f32"
};

std::string AttentionOf(const TextClassifier& model) {
  const TextClassifierConfig& config = model.config();
  AttentionProblem problem;
  problem.query_offsets = problem.key_offsets = {0, config.max_len};
  problem.heads = config.heads;
  problem.kv_heads = config.KeyValueHeads();
  problem.head_dim = config.QueryDim();
  problem.value_dim = config.HeadDim();
  problem.dtype = model.dtype();
  return AttentionKernelName(config.attention, problem);
}

Profile RunProfile(const ProfileArguments& arguments, TrainConfig config) {
  config.training.steps = arguments.steps + arguments.warmup;
  config.training.epochs = 1000000;
  config.output.probe_every = 0;
  config.output.checkpoint_every = 0;
  config.evaluation.patience = 0;
  ValidateTrainConfig(config);
  const PreparedData data = PrepareData(config);
  const TemporaryFolder folder;
  Profile profile;
  StartProfile();
  Train(config, data, {folder.path() + "/run", OnExisting::kRefuse, nullptr, &StopRequested()});
  profile.training = WholeSteps(StopProfile(), arguments.warmup);
  const LoadedClassifier loaded = LoadClassifier(folder.path() + "/run", CheckpointChoice::kLast);
  Evaluate(loaded.model, data.valid, {});  // once for the caches
  StartProfile();
  Evaluate(loaded.model, data.valid, {});
  profile.inference = StopProfile();
  profile.peak = MeasureFmaPeak(NumThreads());
  profile.attention = AttentionOf(loaded.model);
  return profile;
}

void PrintProfile(const ProfileArguments& arguments, const Profile& profile) {
  const ProfileSummary training = SummarizeProfile(profile.training);
  const ProfileSummary inference = SummarizeProfile(profile.inference);
  if (arguments.json) {
    PrintBytes(
        fmt::format("{{\"threads\":{},\"peak_gflops_per_second\":{:.1f},\"attention\":\"{}\","
                    "\"steps\":{},\"training\":{},\"inference\":{}}}\n",
                    NumThreads(), profile.peak * 1e-9, profile.attention, arguments.steps,
                    TableAsJson(ProfileTable(training, profile.peak, training.stages.size())),
                    TableAsJson(ProfileTable(inference, profile.peak, inference.stages.size()))));
    return;
  }
  PrintBytes(fmt::format(
      "FMA peak, measured: {:.1f} GFLOP/s on {} threads\nattention: {}\n\n{} training steps\n",
      profile.peak * 1e-9, NumThreads(), profile.attention, arguments.steps));
  PrintTable(ProfileTable(training, profile.peak, arguments.top));
  PrintBytes("\nInference, the validation text once\n");
  PrintTable(ProfileTable(inference, profile.peak, arguments.top));
}

TrainConfig ConfigOf(const ProfileArguments& arguments) {
  if (!arguments.run.empty()) return ReadConfig(RunPaths(arguments.run));
  TrainConfig config = arguments.flags.Config();
  if (config.data.data.empty())
    throw Error(ErrorKind::kUsage, "profile: name a run, or give --data");
  return config;
}

void RunProfileCommand(const ProfileArguments& arguments) {
  const Profile profile = RunProfile(arguments, ConfigOf(arguments));
  PrintProfile(arguments, profile);
  if (!arguments.trace.empty())
    WriteFileAtomically(arguments.trace, ProfileTrace(profile.training));
}

}  // namespace

void AddProfileCommand(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("profile", "Time and memory of every stage of training and inference");
  auto arguments = std::make_shared<ProfileArguments>();
  command
      ->add_option("run", arguments->run,
                   "A run whose choices are profiled; or give flags of train")
      ->type_name("RUN");
  command->add_option("--profile-steps", arguments->steps, "Training steps that are recorded")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--top", arguments->top, "Stages shown")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--trace", arguments->trace, "Write a trace for chrome://tracing or Perfetto")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "JSON on stdout");
  arguments->flags.AddTo(*command, TrainConfig(), EveryField);
  command->callback([arguments] { RunProfileCommand(*arguments); });
}

}  // namespace headlight::app
