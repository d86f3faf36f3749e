// Headlight's side of the peer benchmark: trains on the batches that it is told on standard input.
//
//   headlight_step prepare OUT.safetensors --data D ...      encodes the texts for all sides
//   headlight_step serve ENCODED.safetensors --heads N ...   answers requests
//
// Flags are those of `headlight train`. One request a line, one JSON object a line back (the same
// protocol as torch_step.py):
//   train 4,17,3;8,1,0     one step per list of rows of the training text
//   eval                   accuracy and loss on the validation text
//   init SEED FILE         starts anew from a seed, and writes the initial parameters
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "headlight/base/clock.h"
#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/io/safetensors.h"
#include "headlight/kernels/loss/cross_entropy.h"
#include "headlight/models/text_classifier.h"
#include "headlight/train/batching.h"
#include "headlight/train/config_field.h"
#include "headlight/train/evaluate.h"
#include "headlight/train/optimizer.h"
#include "headlight/train/prepared_data.h"

namespace headlight {
namespace {

TrainConfig ParseFlags(int argc, char** argv, int first) {
  TrainConfig config;
  config.model.dropout = 0;
  config.model.attention_dropout = 0;
  for (int i = first; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (!flag.starts_with("--")) throw Error(ErrorKind::kUsage, "expected a flag: {}", flag);
    SetField(config, flag.substr(2), argv[i + 1]);
  }
  return config;
}

template <typename T>
Tensor ToTensor(const std::vector<T>& values) {
  Tensor tensor = Tensor::Uninitialized({static_cast<int64_t>(values.size())}, DTypeOf<T>::value,
                                        MemoryTag::kWorkspace);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

template <typename T>
std::vector<T> ToVector(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.elements()};
}

void AddTexts(const std::string& part, const EncodedDataset& texts, Safetensors& contents) {
  contents.tensors[part + ".ids"] = ToTensor(texts.ids);
  contents.tensors[part + ".offsets"] = ToTensor(texts.offsets);
  contents.tensors[part + ".labels"] = ToTensor(texts.labels);
}

EncodedDataset GetTexts(const std::string& part, const Safetensors& contents) {
  EncodedDataset texts;
  texts.ids = ToVector<int32_t>(contents.tensors.at(part + ".ids"));
  texts.offsets = ToVector<int64_t>(contents.tensors.at(part + ".offsets"));
  texts.labels = ToVector<int32_t>(contents.tensors.at(part + ".labels"));
  for (int64_t row = 0; row < texts.size(); ++row) texts.rows.push_back(row);
  return texts;
}

nlohmann::json Prepare(const std::string& out, const TrainConfig& config) {
  const PreparedData data = PrepareData(config);
  Safetensors contents;
  AddTexts("train", data.train, contents);
  AddTexts("valid", data.valid, contents);
  const nlohmann::json settings = {{"vocabulary", data.encoder.vocabulary().size()},
                                   {"classes", data.encoder.labels().size()},
                                   {"max_len", data.encoder.max_len()},
                                   {"train_texts", data.train.size()},
                                   {"train_tokens", data.train.ids.size()},
                                   {"valid_texts", data.valid.size()}};
  contents.metadata["settings"] = settings.dump();
  WriteSafetensors(out, contents);
  return settings;
}

class Server {
 public:
  Server(const std::string& encoded, const TrainConfig& config) : config_(config) {
    const Safetensors contents = ReadSafetensors(encoded);
    train_ = GetTexts("train", contents);
    valid_ = GetTexts("valid", contents);
    const auto settings = nlohmann::json::parse(contents.metadata.at("settings"));
    config_.model.vocabulary = settings["vocabulary"];
    config_.model.classes = settings["classes"];
    config_.model.max_len = settings["max_len"];
    if (config_.training.threads > 0) SetNumThreads(static_cast<int>(config_.training.threads));
    Start(static_cast<uint64_t>(config_.training.seed));
  }

  nlohmann::json Answer(const std::string& request) {
    std::istringstream words(request);
    std::string name;
    words >> name;
    if (name == "train") return Train(words);
    if (name == "eval") {
      const ClassificationMetrics metrics = Evaluate(*model_, valid_, {});
      return {{"accuracy", metrics.accuracy}, {"loss", metrics.loss}};
    }
    if (name == "init") {
      uint64_t seed = 0;
      std::string path;
      words >> seed >> path;
      Start(seed);
      Safetensors contents;
      for (const Parameter* parameter : model_->Parameters()) {
        contents.tensors[parameter->name] = parameter->value;
      }
      WriteSafetensors(path, contents);
      return {{"written", path}};
    }
    throw Error(ErrorKind::kUsage, "no such request: {}", name);
  }

 private:
  void Start(uint64_t seed) {
    optimizer_.reset();
    model_.emplace(config_.model, DType::kF32, seed);
    optimizer_.emplace(config_.training.optimizer, model_->Parameters());
    step_ = 0;
  }

  nlohmann::json Train(std::istringstream& words) {
    std::string lists;
    words >> lists;
    std::vector<std::vector<int64_t>> steps;
    std::istringstream list_stream(lists);
    for (std::string list; std::getline(list_stream, list, ';');) {
      std::istringstream row_stream(list);
      std::vector<int64_t>& rows = steps.emplace_back();
      for (std::string row; std::getline(row_stream, row, ',');) rows.push_back(std::stoll(row));
    }
    int64_t tokens = 0;
    double loss = 0;
    const double began = MonotonicSeconds();
    for (const std::vector<int64_t>& rows : steps) {
      const RaggedBatch& batch = builder_.Fill(train_, rows);
      loss += Step(batch);
      tokens += batch.tokens();
    }
    const double seconds = MonotonicSeconds() - began;
    return {{"seconds", seconds},
            {"tokens", tokens},
            {"padded", tokens},
            {"loss", loss / static_cast<double>(steps.size())}};
  }

  double Step(const RaggedBatch& batch) {
    ForwardOptions options;
    options.training = true;
    options.seed = static_cast<uint64_t>(config_.training.seed);
    options.step = step_++;
    Tensor logits = model_->Forward(batch, options, &saved_);
    Tensor losses = Tensor::Uninitialized({batch.batch()}, DType::kF32, MemoryTag::kWorkspace);
    const double loss = CrossEntropyForward(logits, batch.labels, {}, losses);
    CrossEntropyBackward(logits, batch.labels, {}, 1 / static_cast<double>(batch.batch()), logits);
    model_->Backward(logits, saved_);
    optimizer_->Step(config_.training.learning_rate, 1);  // which clears the gradients
    model_->PrepareWeights();
    return loss;
  }

  TrainConfig config_;
  EncodedDataset train_, valid_;
  std::optional<TextClassifier> model_;
  std::optional<Optimizer> optimizer_;
  TextClassifier::Saved saved_;
  BatchBuilder builder_;
  int64_t step_ = 0;
};

int Run(int argc, char** argv) {
  if (argc < 3) throw Error(ErrorKind::kUsage, "usage: headlight_step prepare|serve FILE FLAGS");
  const std::string mode = argv[1], file = argv[2];
  const TrainConfig config = ParseFlags(argc, argv, 3);
  if (mode == "prepare") {
    std::cout << Prepare(file, config).dump() << std::endl;
    return 0;
  }
  Server server(file, config);
  const nlohmann::json ready = {{"ready", "Headlight, " + std::string(IsaName(SelectedIsa()))},
                                {"cpu", CpuModelName()}};
  std::cout << ready.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << server.Answer(line).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace headlight

int main(int argc, char** argv) {
  try {
    return headlight::Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "headlight_step: " << error.what() << "\n";
    return 1;
  }
}
