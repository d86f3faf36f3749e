// Everything that decides what a training run does, but for where it is written.
//
// Choices have one list with names, ranges and help: config_field.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/text_classifier_config.h"
#include "headlight/text/readers.h"
#include "headlight/text/text_encoder.h"
#include "headlight/train/batching.h"
#include "headlight/train/optimizer.h"
#include "headlight/train/schedule.h"

namespace headlight {

struct DataChoices {
  std::vector<std::string> data;   // files and folders of training text
  std::vector<std::string> valid;  // of validation text; empty: data's own valid part, or a share
  double valid_share = 0.1;        // of data, stratified and safe for duplicates
  int64_t split_seed = 1;          // apart from `seed`, so that runs of several seeds share a split
  ReadOptions read;
};

enum class BestBy { kAccuracy, kLoss, kMacroF1 };
enum class OnNonfinite { kStop, kZero };

struct TrainingChoices {
  int64_t epochs = 10;
  int64_t steps = 0;  // when > 0, training ends after so many, whatever `epochs` says
  int64_t batch = 64;
  BatchOrder order = BatchOrder::kRandom;
  OptimizerConfig optimizer;
  double learning_rate = 0.001;
  ScheduleKind schedule = ScheduleKind::kConstant;
  // Below 1: a share of all steps; else a number of steps. Negative: automatic, 0 for the constant
  // schedule and a share of 0.1 for the others.
  double warmup = -1;
  double clip = 1;  // largest L2 norm of the whole gradient; 0: no clipping
  double label_smoothing = 0;
  int64_t seed = 1;
  int64_t threads = 0;  // 0: one per physical core. Does not change the results.
  OnNonfinite on_nonfinite = OnNonfinite::kStop;
};

struct EvaluationChoices {
  int64_t batch = 64;
  BestBy best_by = BestBy::kAccuracy;
  int64_t patience = 0;  // epochs without a better result before training stops; 0: never
};

struct OutputChoices {
  int64_t log_every = 20;        // steps between records of metrics.jsonl
  int64_t probe_every = 100;     // steps between records of what heads do; 0: never
  int64_t probe_texts = 8;       // how many texts they are measured on, drawn once by the seed
  int64_t checkpoint_every = 0;  // steps between checkpoints, besides one each epoch; 0: none
};

struct TrainConfig {
  DataChoices data;
  TextEncoderOptions text;
  // vocabulary, classes and max_len are not choices of their own: ResolvedModel sets them.
  TextClassifierConfig model;
  TrainingChoices training;
  EvaluationChoices evaluation;
  OutputChoices output;

  TrainConfig();
};

// The model for a vocabulary and label set.
TextClassifierConfig ResolvedModel(const TrainConfig& config, int64_t vocabulary, int64_t classes);
// The schedule of a run of `total_steps`.
Schedule ResolvedSchedule(const TrainConfig& config, int64_t total_steps);
// epochs x batches of an epoch, or `steps`.
int64_t TotalSteps(const TrainConfig& config, int64_t batches_per_epoch);

// Rules that concern several choices, and the model's own. kUsage with the rule and what would do.
// Ranges of single choices were checked when they were set, and are checked again here.
void ValidateTrainConfig(const TrainConfig& config);

// config.toml: format_version, then a table per section with every choice. Reading starts from the
// defaults; an unknown key, a wrong type or a value out of range is kInput that names `name` and
// the key.
std::string TrainConfigToToml(const TrainConfig& config);
TrainConfig TrainConfigFromToml(std::string_view toml, const std::string& name);
// Whether such a file is meant, of whatever version: TOML with a format_version of its own.
bool IsTrainConfig(std::string_view toml);

// Whether a run made with `a` may go on under `b`: everything but threads and where data lie must
// be equal. The names of the choices that are not.
std::vector<std::string> DifferingChoices(const TrainConfig& a, const TrainConfig& b);

}  // namespace headlight
