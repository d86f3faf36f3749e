// A run on disk:
//   config.toml              every choice, resolved (format_version 1)
//   environment.json         CPU, instruction set, threads, versions
//   text.json                tokenizer, vocabulary, labels
//   metrics.jsonl            one object a line (train/metrics_log.h)
//   events.out.tfevents.*    the same numbers for TensorBoard
//   checkpoints/best.safetensors   the model of the best epoch
//   checkpoints/last.safetensors   the model and all that training needs to go on
//   result.json              the final numbers; present when the run is finished
// Every file but the two logs appears whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headlight/train/config.h"
#include "headlight/train/metrics.h"

namespace headlight {

// Names of the files of a run; touches nothing.
struct RunPaths {
  explicit RunPaths(std::string directory) : root(std::move(directory)) {}

  std::string root;
  std::string config() const { return root + "/config.toml"; }
  std::string environment() const { return root + "/environment.json"; }
  std::string text() const { return root + "/text.json"; }
  std::string metrics() const { return root + "/metrics.jsonl"; }
  std::string checkpoints() const { return root + "/checkpoints"; }
  std::string best() const { return root + "/checkpoints/best.safetensors"; }
  std::string last() const { return root + "/checkpoints/last.safetensors"; }
  std::string result() const { return root + "/result.json"; }
  std::string lock() const { return root + "/.lock"; }
};

// Holds a run directory for this process (flock), so that two do not train into one. The lock goes
// with the object, or with the process however it ends.
class RunLock {
 public:
  // Creates the directory with its checkpoints folder if need be. kResource when it cannot be
  // written, kUsage when another process holds it.
  explicit RunLock(const RunPaths& paths);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

// The final numbers of a run.
struct RunResult {
  std::string ended_by;  // "epochs", "steps" or "early stopping"
  int64_t steps = 0;
  double epochs = 0;  // made; not whole when a number of steps was asked for
  int64_t parameters = 0;
  int64_t vocabulary = 0;
  int64_t train_texts = 0;
  int64_t valid_texts = 0;
  int64_t skipped_texts = 0;  // empty after tokenizing, or without a label
  std::vector<std::string> labels;

  double train_loss = 0;        // mean over the best epoch's steps, as trained (dropout, smoothing)
  ClassificationMetrics valid;  // of the best epoch's model: best.safetensors
  ClassificationMetrics last;   // of the last one's
  int64_t best_step = 0;
  int64_t nonfinite_scores_replaced = 0;

  // Measured, so different in each run: everything above is not.
  double seconds_per_epoch = 0;  // of training steps, without evaluation
  double tokens_per_second = 0;  // tokens of real text in training steps
  double seconds = 0;            // of this process: evaluation and checkpoints too
  std::vector<std::pair<std::string, int64_t>> peak_bytes;  // by memory tag, and "total"
  int64_t peak_resident_bytes = 0;                          // of the process
};

void WriteResult(const RunPaths& paths, const RunResult& result);
std::string RunResultToJson(const RunResult& result);
// Nothing when the run has not finished. kInput for a file that is not one of ours.
std::optional<RunResult> ReadResult(const RunPaths& paths);

void WriteConfig(const RunPaths& paths, const TrainConfig& config);
// kInput, saying that this is no run directory, when there is none; for choices that do not fit
// together, too.
TrainConfig ReadConfig(const RunPaths& paths);
// Whether the config.toml that is there, if any, is one of ours: what else the folder holds is then
// a run's. kInput or kResource when it cannot be read.
bool HoldsRun(const RunPaths& paths);
// A run goes on only as it was begun: kUsage that names the choices that `config` makes otherwise.
void CheckSameChoices(const RunPaths& paths, const TrainConfig& config);
void WriteEnvironment(const RunPaths& paths);
// CPU, instruction set, threads, memory, compiler and library versions, as a JSON object.
std::string EnvironmentJson();

// A run as `headlight runs` shows it.
struct RunSummary {
  std::string directory;
  std::optional<TrainConfig> config;
  std::optional<RunResult> result;  // none: not finished
  int64_t last_step = 0;            // of the last record in metrics.jsonl
  std::string problem;              // what cannot be read, "" for nothing
};

// The runs in `folder` and below it (a comparison's cells lie one folder deeper), by name. `folder`
// may be a run itself. kInput when it is not a folder.
std::vector<RunSummary> ListRuns(const std::string& folder);

}  // namespace headlight
