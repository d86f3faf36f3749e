// Checkpoints: safetensors with the model's parameters under their names and, in last.safetensors,
// the optimizer's moments and the trainer's state. The metadata say which model and which text.json
// they are of. No clock, path or machine is in them, so the same training gives the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/models/text_classifier.h"
#include "headlight/text/text_encoder.h"
#include "headlight/train/config.h"
#include "headlight/train/optimizer.h"
#include "headlight/train/prepared_data.h"
#include "headlight/train/run_directory.h"

namespace headlight {

// Where training stands, beside the values of parameters and moments. All of it is determined by
// the config and the data.
struct TrainerState {
  int64_t step = 0;      // steps made
  int64_t epoch = 0;     // epochs finished
  int64_t position = 0;  // batches made of the epoch that is under way

  double loss_sum = 0;  // over the texts of this epoch so far
  int64_t correct = 0;
  int64_t texts = 0;
  int64_t tokens = 0;          // of the whole run
  double best_train_loss = 0;  // of the epoch that ended with best_step

  // Since the last record of the metrics.
  double window_loss_sum = 0;
  int64_t window_correct = 0;
  int64_t window_texts = 0;

  bool has_best = false;
  int64_t best_step = 0;
  ClassificationMetrics best;
  ClassificationMetrics last;  // of the last evaluation
  int64_t epochs_without_better = 0;
  bool stopped_early = false;

  int64_t nonfinite_scores_replaced = 0;
  int64_t metrics_lines = 0;  // lines of metrics.jsonl when the checkpoint was made
  uint64_t data_fingerprint = 0;
};

// The model alone.
void SaveModel(const std::string& path, const TextClassifier& model, const TextEncoder& encoder,
               int64_t step);
// Reads into a model of the same config, fed by the same encoder. kInput, naming the file and the
// tensor, for a tensor that is missing, unknown, or of another shape or dtype, for another
// format_version, and for the weights of a model of other choices or another text.json (older
// checkpoints do not say what they are of). Ignores what the trainer adds. Returns the step.
int64_t LoadModel(const std::string& path, const TextEncoder& encoder, TextClassifier& model);

void SaveTraining(const std::string& path, const TextClassifier& model, const TextEncoder& encoder,
                  const Optimizer& optimizer, const TrainerState& state);
TrainerState LoadTraining(const std::string& path, const TextEncoder& encoder,
                          TextClassifier& model, Optimizer& optimizer);

// Whether a run is known to have begun on other data: its last checkpoint says so. False when there
// is none.
bool BeganOnOtherData(const RunPaths& paths, const PreparedData& data);

// The data that a run's config.toml names; errors say that the names are from there.
PreparedData PrepareRunData(const RunPaths& paths, const TrainConfig& config);

enum class CheckpointChoice { kBest, kLast };

struct LoadedClassifier {
  TrainConfig config;
  TextEncoder encoder;
  TextClassifier model;    // f32 unless asked otherwise, ready to run
  std::string checkpoint;  // the path that was read
  int64_t step = 0;
};

// A run's model with what it takes to feed it text. kInput when the run has no such checkpoint yet
// or its files do not fit together.
// `precision`: of its products, where it is not to be the run's own.
LoadedClassifier LoadClassifier(const std::string& run,
                                CheckpointChoice choice = CheckpointChoice::kBest,
                                std::optional<Precision> precision = std::nullopt);

}  // namespace headlight
