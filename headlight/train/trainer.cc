#include "headlight/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/base/clock.h"
#include "headlight/base/error.h"
#include "headlight/base/memory.h"
#include "headlight/base/profiler.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/loss/cross_entropy.h"
#include "headlight/kernels/optimizer/adam.h"
#include "headlight/models/text_classifier.h"
#include "headlight/train/batching.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/evaluate.h"
#include "headlight/train/head_monitor.h"
#include "headlight/train/json-inl.h"
#include "headlight/train/metrics_log.h"
#include "headlight/train/optimizer.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsBetweenUpdates = 0.1;

// "encoder.0.attention.query.weight" -> "encoder.0"; "classifier.bias" -> "classifier".
std::string LayerOf(std::string_view parameter) {
  size_t end = parameter.find('.');
  if (parameter.substr(0, end) == "encoder") end = parameter.find('.', end + 1);
  return std::string(parameter.substr(0, end));
}

bool IsBetter(BestBy by, const ClassificationMetrics& now, const ClassificationMetrics& best) {
  double gain = 0;
  if (by == BestBy::kAccuracy) gain = now.accuracy - best.accuracy;
  if (by == BestBy::kMacroF1) gain = now.macro_f1 - best.macro_f1;
  if (gain == 0) gain = best.loss - now.loss;
  return gain > 0;
}

// What is measured by the clock of this process; never part of a checkpoint.
struct Timing {
  double began = MonotonicSeconds();
  double epoch_seconds = 0;
  int64_t epoch_steps = 0;
  int64_t epoch_tokens = 0;
  double window_seconds = 0;
  int64_t window_tokens = 0;
  double last_update = 0;
};

struct BatchOutcome {
  double loss = 0;  // mean over the texts
  int64_t correct = 0;
};

class TrainingRun {
 public:
  TrainingRun(const TrainConfig& config, const PreparedData& data, const TrainOptions& options);
  void Resume();
  RunResult Run();

 private:
  void RunEpoch();
  void Step(std::span<const int64_t> texts);
  BatchOutcome ForwardBackward(const RaggedBatch& batch);
  void AddUp(const RaggedBatch& batch, const BatchOutcome& outcome, double seconds);
  void Record();
  void Probe();
  void FinishEpoch();
  void Save();
  void StopIfAsked();
  [[noreturn]] void ThrowNonfinite(const RaggedBatch& batch);
  ForwardOptions StepOptions() const;
  bool Done() const { return state_.step >= total_steps_ || state_.stopped_early; }
  double Epochs() const {
    return static_cast<double>(state_.epoch) +
           static_cast<double>(state_.position) / static_cast<double>(batches_per_epoch_);
  }
  void ShowProgress();
  RunResult MakeResult() const;
  void AddMeasurements(RunResult& result) const;

  const TrainConfig& config_;
  const PreparedData& data_;
  const TrainOptions& options_;
  const RunPaths paths_;
  const NonfinitePolicy nonfinite_;
  TextClassifier model_;
  std::vector<Parameter*> parameters_;
  Optimizer optimizer_;
  TextClassifier::Saved saved_;
  BatchBuilder builder_;
  HeadMonitor monitor_;
  std::optional<MetricsLog> log_;
  int64_t batches_per_epoch_ = 0;
  int64_t total_steps_ = 0;
  Schedule schedule_;
  Tensor losses_;  // [batch]
  TrainerState state_;
  int64_t replaced_before_ = 0;  // of state_.nonfinite_scores_replaced when this process began
  std::vector<double> squared_norms_;  // by parameter, of the last step
  double gradient_norm_ = 0;
  double learning_rate_ = 0;
  Timing timing_;
};

TrainingRun::TrainingRun(const TrainConfig& config, const PreparedData& data,
                         const TrainOptions& options)
    : config_(config),
      data_(data),
      options_(options),
      paths_(options.directory),
      nonfinite_(config.training.on_nonfinite == OnNonfinite::kZero ? NonfinitePolicy::kZero
                                                                    : NonfinitePolicy::kPropagate),
      model_(ResolvedModel(config, data.encoder.vocabulary().size(),
                           static_cast<int64_t>(data.encoder.labels().size())),
             DType::kF32, static_cast<uint64_t>(config.training.seed)),
      parameters_(model_.Parameters()),
      optimizer_(config.training.optimizer, parameters_),
      monitor_(data.valid, config.output.probe_texts, static_cast<uint64_t>(config.training.seed)) {
  const TrainingChoices& training = config.training;
  batches_per_epoch_ = EpochBatches(data.train, training.order, training.batch,
                                    static_cast<uint64_t>(training.seed), 0)
                           .size();
  total_steps_ = TotalSteps(config, batches_per_epoch_);
  schedule_ = ResolvedSchedule(config, total_steps_);
  losses_ = Tensor::Uninitialized({training.batch}, DType::kF32, MemoryTag::kWorkspace);
  state_.data_fingerprint = data.fingerprint;
}

void TrainingRun::Resume() {
  std::error_code ignored;
  if (!fs::exists(paths_.last(), ignored)) return;  // killed before the first checkpoint
  TrainerState state = LoadTraining(paths_.last(), data_.encoder, model_, optimizer_);
  if (state.position > batches_per_epoch_ || state.step > total_steps_) {
    throw Error(ErrorKind::kInput, "resume {}: step {} is beyond the run's {}", paths_.last(),
                state.step, total_steps_);
  }
  // Until something is evaluated there are no metrics.
  if (state.has_best || state.stopped_early || state.step >= total_steps_) {
    for (const ClassificationMetrics* metrics : {&state.best, &state.last}) {
      internal::CheckConfusion(*metrics, data_.encoder.labels().size(), paths_.last());
    }
  }
  if (state.has_best && !fs::exists(paths_.best(), ignored)) {
    throw Error(
        ErrorKind::kInput,
        "resume {}: {}, the model of step {}, is missing; put it back, or begin anew (--replace)",
        paths_.root, paths_.best(), state.best_step);
  }
  state_ = std::move(state);
  replaced_before_ = state_.nonfinite_scores_replaced;
}

RunResult TrainingRun::Run() {
  ResetMemoryPeaks();
  log_.emplace(paths_, state_.metrics_lines);
  while (!Done()) RunEpoch();
  RunResult result = MakeResult();
  AddMeasurements(result);
  WriteResult(paths_, result);
  if (options_.progress != nullptr) options_.progress->Finish();
  return result;
}

void TrainingRun::RunEpoch() {
  const TrainingChoices& training = config_.training;
  const EpochBatches batches(data_.train, training.order, training.batch,
                             static_cast<uint64_t>(training.seed), state_.epoch);
  while (state_.position < batches.size() && state_.step < total_steps_) {
    StopIfAsked();
    Step(batches[state_.position]);
    if (options_.after_step) options_.after_step();
    const int64_t step = state_.step;
    if (step % config_.output.log_every == 0) Record();
    if (config_.output.probe_every > 0 && step % config_.output.probe_every == 0) Probe();
    const bool at_end = state_.position == batches.size() || step == total_steps_;
    const int64_t interval = config_.output.checkpoint_every;
    if (!at_end && interval > 0 && step % interval == 0) Save();
  }
  FinishEpoch();
}

ForwardOptions TrainingRun::StepOptions() const {
  ForwardOptions options;
  options.training = true;
  options.seed = static_cast<uint64_t>(config_.training.seed);
  options.step = state_.step;
  options.nonfinite = nonfinite_;
  return options;
}

// The parameters' gradients hold the gradient of the mean loss afterwards.
BatchOutcome TrainingRun::ForwardBackward(const RaggedBatch& batch) {
  const CrossEntropyOptions options{config_.training.label_smoothing};
  Tensor logits = model_.Forward(batch, StepOptions(), &saved_);
  Tensor losses = losses_.Slice(0, 0, batch.batch());
  BatchOutcome outcome;
  {
    const Zone zone(ZoneKind::kLoss, ZonePass::kForward);
    outcome.loss = CrossEntropyForward(logits, batch.labels, options, losses);
    for (int64_t i = 0; i < batch.batch(); ++i) {
      const bool correct = PredictedClass(logits, i) == batch.labels[static_cast<size_t>(i)];
      outcome.correct += correct ? 1 : 0;
    }
  }
  {
    const Zone zone(ZoneKind::kLoss, ZonePass::kBackward);
    CrossEntropyBackward(logits, batch.labels, options, 1 / static_cast<double>(batch.batch()),
                         logits);
  }
  model_.Backward(logits, saved_);
  return outcome;
}

void TrainingRun::Step(std::span<const int64_t> texts) {
  const double began = MonotonicSeconds();
  const RaggedBatch* batch = nullptr;
  {
    const Zone zone(ZoneKind::kData, ZonePass::kForward);
    batch = &builder_.Fill(data_.train, texts);
  }
  const BatchOutcome outcome = ForwardBackward(*batch);
  {
    const Zone zone(ZoneKind::kOptimizer, ZonePass::kUpdate);
    squared_norms_ = SquaredGradientNorms(parameters_);
    double sum = 0;
    for (const double square : squared_norms_) sum += square;
    gradient_norm_ = std::sqrt(sum);
    if (!std::isfinite(outcome.loss) || !std::isfinite(gradient_norm_)) ThrowNonfinite(*batch);
    learning_rate_ = LearningRate(schedule_, state_.step);
    optimizer_.Step(learning_rate_, ClipFactor(gradient_norm_, config_.training.clip));
    model_.PrepareWeights();
  }
  AddUp(*batch, outcome, MonotonicSeconds() - began);
  ShowProgress();
}

void TrainingRun::AddUp(const RaggedBatch& batch, const BatchOutcome& outcome, double seconds) {
  const double loss_of_texts = outcome.loss * static_cast<double>(batch.batch());
  ++state_.step;
  ++state_.position;
  state_.correct += outcome.correct;
  state_.window_correct += outcome.correct;
  state_.loss_sum += loss_of_texts;
  state_.texts += batch.batch();
  state_.tokens += batch.tokens();
  state_.window_loss_sum += loss_of_texts;
  state_.window_texts += batch.batch();
  timing_.epoch_seconds += seconds;
  timing_.epoch_tokens += batch.tokens();
  ++timing_.epoch_steps;
  timing_.window_seconds += seconds;
  timing_.window_tokens += batch.tokens();
}

void TrainingRun::Record() {
  StepRecord record;
  record.step = state_.step;
  record.epoch = Epochs();
  const auto texts = static_cast<double>(state_.window_texts);
  record.loss = state_.window_loss_sum / texts;
  record.accuracy = static_cast<double>(state_.window_correct) / texts;
  record.learning_rate = learning_rate_;
  record.gradient_norm = gradient_norm_;
  // Parameters come in forward order, so those of a layer are neighbours.
  for (size_t i = 0; i < parameters_.size(); ++i) {
    std::string layer = LayerOf(parameters_[i]->name);
    if (record.gradient_norms.empty() || record.gradient_norms.back().first != layer) {
      record.gradient_norms.emplace_back(std::move(layer), 0);
    }
    record.gradient_norms.back().second += squared_norms_[i];
  }
  for (auto& [layer, norm] : record.gradient_norms) norm = std::sqrt(norm);
  record.nonfinite_scores_replaced = replaced_before_ + model_.NonfiniteScoresReplaced();
  record.tokens_per_second =
      timing_.window_seconds > 0
          ? static_cast<double>(timing_.window_tokens) / timing_.window_seconds
          : 0;
  log_->Write(record);
  state_.window_loss_sum = 0;
  state_.window_correct = 0;
  state_.window_texts = 0;
  timing_.window_seconds = 0;
  timing_.window_tokens = 0;
}

void TrainingRun::Probe() {
  log_->Write(ProbeRecord{state_.step, monitor_.Measure(model_, nonfinite_)});
}

void TrainingRun::FinishEpoch() {
  const double began = MonotonicSeconds();
  state_.last = Evaluate(model_, data_.valid, {config_.evaluation.batch, nonfinite_});
  EpochRecord record;
  record.step = state_.step;
  record.epoch = Epochs();
  const auto texts = static_cast<double>(std::max<int64_t>(state_.texts, 1));
  record.train_loss = state_.loss_sum / texts;
  record.train_accuracy = static_cast<double>(state_.correct) / texts;
  record.valid_loss = state_.last.loss;
  record.valid_accuracy = state_.last.accuracy;
  record.valid_macro_f1 = state_.last.macro_f1;
  record.best = !state_.has_best || IsBetter(config_.evaluation.best_by, state_.last, state_.best);
  if (record.best) {
    state_.has_best = true;
    state_.best = state_.last;
    state_.best_step = state_.step;
    state_.best_train_loss = record.train_loss;
    SaveModel(paths_.best(), model_, data_.encoder, state_.step);
  }
  state_.epochs_without_better = record.best ? 0 : state_.epochs_without_better + 1;
  const int64_t patience = config_.evaluation.patience;
  state_.stopped_early = patience > 0 && state_.epochs_without_better >= patience;
  record.seconds = timing_.epoch_seconds;
  record.steps = timing_.epoch_steps;
  record.tokens = timing_.epoch_tokens;
  record.evaluation_seconds = MonotonicSeconds() - began;
  log_->Write(record);
  if (options_.progress != nullptr) {
    options_.progress->Message(fmt::format(
        "epoch {:g} of {:g}: train loss {:.4f}, valid loss {:.4f}, valid accuracy {:.2f} %{}",
        record.epoch, static_cast<double>(total_steps_) / static_cast<double>(batches_per_epoch_),
        record.train_loss, record.valid_loss, 100 * record.valid_accuracy,
        record.best ? ", the best so far" : ""));
  }
  if (state_.position == batches_per_epoch_) {
    ++state_.epoch;
    state_.position = 0;
    state_.loss_sum = 0;
    state_.correct = 0;
    state_.texts = 0;
  }
  timing_.epoch_seconds = 0;
  timing_.epoch_steps = 0;
  timing_.epoch_tokens = 0;
  Save();
}

void TrainingRun::Save() {
  state_.nonfinite_scores_replaced = replaced_before_ + model_.NonfiniteScoresReplaced();
  state_.metrics_lines = log_->lines();
  log_->Sync();
  SaveTraining(paths_.last(), model_, data_.encoder, optimizer_, state_);
}

void TrainingRun::StopIfAsked() {
  if (options_.stop == nullptr || !options_.stop->load(std::memory_order_relaxed)) return;
  Save();
  if (options_.progress != nullptr) options_.progress->Finish();
  throw Error(ErrorKind::kInterrupted,
              "training: stopped after step {} of {}; {} holds it, and resuming goes on from there",
              state_.step, total_steps_, paths_.last());
}

void TrainingRun::ThrowNonfinite(const RaggedBatch& batch) {
  NonfiniteReport report;
  const bool found = model_.FindFirstNonfinite(batch, StepOptions(), &report) ||
                     model_.FindFirstNonfiniteGradient(&report);
  const bool parameters_finite = std::all_of(
      parameters_.begin(), parameters_.end(),
      [](const Parameter* parameter) { return std::isfinite(SumOfSquares(parameter->value)); });
  // The update of this step was not made: what is saved is the last good state.
  if (parameters_finite) Save();
  if (options_.progress != nullptr) options_.progress->Finish();
  throw Error(ErrorKind::kNumeric,
              "training: a value became non-finite at step {} (epoch {:.2f}): {}. A lower learning "
              "rate (lr), a warm-up, or clip may help",
              state_.step + 1, Epochs(), found ? report.ToString() : "in the loss");
}

void TrainingRun::ShowProgress() {
  if (options_.progress == nullptr) return;
  const double now = MonotonicSeconds();
  if (now - timing_.last_update < kSecondsBetweenUpdates && state_.step < total_steps_) return;
  timing_.last_update = now;
  const auto texts = static_cast<double>(std::max<int64_t>(state_.texts, 1));
  ProgressState progress;
  progress.title = fmt::format(
      "epoch {}/{}", state_.epoch + 1,
      (total_steps_ + batches_per_epoch_ - 1) / std::max<int64_t>(batches_per_epoch_, 1));
  progress.done = state_.step;
  progress.total = total_steps_;
  progress.values = {
      {"loss", fmt::format("{:.4f}", state_.loss_sum / texts)},
      {"accuracy", fmt::format("{:.1f} %", 100 * static_cast<double>(state_.correct) / texts)},
      {"tokens/s", FormatRate(static_cast<double>(timing_.epoch_tokens) /
                              std::max(timing_.epoch_seconds, 1e-9))}};
  options_.progress->Update(progress);
}

RunResult TrainingRun::MakeResult() const {
  RunResult result;
  result.ended_by = state_.stopped_early         ? "early stopping"
                    : config_.training.steps > 0 ? "steps"
                                                 : "epochs";
  result.steps = state_.step;
  result.epochs = Epochs();
  result.parameters = ParameterCount(parameters_);
  result.vocabulary = data_.encoder.vocabulary().size();
  result.train_texts = data_.train.size();
  result.valid_texts = data_.valid.size();
  result.skipped_texts = data_.train.skipped + data_.valid.skipped;
  result.labels = data_.encoder.labels();
  result.train_loss = state_.best_train_loss;
  result.valid = state_.best;
  result.last = state_.last;
  result.best_step = state_.best_step;
  result.nonfinite_scores_replaced = state_.nonfinite_scores_replaced;
  return result;
}

// Times come from the log, so that those of the epochs before a resume count too.
void TrainingRun::AddMeasurements(RunResult& result) const {
  double seconds = 0;
  double steps = 0;
  double tokens = 0;
  for (const EpochRecord& epoch : ReadHistory(paths_).epochs) {
    seconds += epoch.seconds;
    steps += static_cast<double>(epoch.steps);
    tokens += static_cast<double>(epoch.tokens);
  }
  if (steps > 0 && seconds > 0) {
    result.seconds_per_epoch = seconds / steps * static_cast<double>(batches_per_epoch_);
    result.tokens_per_second = tokens / seconds;
  }
  result.seconds = MonotonicSeconds() - timing_.began;
  for (int tag = 0; tag < kMemoryTags; ++tag) {
    const auto each = static_cast<MemoryTag>(tag);
    result.peak_bytes.emplace_back(MemoryTagName(each), MemoryOf(each).peak);
  }
  result.peak_bytes.emplace_back("total", MemoryTotal().peak);
  result.peak_resident_bytes = PeakResidentBytes();
}

void RemoveRun(const RunPaths& paths) {
  std::error_code error;
  // The config goes last: while it is there, the rest is known to be a run.
  for (const std::string& path : {paths.result(), paths.last(), paths.best(), paths.metrics(),
                                  paths.text(), paths.environment(), paths.config()}) {
    fs::remove(path, error);
    if (error) {
      throw Error(ErrorKind::kResource, "run directory: cannot remove {}: {}", path,
                  error.message());
    }
  }
}

bool LiesIn(const std::string& path, const std::string& folder) {
  std::error_code ignored;
  const fs::path from_folder =
      fs::weakly_canonical(path, ignored).lexically_relative(fs::weakly_canonical(folder, ignored));
  return !from_folder.empty() && *from_folder.begin() != "..";
}

// --replace deletes a run, and nothing that a person may have put where one was expected.
void CheckReplaceable(const TrainConfig& config, const RunPaths& paths) {
  std::error_code ignored;
  if (!fs::exists(paths.config(), ignored)) return;
  if (!HoldsRun(paths)) {
    throw Error(ErrorKind::kUsage,
                "run directory {}: its config.toml is not that of a run; name a new directory",
                paths.root);
  }
  for (const std::vector<std::string>* files : {&config.data.data, &config.data.valid}) {
    for (const std::string& file : *files) {
      if (!LiesIn(file, paths.root)) continue;
      throw Error(ErrorKind::kUsage, "run directory {}: holds {}, which replacing could delete",
                  paths.root, file);
    }
  }
}

// The stored result when the run has finished, else nothing: then there is something to do.
std::optional<RunResult> CheckExisting(const TrainConfig& config, const PreparedData& data,
                                       const RunPaths& paths, OnExisting existing) {
  std::error_code ignored;
  if (!fs::exists(paths.config(), ignored)) return std::nullopt;
  if (existing == OnExisting::kReplace) {
    RemoveRun(paths);
    return std::nullopt;
  }
  if (existing == OnExisting::kRefuse) {
    throw Error(
        ErrorKind::kUsage,
        "run directory {}: holds a run already; resume or replace it, or name another directory",
        paths.root);
  }
  CheckSameChoices(paths, config);
  for (const std::string& path : {paths.environment(), paths.text(), paths.metrics()}) {
    if (!fs::exists(path, ignored) || fs::is_regular_file(path, ignored)) continue;
    throw Error(ErrorKind::kInput, "resume {}: {} must be a regular file", paths.root, path);
  }
  if (BeganOnOtherData(paths, data)) {
    throw Error(ErrorKind::kInput,
                "resume {}: the data are not those that the run began on; give the same files, "
                "name another --out, or delete that folder",
                paths.root);
  }
  return ReadResult(paths);
}

}  // namespace

RunResult Train(const TrainConfig& config, const PreparedData& data, const TrainOptions& options) {
  ValidateTrainConfig(config);
  const RunPaths paths(options.directory);
  if (options.existing == OnExisting::kReplace) CheckReplaceable(config, paths);
  const RunLock lock(paths);
  if (std::optional<RunResult> finished = CheckExisting(config, data, paths, options.existing)) {
    return *std::move(finished);
  }
  const int64_t threads = config.training.threads;
  SetNumThreads(threads > 0 ? static_cast<int>(threads) : PhysicalCores());
  TrainingRun run(config, data, options);
  WriteEnvironment(paths);
  WriteConfig(paths, config);
  data.encoder.Save(paths.text());
  run.Resume();
  return run.Run();
}

}  // namespace headlight
