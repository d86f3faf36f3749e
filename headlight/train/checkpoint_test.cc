#include "headlight/train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "headlight/io/safetensors.h"
#include "headlight/train/metrics_log.h"
#include "headlight/train/test_support-inl.h"
#include "headlight/train/trainer.h"

namespace headlight {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::MessageOf;
using testing_support::SmallConfig;
using testing_support::TemporaryFolder;
using testing_support::ToyData;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    TrainConfig config = SmallConfig();
    config.training.epochs = 1;
    Train(config, ToyData(config), {.directory = folder_ / "run"});
  }

  // The refusal to load the run after `change` was made to its checkpoint.
  std::string RefusalAfter(const std::function<void(Safetensors&)>& change) {
    Safetensors contents = ReadSafetensors(paths_.best());
    change(contents);
    WriteSafetensors(paths_.best(), contents);
    return MessageOf(ErrorKind::kInput, [&] { LoadClassifier(paths_.root); });
  }

  TemporaryFolder folder_;
  const RunPaths paths_{folder_ / "run"};
};

TEST_F(CheckpointTest, ATruncatedFileIsRefused) {
  const std::string bytes = ReadFile(paths_.best());
  for (const size_t keep :
       {size_t{0}, size_t{5}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    WriteFileAtomically(paths_.best(), bytes.substr(0, keep));
    EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(paths_.root); }),
                HasSubstr("best.safetensors"))
        << keep;
  }
}

TEST_F(CheckpointTest, AnotherShapeIsRefused) {
  const std::string message = RefusalAfter([](Safetensors& contents) {
    contents.tensors["classifier.bias"] = Tensor::Zeros({3}, DType::kF32, MemoryTag::kOther);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("best.safetensors"), HasSubstr("classifier.bias"),
                             HasSubstr("[2]"), HasSubstr("[3]")));
}

TEST_F(CheckpointTest, AnotherDtypeIsRefused) {
  const std::string message = RefusalAfter([](Safetensors& contents) {
    contents.tensors["classifier.bias"] = Tensor::Zeros({2}, DType::kF64, MemoryTag::kOther);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("classifier.bias"), HasSubstr("f64")));
}

TEST_F(CheckpointTest, WeightsThatAreNotFiniteAreRefused) {
  const std::string message = RefusalAfter([](Safetensors& contents) {
    Tensor bias = contents.tensors["classifier.bias"].Clone(MemoryTag::kOther);
    bias.data<float>()[1] = std::nanf("");
    contents.tensors["classifier.bias"] = bias;
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("best.safetensors"), HasSubstr("classifier.bias holds nan")));
}

TEST_F(CheckpointTest, AMissingTensorIsRefused) {
  const std::string message =
      RefusalAfter([](Safetensors& contents) { contents.tensors.erase("classifier.bias"); });
  EXPECT_THAT(message, HasSubstr("lacks the tensor classifier.bias"));
}

TEST_F(CheckpointTest, AnUnknownTensorIsRefused) {
  const std::string message = RefusalAfter([](Safetensors& contents) {
    contents.tensors["classifier.scale"] = contents.tensors["classifier.bias"];
  });
  EXPECT_THAT(message, HasSubstr("classifier.scale"));
}

TEST_F(CheckpointTest, AnotherVersionIsRefused) {
  const std::string message =
      RefusalAfter([](Safetensors& contents) { contents.metadata["format_version"] = "2"; });
  EXPECT_THAT(message, HasSubstr("format_version must be 1, found '2'"));
}

TEST_F(CheckpointTest, AConfigOfAHugeModelIsRefusedBeforeItIsMade) {
  std::string config = ReadFile(paths_.config());
  const size_t at = config.find("\ndim = 16");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, 9, "\ndim = 65536");
  WriteFileAtomically(paths_.config(), config);
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(paths_.root); }),
              AllOf(HasSubstr("too small"), HasSubstr("config.toml")));
}

TEST_F(CheckpointTest, WeightsOfAnotherModelAreRefused) {
  TrainConfig config = SmallConfig();
  config.training.epochs = 1;
  config.model.heads = 4;
  Train(config, ToyData(config), {.directory = folder_ / "other"});
  const RunPaths other(folder_ / "other");
  const std::string own = ReadFile(other.best());
  WriteFileAtomically(other.best(), ReadFile(paths_.best()));
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(other.root); }),
              AllOf(HasSubstr(other.best()), HasSubstr("saved with heads 2, config.toml"),
                    HasSubstr("says 4")));
  WriteFileAtomically(other.best(), own);
  std::string text = ReadFile(other.text());
  text.replace(text.find("\"good\""), 6, "\"bad_\"");
  WriteFileAtomically(other.text(), text);
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(other.root); }),
              AllOf(HasSubstr(other.best()), HasSubstr("text.json")));
  text = ReadFile(RunPaths(paths_.root).text());
  text.replace(text.find("\"lower\""), 7, "\"keep\"");
  WriteFileAtomically(other.text(), text);
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(other.root); }),
              HasSubstr("tokenizer than those in text.json"));
}

TEST_F(CheckpointTest, AnOlderCheckpointThatDoesNotSayItsModelIsRead) {
  Safetensors contents = ReadSafetensors(paths_.best());
  EXPECT_EQ(contents.metadata.erase("model") + contents.metadata.erase("text_encoder"), 2u);
  WriteSafetensors(paths_.best(), contents);
  EXPECT_EQ(LoadClassifier(paths_.root, CheckpointChoice::kBest, Precision::kBF16).step, 9);
}

TEST_F(CheckpointTest, ABrokenTrainerStateIsRefused) {
  TrainConfig config = SmallConfig();
  config.training.epochs = 1;
  std::filesystem::remove(paths_.result());
  Safetensors contents = ReadSafetensors(paths_.last());
  const std::string good = contents.metadata["trainer"];
  for (const std::string& bad : {std::string(), std::string("[]"), std::string("{\"step\":-1}"),
                                 good.substr(0, good.size() / 2)}) {
    contents.metadata["trainer"] = bad;
    WriteSafetensors(paths_.last(), contents);
    EXPECT_THAT(MessageOf(ErrorKind::kInput,
                          [&] {
                            Train(config, ToyData(config),
                                  {.directory = paths_.root, .existing = OnExisting::kResume});
                          }),
                HasSubstr("last.safetensors"));
  }
}

TEST_F(CheckpointTest, ARunWithoutACheckpointSaysSo) {
  std::filesystem::remove(paths_.best());
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(paths_.root); }),
              HasSubstr("no checkpoint"));
  EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { LoadClassifier(folder_ / "elsewhere"); }),
              HasSubstr("is not a run directory"));
}

TEST_F(CheckpointTest, RunsAreListedWithTheirResults) {
  std::filesystem::create_directories(folder_ / "grid/heads-1");
  std::filesystem::copy(paths_.root, folder_ / "grid/heads-1",
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove(folder_ / "grid/heads-1/result.json");
  std::filesystem::create_directories(folder_ / "broken");
  WriteFileAtomically(folder_ / "broken/config.toml", "format_version = 9\n");
  const std::vector<RunSummary> runs = ListRuns(folder_.path());
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_THAT(runs[0].problem, HasSubstr("format_version"));
  EXPECT_FALSE(runs[1].result.has_value());
  EXPECT_EQ(runs[1].last_step, 9);
  ASSERT_TRUE(runs[2].result.has_value());
  EXPECT_EQ(runs[2].result->steps, 9);
  EXPECT_EQ(runs[2].result->valid.confusion.size(), 2u);
  EXPECT_EQ(ListRuns(paths_.root).size(), 1u);
}

TEST_F(CheckpointTest, ABrokenResultIsInput) {
  for (const char* bad : {"", "{}", "{\"format_version\":1}", "{\"format_version\":\"1\"}"}) {
    WriteFileAtomically(paths_.result(), bad);
    EXPECT_THAT(MessageOf(ErrorKind::kInput, [&] { ReadResult(paths_); }),
                HasSubstr("result.json"));
  }
}

TEST_F(CheckpointTest, MetricsAreCutBackAndEventsRebuilt) {
  const int64_t lines = [&] {
    const MetricsLog log(paths_, 3);
    return log.lines();
  }();
  EXPECT_EQ(lines, 3);
  EXPECT_EQ(ReadHistory(paths_).steps.size(), 1u);
  int events = 0;
  for (const auto& entry : std::filesystem::directory_iterator(paths_.root)) {
    if (entry.path().filename().string().rfind("events.out.tfevents.", 0) != 0) continue;
    ++events;
    EXPECT_GT(entry.file_size(), 100u);
  }
  EXPECT_EQ(events, 1);
}

}  // namespace
}  // namespace headlight
