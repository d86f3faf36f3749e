#include "headlight/train/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/fingerprint.h"
#include "headlight/io/safetensors.h"
#include "headlight/train/config_field.h"
#include "headlight/train/json-inl.h"

namespace headlight {
namespace {

using internal::Json;

constexpr const char* kFormatVersion = "1";
constexpr std::string_view kOptimizerPrefix = "optimizer.";

// A choice that the weights do not depend on: how products and attention are computed.
bool IsOfComputation(const ConfigField& field) {
  return field.name == "attention" || field.name == "precision";
}

// {"heads": "2", ...}: what shapes the model, but for sizes that the tensors' shapes tell.
Json ModelChoices(const TextClassifierConfig& model) {
  TrainConfig config;
  config.model = model;
  Json choices = Json::object();
  for (const ConfigField& field : TrainFields()) {
    if (field.section == "model" && !IsOfComputation(field)) {
      choices[field.name] = GetField(config, field.name);
    }
  }
  return choices;
}

// Of all that turns text into ids and classes into labels.
std::string TextFingerprint(const TextEncoder& encoder) {
  Fingerprint fingerprint;
  fingerprint.Add(encoder.ToJson());
  return fmt::format("{:016x}", fingerprint.value());
}

Safetensors ModelContents(const TextClassifier& model, const TextEncoder& encoder, int64_t step) {
  Safetensors contents;
  for (const Parameter* parameter : model.Parameters()) {
    contents.tensors.emplace(parameter->name, parameter->value);
  }
  contents.metadata["format"] = "headlight-checkpoint";
  contents.metadata["format_version"] = kFormatVersion;
  contents.metadata["step"] = fmt::format("{}", step);
  contents.metadata["model"] = ModelChoices(model.config()).dump();
  contents.metadata["text_encoder"] = TextFingerprint(encoder);
  return contents;
}

using MetadataMap = std::map<std::string, std::string>;

const std::string& Metadata(const MetadataMap& metadata, const char* key, const std::string& path) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) {
    throw Error(ErrorKind::kInput, "checkpoint {}: lacks the metadata '{}'", path, key);
  }
  return found->second;
}

int64_t StepOf(const Safetensors& contents, const std::string& path) {
  const std::string& text = Metadata(contents.metadata, "step", path);
  int64_t step = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, step);
  if (error != std::errc() || stop != end || step < 0) {
    throw Error(ErrorKind::kInput, "checkpoint {}: step must be a count, found '{}'", path, text);
  }
  return step;
}

Safetensors ReadCheckpoint(const std::string& path) {
  // What is read is copied into the model, so its memory is not the model's.
  Safetensors contents = ReadSafetensors(path, {.tag = MemoryTag::kOther});
  const std::string& version = Metadata(contents.metadata, "format_version", path);
  if (version != kFormatVersion) {
    throw Error(ErrorKind::kInput, "checkpoint {}: format_version must be {}, found '{}'", path,
                kFormatVersion, version);
  }
  return contents;
}

const Tensor& FittingTensor(const Safetensors& contents, const std::string& name,
                            const Tensor& wanted, const std::string& path) {
  const auto found = contents.tensors.find(name);
  if (found == contents.tensors.end()) {
    throw Error(ErrorKind::kInput, "checkpoint {}: lacks the tensor {}", path, name);
  }
  const Tensor& tensor = found->second;
  if (tensor.dtype() != wanted.dtype() || tensor.shape() != wanted.shape()) {
    throw Error(ErrorKind::kInput, "checkpoint {}: tensor {} must be {} {}, found {} {}", path,
                name, DTypeName(wanted.dtype()), wanted.shape().ToString(),
                DTypeName(tensor.dtype()), tensor.shape().ToString());
  }
  return tensor;
}

void CheckFinite(const Tensor& tensor, const std::string& name, const std::string& path) {
  const float* values = tensor.data<float>();
  const float* found = std::find_if_not(values, values + tensor.elements(),
                                        [](float value) { return std::isfinite(value); });
  if (found == values + tensor.elements()) return;
  throw Error(ErrorKind::kInput,
              "checkpoint {}: tensor {} holds {}; weights must be finite, so the file is damaged",
              path, name, *found);
}

// That config.toml and text.json are those of the weights. Checkpoints of earlier versions do not
// say, nor do they know choices that came later.
void CheckBelongs(const MetadataMap& metadata, const std::string& path, const TextClassifier& model,
                  const TextEncoder& encoder) {
  if (const auto text = metadata.find("text_encoder"); text != metadata.end()) {
    if (text->second != TextFingerprint(encoder)) {
      throw Error(ErrorKind::kInput,
                  "checkpoint {}: was saved with other tokens, labels or tokenizer than those in "
                  "text.json of its run; the two files do not belong together",
                  path);
    }
  }
  const auto saved = metadata.find("model");
  if (saved == metadata.end()) return;
  const std::string name = "checkpoint " + path + ": model";
  const Json choices = internal::ParseObject(saved->second, name);
  const Json wanted = ModelChoices(model.config());
  for (const auto& [key, value] : wanted.items()) {
    if (!choices.contains(key)) continue;
    const std::string found = internal::TextFieldOf(choices, key.c_str(), name);
    if (found == value.get<std::string>()) continue;
    throw Error(
        ErrorKind::kInput,
        "checkpoint {}: was saved with {} {}, config.toml of its run says {}; the two files "
        "do not belong together",
        path, key, found, value.get<std::string>());
  }
}

// Everything is checked before anything is changed.
void RestoreModel(const Safetensors& contents, const std::string& path, const TextEncoder& encoder,
                  TextClassifier& model) {
  const std::vector<Parameter*> parameters = model.Parameters();
  std::set<std::string_view> known;
  for (const Parameter* parameter : parameters) {
    CheckFinite(FittingTensor(contents, parameter->name, parameter->value, path), parameter->name,
                path);
    known.insert(parameter->name);
  }
  for (const auto& [name, tensor] : contents.tensors) {
    const bool of_optimizer = name.compare(0, kOptimizerPrefix.size(), kOptimizerPrefix) == 0;
    if (of_optimizer || known.count(name) > 0) continue;
    throw Error(ErrorKind::kInput, "checkpoint {}: holds the tensor {}, which the model lacks",
                path, name);
  }
  CheckBelongs(contents.metadata, path, model, encoder);
  for (Parameter* parameter : parameters) {
    parameter->value.CopyFrom(contents.tensors.at(parameter->name));
  }
  model.PrepareWeights();
}

Json StateToJson(const TrainerState& state) {
  return {{"step", state.step},
          {"epoch", state.epoch},
          {"position", state.position},
          {"loss_sum", state.loss_sum},
          {"correct", state.correct},
          {"texts", state.texts},
          {"tokens", state.tokens},
          {"best_train_loss", state.best_train_loss},
          {"window_loss_sum", state.window_loss_sum},
          {"window_correct", state.window_correct},
          {"window_texts", state.window_texts},
          {"has_best", state.has_best},
          {"best_step", state.best_step},
          {"best", internal::MetricsToJson(state.best)},
          {"last", internal::MetricsToJson(state.last)},
          {"epochs_without_better", state.epochs_without_better},
          {"stopped_early", state.stopped_early},
          {"nonfinite_scores_replaced", state.nonfinite_scores_replaced},
          {"metrics_lines", state.metrics_lines},
          {"data_fingerprint", fmt::format("{:016x}", state.data_fingerprint)}};
}

TrainerState StateFromJson(const std::string& text, const std::string& name) {
  const Json json = internal::ParseObject(text, name);
  const auto count = [&](const char* key) { return internal::CountField(json, key, name); };
  const auto number = [&](const char* key) { return internal::NumberField(json, key, name); };
  TrainerState state;
  state.step = count("step");
  state.epoch = count("epoch");
  state.position = count("position");
  state.loss_sum = number("loss_sum");
  state.correct = count("correct");
  state.texts = count("texts");
  state.tokens = count("tokens");
  state.best_train_loss = number("best_train_loss");
  state.window_loss_sum = number("window_loss_sum");
  state.window_correct = count("window_correct");
  state.window_texts = count("window_texts");
  state.has_best = internal::BooleanFieldOf(json, "has_best", name);
  state.best_step = count("best_step");
  state.best = internal::MetricsFromJson(internal::ObjectField(json, "best", name), name);
  state.last = internal::MetricsFromJson(internal::ObjectField(json, "last", name), name);
  state.epochs_without_better = count("epochs_without_better");
  state.stopped_early = internal::BooleanFieldOf(json, "stopped_early", name);
  state.nonfinite_scores_replaced = count("nonfinite_scores_replaced");
  state.metrics_lines = count("metrics_lines");
  const std::string fingerprint = internal::TextFieldOf(json, "data_fingerprint", name);
  const char* end = fingerprint.data() + fingerprint.size();
  const auto [stop, error] = std::from_chars(fingerprint.data(), end, state.data_fingerprint, 16);
  if (error != std::errc() || stop != end) {
    throw Error(ErrorKind::kInput, "{}: 'data_fingerprint' must be hexadecimal", name);
  }
  return state;
}

TrainerState StateOf(const MetadataMap& metadata, const std::string& path) {
  return StateFromJson(Metadata(metadata, "trainer", path),
                       "checkpoint " + path + ": trainer state");
}

// config.toml and text.json are not trusted either: a model that the checkpoint is too small for is
// refused before memory for it is taken.
void CheckFileHoldsModel(const std::string& run, const std::string& path,
                         const TextClassifierConfig& config) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw Error(ErrorKind::kInput,
                "run {}: has no checkpoint {} yet; training saves one after each epoch", run, path);
  }
  const int64_t parameters = ParameterCount(config);
  if (parameters > status.st_size / static_cast<int64_t>(sizeof(float))) {
    throw Error(ErrorKind::kInput,
                "checkpoint {}: is too small ({} bytes) for the {} parameters of {}", path,
                static_cast<int64_t>(status.st_size), parameters, RunPaths(run).config());
  }
}

}  // namespace

void SaveModel(const std::string& path, const TextClassifier& model, const TextEncoder& encoder,
               int64_t step) {
  WriteSafetensors(path, ModelContents(model, encoder, step));
}

int64_t LoadModel(const std::string& path, const TextEncoder& encoder, TextClassifier& model) {
  const Safetensors contents = ReadCheckpoint(path);
  const int64_t step = StepOf(contents, path);
  RestoreModel(contents, path, encoder, model);
  return step;
}

void SaveTraining(const std::string& path, const TextClassifier& model, const TextEncoder& encoder,
                  const Optimizer& optimizer, const TrainerState& state) {
  Safetensors contents = ModelContents(model, encoder, state.step);
  for (auto& [name, tensor] : optimizer.State()) contents.tensors.emplace(name, tensor);
  contents.metadata["trainer"] = StateToJson(state).dump();
  WriteSafetensors(path, contents);
}

TrainerState LoadTraining(const std::string& path, const TextEncoder& encoder,
                          TextClassifier& model, Optimizer& optimizer) {
  const Safetensors contents = ReadCheckpoint(path);
  TrainerState state = StateOf(contents.metadata, path);
  std::vector<std::pair<std::string, Tensor>> moments = optimizer.State();
  for (const auto& [name, tensor] : moments) FittingTensor(contents, name, tensor, path);
  RestoreModel(contents, path, encoder, model);
  for (auto& [name, tensor] : moments) tensor.CopyFrom(contents.tensors.at(name));
  optimizer.set_steps(state.step);
  return state;
}

bool BeganOnOtherData(const RunPaths& paths, const PreparedData& data) {
  struct stat status {};
  if (stat(paths.last().c_str(), &status) != 0) return false;
  const TrainerState state = StateOf(ReadSafetensorsMetadata(paths.last()), paths.last());
  return state.data_fingerprint != data.fingerprint;
}

PreparedData PrepareRunData(const RunPaths& paths, const TrainConfig& config) {
  try {
    return PrepareData(config);
  } catch (const Error& error) {
    throw Error(error.kind(), "{} (the data are those that {} names)", error.what(),
                paths.config());
  }
}

LoadedClassifier LoadClassifier(const std::string& run, CheckpointChoice choice,
                                std::optional<Precision> precision) {
  const RunPaths paths(run);
  TrainConfig config = ReadConfig(paths);
  if (precision) config.model.precision = *precision;
  TextEncoder encoder = TextEncoder::Load(paths.text());
  std::string path = choice == CheckpointChoice::kBest ? paths.best() : paths.last();
  const TextClassifierConfig resolved = ResolvedModel(
      config, encoder.vocabulary().size(), static_cast<int64_t>(encoder.labels().size()));
  ValidateConfig(resolved);
  CheckFileHoldsModel(run, path, resolved);
  TextClassifier model(resolved, DType::kF32, static_cast<uint64_t>(config.training.seed));
  const int64_t step = LoadModel(path, encoder, model);
  return {std::move(config), std::move(encoder), std::move(model), std::move(path), step};
}

}  // namespace headlight
