#include "headlight/train/run_directory.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "headlight/base/build_info.h"
#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/io/file.h"
#include "headlight/train/config_field.h"
#include "headlight/train/json-inl.h"
#include "headlight/train/metrics_log.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;
using internal::Json;

constexpr int64_t kResultVersion = 1;
constexpr int64_t kEnvironmentVersion = 1;
constexpr int64_t kMostJsonBytes = int64_t{64} << 20;

void MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw Error(ErrorKind::kResource, "run directory: cannot create {}: {}", path, error.message());
  }
}

Json TimingToJson(const RunResult& result) {
  Json peaks = Json::object();
  for (const auto& [tag, bytes] : result.peak_bytes) peaks[tag] = bytes;
  return {{"seconds_per_epoch", result.seconds_per_epoch},
          {"tokens_per_second", result.tokens_per_second},
          {"seconds", result.seconds},
          {"peak_bytes", peaks},
          {"peak_resident_bytes", result.peak_resident_bytes}};
}

void TimingFromJson(const Json& json, const std::string& name, RunResult& result) {
  result.seconds_per_epoch = internal::NumberField(json, "seconds_per_epoch", name);
  result.tokens_per_second = internal::NumberField(json, "tokens_per_second", name);
  result.seconds = internal::NumberField(json, "seconds", name);
  const Json& peaks = internal::ObjectField(json, "peak_bytes", name);
  for (const auto& [tag, bytes] : peaks.items()) {
    result.peak_bytes.emplace_back(tag, internal::CountField(peaks, tag.c_str(), name));
  }
  result.peak_resident_bytes = internal::CountField(json, "peak_resident_bytes", name);
}

std::vector<std::string> TextsOf(const Json& list, const std::string& name) {
  std::vector<std::string> texts;
  for (const Json& text : list) {
    if (!text.is_string()) throw Error(ErrorKind::kInput, "{}: labels must be texts", name);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

RunResult ResultFromJson(const Json& json, const std::string& name) {
  internal::CheckFormatVersion(json, kResultVersion, name);
  const auto count = [&](const char* key) { return internal::CountField(json, key, name); };
  RunResult result;
  result.ended_by = internal::TextFieldOf(json, "ended_by", name);
  result.steps = count("steps");
  result.epochs = internal::NumberField(json, "epochs", name);
  result.parameters = count("parameters");
  result.vocabulary = count("vocabulary");
  result.train_texts = count("train_texts");
  result.valid_texts = count("valid_texts");
  result.skipped_texts = count("skipped_texts");
  result.labels = TextsOf(internal::ListField(json, "labels", name), name);
  if (result.labels.size() < 2) {
    throw Error(ErrorKind::kInput, "{}: 'labels' must hold two or more", name);
  }
  result.train_loss = internal::NumberField(json, "train_loss", name);
  result.valid = internal::MetricsFromJson(internal::ObjectField(json, "valid", name), name);
  result.last = internal::MetricsFromJson(internal::ObjectField(json, "last", name), name);
  for (const ClassificationMetrics* metrics : {&result.valid, &result.last}) {
    internal::CheckConfusion(*metrics, result.labels.size(), name);
  }
  result.best_step = count("best_step");
  result.nonfinite_scores_replaced = count("nonfinite_scores_replaced");
  TimingFromJson(internal::ObjectField(json, "measured", name), name, result);
  return result;
}

RunSummary Summarize(const std::string& directory) {
  const RunPaths paths(directory);
  RunSummary summary;
  summary.directory = directory;
  // A listing goes on past a broken run: what is wrong with it is part of the listing.
  try {
    summary.config = ReadConfig(paths);
    summary.result = ReadResult(paths);
    if (summary.result) {
      summary.last_step = summary.result->steps;
    } else if (std::error_code ignored; fs::exists(paths.metrics(), ignored)) {
      const RunHistory history = ReadHistory(paths);
      if (!history.steps.empty()) summary.last_step = history.steps.back().step;
      if (!history.epochs.empty()) {
        summary.last_step = std::max(summary.last_step, history.epochs.back().step);
      }
    }
  } catch (const Error& error) {
    summary.problem = error.what();
  }
  return summary;
}

void CollectRuns(const std::string& folder, int deeper, std::vector<RunSummary>& runs) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) folders.push_back(at->path().string());
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& inner : folders) {
    std::error_code ignored;
    if (fs::exists(RunPaths(inner).config(), ignored)) {
      runs.push_back(Summarize(inner));
    } else if (deeper > 0) {
      CollectRuns(inner, deeper - 1, runs);
    }
  }
}

// A folder that holds something else is not made a run of: a name was mistyped.
void RefuseForeignFolder(const RunPaths& paths) {
  std::error_code failure;
  const std::filesystem::directory_iterator entries(paths.root, failure);
  if (failure) return;  // it does not exist yet, or MakeFolders says what is wrong with it
  bool ours = true;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename();
    if (name == ".lock" || name == "config.toml") return;
    ours = ours && name == "checkpoints";
  }
  if (!ours) {
    throw Error(ErrorKind::kUsage,
                "run directory {}: holds other files and no run; name a new directory", paths.root);
  }
}

}  // namespace

RunLock::RunLock(const RunPaths& paths) {
  RefuseForeignFolder(paths);
  MakeFolders(paths.checkpoints());
  descriptor_ = open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw Error(ErrorKind::kResource, "run directory: cannot write {}: {}", paths.lock(),
                std::generic_category().message(errno));
  }
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw Error(ErrorKind::kUsage, "run directory {}: another process is training into it",
                paths.root);
  }
}

RunLock::~RunLock() { close(descriptor_); }

std::string RunResultToJson(const RunResult& result) {
  const Json json = {{"format_version", kResultVersion},
                     {"ended_by", result.ended_by},
                     {"steps", result.steps},
                     {"epochs", result.epochs},
                     {"parameters", result.parameters},
                     {"vocabulary", result.vocabulary},
                     {"train_texts", result.train_texts},
                     {"valid_texts", result.valid_texts},
                     {"skipped_texts", result.skipped_texts},
                     {"labels", result.labels},
                     {"train_loss", result.train_loss},
                     {"valid", internal::MetricsToJson(result.valid)},
                     {"last", internal::MetricsToJson(result.last)},
                     {"best_step", result.best_step},
                     {"nonfinite_scores_replaced", result.nonfinite_scores_replaced},
                     {"measured", TimingToJson(result)}};
  // Labels come from files and may be broken UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void WriteResult(const RunPaths& paths, const RunResult& result) {
  WriteFileAtomically(paths.result(), RunResultToJson(result));
}

std::optional<RunResult> ReadResult(const RunPaths& paths) {
  std::error_code ignored;
  if (!fs::exists(paths.result(), ignored)) return std::nullopt;
  const std::string bytes = ReadRegularFile(paths.result(), kMostJsonBytes);
  return ResultFromJson(internal::ParseObject(bytes, paths.result()), paths.result());
}

void WriteConfig(const RunPaths& paths, const TrainConfig& config) {
  WriteFileAtomically(paths.config(), TrainConfigToToml(config));
}

TrainConfig ReadConfig(const RunPaths& paths) {
  std::error_code ignored;
  if (!fs::exists(paths.config(), ignored)) {
    throw Error(ErrorKind::kInput, "{}: is not a run directory (it has no config.toml)",
                paths.root);
  }
  TrainConfig config =
      TrainConfigFromToml(ReadRegularFile(paths.config(), kMostJsonBytes), paths.config());
  try {
    ValidateTrainConfig(config);
  } catch (const Error& error) {
    throw Error(ErrorKind::kInput, "{}: {}", paths.config(), error.what());
  }
  return config;
}

bool HoldsRun(const RunPaths& paths) {
  std::error_code ignored;
  return fs::is_regular_file(paths.config(), ignored) &&
         IsTrainConfig(ReadRegularFile(paths.config(), kMostJsonBytes));
}

void CheckSameChoices(const RunPaths& paths, const TrainConfig& config) {
  const TrainConfig begun = ReadConfig(paths);
  std::vector<std::string> differing;
  for (const std::string& name : DifferingChoices(begun, config)) {
    differing.push_back(
        fmt::format("{} ({}, now {})", name, GetField(begun, name), GetField(config, name)));
  }
  if (differing.empty()) return;
  throw Error(
      ErrorKind::kUsage,
      "resume {}: the run was begun with other choices of {}; name another --out, or delete "
      "that folder",
      paths.root, fmt::join(differing, ", "));
}

std::string EnvironmentJson() {
  const Json json = {
    {"format_version", kEnvironmentVersion},
    {"headlight", Version()},
    {"commit", Commit()},
    {"cpu", CpuModelName()},
    {"isa", IsaName(SelectedIsa())},
    {"bf16", Bf16UnitName(SelectedBf16Unit())},
    {"physical_cores", PhysicalCores()},
    {"threads", NumThreads()},
#if defined(__clang__)
    {"compiler", "clang " __clang_version__},
#else
    {"compiler", "gcc " __VERSION__},
#endif
    {"icu", IcuVersion()}
  };
  return json.dump(2) + "\n";
}

void WriteEnvironment(const RunPaths& paths) {
  WriteFileAtomically(paths.environment(), EnvironmentJson());
}

std::vector<RunSummary> ListRuns(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorKind::kInput, "runs: {} is not a folder", folder);
  }
  std::vector<RunSummary> runs;
  if (fs::exists(RunPaths(folder).config(), ignored)) {
    runs.push_back(Summarize(folder));
  } else {
    CollectRuns(folder, 1, runs);
  }
  return runs;
}

}  // namespace headlight
