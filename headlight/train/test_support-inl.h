// What the tests of train/ share: a toy data set, a small config, a folder that goes away.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/io/file.h"
#include "headlight/text/dataset.h"
#include "headlight/train/config.h"
#include "headlight/train/prepared_data.h"

namespace headlight::testing_support {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = testing::TempDir() + "headlight_train_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Noise words around one word that says the label: 3 to 12 tokens, labels even.
inline Dataset ToyTexts(int64_t count, uint64_t seed) {
  static constexpr std::array<const char*, 8> kNoise = {"one",  "two", "three", "four",
                                                        "five", "six", "seven", "eight"};
  Dataset dataset;
  RandomStream random(seed, 0);
  for (int64_t i = 0; i < count; ++i) {
    const bool positive = i % 2 == 0;
    std::string text;
    const uint64_t before = random.Below(6);
    const uint64_t after = 2 + random.Below(6);
    for (uint64_t k = 0; k < before; ++k) text += std::string(kNoise[random.Below(8)]) + " ";
    text += positive ? "good" : "bad";
    for (uint64_t k = 0; k < after; ++k) text += " " + std::string(kNoise[random.Below(8)]);
    dataset.examples.push_back({text, positive ? "yes" : "no", "toy:" + std::to_string(i + 1)});
  }
  return dataset;
}

inline TrainConfig SmallConfig() {
  TrainConfig config;
  config.data.data = {"toy"};
  config.text.max_len = 16;
  config.text.vocabulary.min_count = 1;
  config.model.dim = 16;
  config.model.heads = 2;
  config.model.layers = 1;
  config.training.batch = 8;
  config.training.epochs = 3;
  config.training.learning_rate = 0.01;
  config.training.threads = 1;  // steps this small are not worth waking workers
  config.output.log_every = 2;
  config.output.probe_every = 3;
  config.output.probe_texts = 3;
  return config;
}

inline PreparedData ToyData(const TrainConfig& config) {
  return PrepareData(ToyTexts(72, 1), ToyTexts(24, 2), config.text);
}

// The message of the Error that `action` throws; the test fails when it throws none or another
// kind.
inline std::string MessageOf(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace headlight::testing_support
