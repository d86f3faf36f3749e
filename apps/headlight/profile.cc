// headlight profile: where a training step and an inference spend time and memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/train_flags.h"
#include "headlight/base/clock.h"
#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/io/file.h"
#include "headlight/kernels/attention/attention_implementation.h"
#include "headlight/kernels/peak/peak.h"
#include "headlight/kernels/timing/attention_timing.h"
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

// The peak of products, measured in turns with what it is the measure of: a machine's clock and its
// other work change within seconds.
class PeakInTurns {
 public:
  explicit PeakInTurns(Precision precision) : precision_(precision) {}

  void Measure() {
    const int64_t begin = MonotonicNanoseconds();
    peaks_.push_back(MeasurePeak(precision_, NumThreads(), kSeconds));
    pauses_.push_back({begin, MonotonicNanoseconds()});
  }

  // "f32 FMA", "bf16 amx".
  std::string Name() const {
    const bool f32 = precision_ == Precision::kF32 || SelectedBf16Unit() == Bf16Unit::kNone;
    return f32 ? "f32 FMA" : fmt::format("bf16 {}", Bf16UnitName(SelectedBf16Unit()));
  }
  double Median() const { return headlight::Median(peaks_); }
  double Best() const { return *std::max_element(peaks_.begin(), peaks_.end()); }

  // As if the measurements had taken no time; none of them may lie inside a zone.
  std::vector<ZoneEvent> WithoutPauses(std::vector<ZoneEvent> events) const {
    for (ZoneEvent& event : events) {
      int64_t paused = 0;
      for (const auto& [begin, end] : pauses_) {
        if (end <= event.begin_ns) paused += end - begin;
      }
      event.begin_ns -= paused;
      event.end_ns -= paused;
    }
    return events;
  }

 private:
  static constexpr double kSeconds = 0.01;

  Precision precision_;
  std::vector<double> peaks_;
  std::vector<std::pair<int64_t, int64_t>> pauses_;
};

struct Profile {
  explicit Profile(Precision precision) : training_peak(precision), inference_peak(precision) {}

  std::vector<ZoneEvent> training;
  std::vector<ZoneEvent> inference;
  PeakInTurns training_peak;
  PeakInTurns inference_peak;
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
  problem.precision = config.precision;
  return AttentionKernelName(config.attention, problem);
}

// Trains in a folder that nobody keeps, of which an interruption need not speak.
void TrainForNobody(const TrainConfig& config, const PreparedData& data,
                    const TrainOptions& options) {
  try {
    Train(config, data, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInterrupted) throw;
    throw Error(ErrorKind::kInterrupted,
                "profile: stopped before all was measured; nothing is kept");
  }
}

Profile RunProfile(const ProfileArguments& arguments, TrainConfig config) {
  config.training.steps = arguments.steps + arguments.warmup;
  config.training.epochs = 1000000;
  config.output.probe_every = 0;
  config.output.checkpoint_every = 0;
  config.evaluation.patience = 0;
  ValidateTrainConfig(config);
  const PreparedData data =
      arguments.run.empty() ? PrepareData(config) : PrepareRunData(RunPaths(arguments.run), config);
  const TemporaryFolder folder;
  Profile profile(config.model.precision);
  int64_t step = 0;
  StartProfile();
  TrainForNobody(config, data,
                 {.directory = folder.path() + "/run", .stop = &StopRequested(), .after_step = [&] {
                    if (++step > arguments.warmup) profile.training_peak.Measure();
                  }});
  profile.training =
      profile.training_peak.WithoutPauses(WholeSteps(StopProfile(), arguments.warmup));
  const LoadedClassifier loaded = LoadClassifier(folder.path() + "/run", CheckpointChoice::kLast);
  Evaluate(loaded.model, data.valid, {});  // once for the caches
  profile.inference_peak.Measure();
  StartProfile();
  Evaluate(loaded.model, data.valid, {});
  profile.inference = StopProfile();
  profile.inference_peak.Measure();
  profile.attention = AttentionOf(loaded.model);
  return profile;
}

std::string PeakLine(const PeakInTurns& peak) {
  return fmt::format(
      "{} peak on {} threads, measured in turns with this: {:.1f} GFLOP/s (best {:.1f})",
      peak.Name(), NumThreads(), peak.Median() * 1e-9, peak.Best() * 1e-9);
}

std::string PartAsJson(const std::vector<ZoneEvent>& events, const PeakInTurns& peak) {
  const ProfileSummary summary = SummarizeProfile(events);
  return fmt::format(
      "{{\"peak\":\"{}\",\"peak_gflops_per_second\":{:.1f},\"best_peak_gflops_per_second\":{:.1f},"
      "\"stages\":{}}}",
      peak.Name(), peak.Median() * 1e-9, peak.Best() * 1e-9,
      TableAsJson(ProfileTable(summary, peak.Median(), summary.stages.size())));
}

void PrintProfile(const ProfileArguments& arguments, const Profile& profile) {
  if (arguments.json) {
    PrintBytes(fmt::format(
        "{{\"threads\":{},\"attention\":\"{}\",\"steps\":{},\"training\":{},\"inference\":{}}}\n",
        NumThreads(), profile.attention, arguments.steps,
        PartAsJson(profile.training, profile.training_peak),
        PartAsJson(profile.inference, profile.inference_peak)));
    return;
  }
  PrintBytes(fmt::format("attention: {}\n\n{} training steps\n{}\n", profile.attention,
                         arguments.steps, PeakLine(profile.training_peak)));
  PrintTable(ProfileTable(SummarizeProfile(profile.training), profile.training_peak.Median(),
                          arguments.top));
  PrintBytes(
      fmt::format("\nInference, the validation text once\n{}\n", PeakLine(profile.inference_peak)));
  PrintTable(ProfileTable(SummarizeProfile(profile.inference), profile.inference_peak.Median(),
                          arguments.top));
}

TrainConfig ConfigOf(const ProfileArguments& arguments) {
  if (!arguments.run.empty()) {
    const std::string flag = arguments.flags.FirstGiven();
    if (flag.empty()) return ReadConfig(RunPaths(arguments.run));
    throw Error(
        ErrorKind::kUsage,
        "profile: the choices of the run {} are profiled, so {} has no effect; leave out one "
        "of both",
        arguments.run, flag);
  }
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
      ->check(CLI::Range(int64_t{1}, int64_t{1000}))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--trace", arguments->trace, "Write a trace for chrome://tracing or Perfetto")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "JSON on stdout");
  arguments->flags.AddTo(*command, TrainConfig(), EveryField);
  command->callback([arguments] { RunProfileCommand(*arguments); });
}

}  // namespace headlight::app
