// Training of a text classifier into a run directory.
//
// What training computes is determined by (config, data): not by threads, interruptions, or being
// killed and resumed. The order of texts is a function of (seed, epoch), dropout of (seed, step,
// sample id).
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "headlight/base/progress.h"
#include "headlight/train/config.h"
#include "headlight/train/prepared_data.h"
#include "headlight/train/run_directory.h"

namespace headlight {

// What to do with a directory that holds a run.
enum class OnExisting {
  kRefuse,   // kUsage
  kResume,   // go on from its last checkpoint; a finished run's result is returned as it is. kUsage
             // when its choices differ (naming them), kInput when the data do
  kReplace,  // remove the run's files and start anew
};

struct TrainOptions {
  std::string directory;  // created if need be
  OnExisting existing = OnExisting::kRefuse;
  Progress* progress = nullptr;
  // Looked at between steps. When it becomes true, training saves a checkpoint and throws
  // kInterrupted.
  const std::atomic<bool>* stop = nullptr;
  // Called after every step, between two of them; may be empty.
  std::function<void()> after_step = {};
};

// Sets the number of threads that the config names (and leaves it so). Throws kUsage for a config
// that does not hold, kNumeric when a loss or gradient becomes non-finite (the message names step,
// layer, head and tensor; last.safetensors is the state before that step), kResource when the
// directory cannot be written, kInterrupted.
RunResult Train(const TrainConfig& config, const PreparedData& data, const TrainOptions& options);

}  // namespace headlight
