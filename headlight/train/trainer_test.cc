#include "headlight/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <limits>

#include "headlight/base/threads.h"
#include "headlight/io/safetensors.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/config_field.h"
#include "headlight/train/evaluate.h"
#include "headlight/train/metrics_log.h"
#include "headlight/train/test_support-inl.h"

namespace headlight {
namespace {

using testing::HasSubstr;
using testing_support::MessageOf;
using testing_support::SmallConfig;
using testing_support::TemporaryFolder;
using testing_support::ToyData;
using testing_support::ToyTexts;

// Stops training after so many updates of its bar, and keeps its messages.
class StoppingProgress : public Progress {
 public:
  explicit StoppingProgress(int64_t stop_at) : stop_at_(stop_at) {}
  void Update(const ProgressState& state) override {
    if (state.done >= stop_at_) stop = true;
  }
  void Message(const std::string& line) override { messages.push_back(line); }
  void Finish() override {}

  std::atomic<bool> stop{false};
  std::vector<std::string> messages;

 private:
  const int64_t stop_at_;
};

// Determined part of a run's metrics: everything but "timing".
std::string MetricsWithoutTiming(const std::string& run) {
  std::ifstream in(RunPaths(run).metrics());
  std::string all;
  for (std::string line; std::getline(in, line);) {
    all += line.substr(0, line.find("\"timing\"")) + "\n";
  }
  return all;
}

TEST(Trainer, LearnsTheToyTask) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 8;
  const PreparedData data = ToyData(config);
  StoppingProgress progress(std::numeric_limits<int64_t>::max());
  const RunResult result =
      Train(config, data, {.directory = folder / "run", .progress = &progress});
  EXPECT_GE(result.valid.accuracy, 0.95);
  EXPECT_EQ(result.ended_by, "epochs");
  EXPECT_EQ(result.steps, 72);
  EXPECT_DOUBLE_EQ(result.epochs, 8);
  EXPECT_EQ(result.valid_texts, 24);
  EXPECT_EQ(result.valid.count, 24);
  EXPECT_GT(result.tokens_per_second, 0);
  EXPECT_GT(result.seconds_per_epoch, 0);
  EXPECT_EQ(progress.messages.size(), 8u);
  const RunHistory history = ReadHistory(RunPaths(folder / "run"));
  EXPECT_EQ(history.steps.size(), 36u);
  EXPECT_EQ(history.probes.size(), 24u);
  EXPECT_EQ(history.epochs.size(), 8u);
  EXPECT_LT(history.steps.back().loss, history.steps.front().loss);
  EXPECT_EQ(history.probes[0].heads.size(), 2u);
  EXPECT_GT(history.probes[0].heads[0].entropy, 0);
  EXPECT_GT(history.steps[0].gradient_norms.size(), 2u);
}

TEST(Trainer, TheSavedRunPredictsAsItWasEvaluated) {
  const TemporaryFolder folder;
  const TrainConfig config = SmallConfig();
  const PreparedData data = ToyData(config);
  const RunResult result = Train(config, data, {.directory = folder / "run"});
  const LoadedClassifier loaded = LoadClassifier(folder / "run");
  EXPECT_EQ(loaded.step, result.best_step);
  const ClassificationMetrics metrics = Evaluate(loaded.model, data.valid, {});
  EXPECT_EQ(metrics.loss, result.valid.loss);
  EXPECT_EQ(metrics.confusion, result.valid.confusion);
  // Alone and in batches of any size: the same bits.
  EXPECT_EQ(Evaluate(loaded.model, data.valid, {.batch = 1}).loss, metrics.loss);
  EXPECT_EQ(Evaluate(loaded.model, data.valid, {.batch = 5}).loss, metrics.loss);
  EXPECT_EQ(LoadClassifier(folder / "run", CheckpointChoice::kLast).step, result.steps);
}

TEST(Trainer, InterruptedAndResumedIsTheStraightRun) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.model.dropout = 0.2;
  SetField(config, "schedule", "cosine");
  SetField(config, "optimizer", "adamw");
  SetField(config, "label-smoothing", "0.1");
  SetField(config, "batching", "bucket");
  const PreparedData data = ToyData(config);
  Train(config, data, {.directory = folder / "straight"});
  const RunPaths straight(folder / "straight");
  for (const int64_t stop_at : {1, 9, 14}) {
    const RunPaths paths(folder / ("stopped_" + std::to_string(stop_at)));
    for (int64_t made = 0; made < stop_at; ++made) {
      StoppingProgress progress(0);  // stops after one step
      const std::string message = MessageOf(ErrorKind::kInterrupted, [&] {
        Train(config, data,
              {.directory = paths.root,
               .existing = OnExisting::kResume,
               .progress = &progress,
               .stop = &progress.stop});
      });
      EXPECT_THAT(message, HasSubstr("stopped after step " + std::to_string(made + 1) + " of 27"));
    }
    Train(config, data, {.directory = paths.root, .existing = OnExisting::kResume});
    EXPECT_EQ(ReadFile(paths.last()), ReadFile(straight.last())) << stop_at;
    EXPECT_EQ(ReadFile(paths.best()), ReadFile(straight.best())) << stop_at;
    EXPECT_EQ(MetricsWithoutTiming(paths.root), MetricsWithoutTiming(straight.root)) << stop_at;
  }
}

TEST(Trainer, ThreadsDoNotChangeTheCheckpoint) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 2;
  const PreparedData data = ToyData(config);
  std::string first;
  for (const int threads : {1, 2, 3}) {
    config.training.threads = threads;
    const RunPaths paths(folder / std::to_string(threads));
    Train(config, data, {.directory = paths.root});
    const std::string bytes = ReadFile(paths.last());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads << " threads";
  }
  SetNumThreads(PhysicalCores());
}

TEST(Trainer, StopsEarlyWhenNothingImproves) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 30;
  config.training.learning_rate = 1e-12;  // nothing can improve enough to show
  config.evaluation.best_by = BestBy::kAccuracy;
  config.evaluation.patience = 2;
  const PreparedData data = ToyData(config);
  const RunResult result = Train(config, data, {.directory = folder / "run"});
  EXPECT_LT(result.epochs, 30);
  EXPECT_EQ(result.ended_by, "early stopping");
  EXPECT_EQ(result.steps, result.best_step + 2 * 9);
}

TEST(Trainer, EndsAfterTheStepsAskedFor) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.steps = 13;
  const RunResult result = Train(config, ToyData(config), {.directory = folder / "run"});
  EXPECT_EQ(result.steps, 13);
  EXPECT_EQ(result.ended_by, "steps");
  EXPECT_NEAR(result.epochs, 13.0 / 9, 1e-12);
  EXPECT_EQ(ReadHistory(RunPaths(folder / "run")).epochs.size(), 2u);
}

TEST(Trainer, ADirectoryWithARunIsNotOverwritten) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 1;
  const PreparedData data = ToyData(config);
  const RunResult result = Train(config, data, {.directory = folder / "run"});
  EXPECT_THAT(
      MessageOf(ErrorKind::kUsage, [&] { Train(config, data, {.directory = folder / "run"}); }),
      HasSubstr("holds a run already"));
  // A finished run is not trained again.
  const RunResult again =
      Train(config, data, {.directory = folder / "run", .existing = OnExisting::kResume});
  EXPECT_EQ(RunResultToJson(again), RunResultToJson(result));
  TrainConfig other = config;
  SetField(other, "dim", "32");
  EXPECT_THAT(MessageOf(ErrorKind::kUsage,
                        [&] {
                          Train(other, data,
                                {.directory = folder / "run", .existing = OnExisting::kResume});
                        }),
              HasSubstr("other choices of dim (16, now 32); name another --out"));
  Train(other, data, {.directory = folder / "run", .existing = OnExisting::kReplace});
  EXPECT_EQ(LoadClassifier(folder / "run").config.model.dim, 32);
}

TEST(Trainer, ResumeRefusesOtherData) {
  const TemporaryFolder folder;
  const TrainConfig config = SmallConfig();
  StoppingProgress progress(0);
  MessageOf(ErrorKind::kInterrupted, [&] {
    Train(config, ToyData(config),
          {.directory = folder / "run", .progress = &progress, .stop = &progress.stop});
  });
  const PreparedData other = PrepareData(ToyTexts(72, 9), ToyTexts(24, 2), config.text);
  EXPECT_THAT(MessageOf(ErrorKind::kInput,
                        [&] {
                          Train(config, other,
                                {.directory = folder / "run", .existing = OnExisting::kResume});
                        }),
              HasSubstr("not those that the run began on"));
}

TEST(Trainer, AFinishedRunIsNotTheResultOfOtherData) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 1;
  Train(config, ToyData(config), {.directory = folder / "run"});
  const PreparedData other = PrepareData(ToyTexts(72, 9), ToyTexts(24, 2), config.text);
  const TrainOptions resume{.directory = folder / "run", .existing = OnExisting::kResume};
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { Train(config, other, resume); }),
              testing::AllOf(HasSubstr("not those that the run began on"), HasSubstr("--out")));
  // Without the last checkpoint nothing says what it began on.
  std::filesystem::remove(RunPaths(folder / "run").last());
  Train(config, other, resume);
}

TEST(Trainer, TwoProcessesDoNotTrainIntoOneDirectory) {
  const TemporaryFolder folder;
  const TrainConfig config = SmallConfig();
  const RunLock lock(RunPaths(folder / "run"));
  EXPECT_THAT(MessageOf(ErrorKind::kUsage,
                        [&] { Train(config, ToyData(config), {.directory = folder / "run"}); }),
              HasSubstr("another process"));
}

TEST(Trainer, AnUnwritableDirectoryIsAResourceError) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "file", "x");
  const TrainConfig config = SmallConfig();
  EXPECT_THAT(
      MessageOf(ErrorKind::kResource,
                [&] { Train(config, ToyData(config), {.directory = folder / "file/run"}); }),
      HasSubstr("file/run"));
}

TEST(Trainer, AFullDiskIsAResourceError) {
  const TemporaryFolder folder;
  const TrainConfig config = SmallConfig();
  const PreparedData data = ToyData(config);
  // A limit on the size of files stands for the full disk: writes fail in the same place.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{16384, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      MessageOf(ErrorKind::kResource, [&] { Train(config, data, {.directory = folder / "run"}); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr(folder / "run/checkpoints/"));
  // With room again, the run goes on to its end.
  EXPECT_EQ(
      Train(config, data, {.directory = folder / "run", .existing = OnExisting::kResume}).steps,
      27);
}

// A run stopped after one step, with weights of head 1 so large that its scores overflow.
void PlantOverflow(const TrainConfig& config, const PreparedData& data, const RunPaths& paths) {
  StoppingProgress progress(0);
  MessageOf(ErrorKind::kInterrupted, [&] {
    Train(config, data, {.directory = paths.root, .progress = &progress, .stop = &progress.stop});
  });
  Safetensors contents = ReadSafetensors(paths.last());
  for (const char* name : {"query", "key"}) {
    Tensor& weight = contents.tensors.at(std::string("encoder.0.attention.") + name + ".weight");
    // Head 1 owns the second half of the rows.
    float* values = weight.data<float>() + weight.elements() / 2;
    std::fill(values, values + weight.elements() / 2, 1e25f);
  }
  WriteSafetensors(paths.last(), contents);
}

TEST(Trainer, ANonFiniteValueStopsTheRunAndNamesItsPlace) {
  const TemporaryFolder folder;
  const TrainConfig config = SmallConfig();
  const PreparedData data = ToyData(config);
  const RunPaths paths(folder / "run");
  PlantOverflow(config, data, paths);
  const std::string message = MessageOf(ErrorKind::kNumeric, [&] {
    Train(config, data, {.directory = paths.root, .existing = OnExisting::kResume});
  });
  EXPECT_THAT(message, HasSubstr("non-finite at step 2"));
  EXPECT_THAT(message, HasSubstr("layer 0, head 1, tensor attention"));
  // The last good state is kept: the same happens again from there.
  EXPECT_EQ(LoadClassifier(paths.root, CheckpointChoice::kLast).step, 1);
}

TEST(Trainer, NonFiniteScoresCanBeReplacedAndAreCounted) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  SetField(config, "on-nonfinite", "zero");
  SetField(config, "epochs", "1");
  const PreparedData data = ToyData(config);
  const RunPaths paths(folder / "run");
  PlantOverflow(config, data, paths);
  const RunResult result =
      Train(config, data, {.directory = paths.root, .existing = OnExisting::kResume});
  EXPECT_EQ(result.steps, 9);
  EXPECT_GT(result.nonfinite_scores_replaced, 0);
  EXPECT_GT(ReadHistory(paths).steps.back().nonfinite_scores_replaced, 0);
}

TEST(Trainer, OneClassIsRefused) {
  Dataset train = ToyTexts(10, 1);
  for (Example& example : train.examples) example.label = "same";
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { PrepareData(train, train, SmallConfig().text); }),
              HasSubstr("label"));
}

TEST(Trainer, EmptyTextsAreSkippedAndCounted) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 1;
  Dataset train = ToyTexts(20, 1);
  train.examples[3].text = "  \t ";
  const PreparedData data = PrepareData(train, ToyTexts(8, 2), config.text);
  const RunResult result = Train(config, data, {.directory = folder / "run"});
  EXPECT_EQ(result.train_texts, 19);
  EXPECT_EQ(result.skipped_texts, 1);
}

TEST(Trainer, PredictionsAreTheSameAloneAndTogether) {
  const TemporaryFolder folder;
  TrainConfig config = SmallConfig();
  config.training.epochs = 6;
  Train(config, ToyData(config), {.directory = folder / "run"});
  const LoadedClassifier loaded = LoadClassifier(folder / "run");
  const std::vector<std::string> texts = {"one good two", "three bad four five", "", "zebra"};
  const std::vector<Prediction> together = Predict(loaded.model, loaded.encoder, texts, {});
  ASSERT_EQ(together.size(), 4u);
  EXPECT_EQ(together[0].label, "yes");
  EXPECT_EQ(together[1].label, "no");
  EXPECT_EQ(together[2].tokens, 0);
  EXPECT_EQ(together[3].unknown_tokens, 1);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<Prediction> alone =
        Predict(loaded.model, loaded.encoder, std::span(texts).subspan(i, 1), {});
    EXPECT_EQ(alone[0].probabilities, together[i].probabilities);
    EXPECT_NEAR(together[i].probabilities[0] + together[i].probabilities[1], 1, 1e-12);
  }
}

}  // namespace
}  // namespace headlight
