// metrics.jsonl and TensorBoard's events: what happens during training, as it happens.
//
// Each line is an object with "kind" and "step". Everything in it is determined by config and data,
// except what is under "timing".
//   {"kind":"start","format_version":1,...}
//   {"kind":"step","step":20,"epoch":0.4,"loss":..,"accuracy":..,"learning_rate":..,
//    "gradient_norm":..,"gradient_norms":{"embedding":..,"encoder.0":..,"classifier":..},
//    "timing":{"tokens_per_second":..,"unix_time":..}}
//   {"kind":"probe","step":100,"heads":[{"layer":0,"head":0,"entropy":..,"mean_distance":..,
//    "max_distance":..}],"timing":..}
//   {"kind":"epoch","step":157,"epoch":1,"train_loss":..,"train_accuracy":..,"valid_loss":..,
//    "valid_accuracy":..,"valid_macro_f1":..,"best":true,
//    "timing":{"seconds":..,"steps":..,"tokens":..,"evaluation_seconds":..,"unix_time":..}}
// TensorBoard shows the same numbers; its file is rebuilt from metrics.jsonl when a run is resumed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headlight/train/run_directory.h"

namespace headlight {

struct StepRecord {
  int64_t step = 0;
  double epoch = 0;
  double loss = 0;  // mean over the texts since the last record
  double accuracy = 0;
  double learning_rate = 0;
  double gradient_norm = 0;                                    // of the step, before clipping
  std::vector<std::pair<std::string, double>> gradient_norms;  // by layer
  int64_t nonfinite_scores_replaced = 0;
  double tokens_per_second = 0;  // timing
};

// Attention of one head on the probe's texts: means over queries; distance is |query - key| at the
// largest weight.
struct HeadRecord {
  int layer = 0;
  int head = 0;
  double entropy = 0;  // nats
  double mean_distance = 0;
  double max_distance = 0;
};

struct ProbeRecord {
  int64_t step = 0;
  std::vector<HeadRecord> heads;
};

struct EpochRecord {
  int64_t step = 0;
  double epoch = 0;
  double train_loss = 0;
  double train_accuracy = 0;
  double valid_loss = 0;
  double valid_accuracy = 0;
  double valid_macro_f1 = 0;
  bool best = false;
  // Timing: of this process, in this epoch.
  double seconds = 0;  // of training steps
  int64_t steps = 0;
  int64_t tokens = 0;
  double evaluation_seconds = 0;
};

class MetricsLog {
 public:
  // Starts anew (lines = 0) or goes on after the first `lines` lines, of which it cuts the file
  // back.
  MetricsLog(const RunPaths& paths, int64_t lines);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void Write(const StepRecord& record);
  void Write(const ProbeRecord& record);
  void Write(const EpochRecord& record);
  // Returns when all is on the disk: before a checkpoint that counts these lines.
  void Sync();
  int64_t lines() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A run's records so far, for learning curves; a torn or broken last line is left out. kInput for a
// broken line before it.
struct RunHistory {
  std::vector<StepRecord> steps;
  std::vector<ProbeRecord> probes;
  std::vector<EpochRecord> epochs;
};
RunHistory ReadHistory(const RunPaths& paths);

}  // namespace headlight
