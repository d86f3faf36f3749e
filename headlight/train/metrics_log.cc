#include "headlight/train/metrics_log.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string_view>

#include "headlight/base/clock.h"
#include "headlight/base/error.h"
#include "headlight/io/file.h"
#include "headlight/io/tfevents.h"
#include "headlight/train/json-inl.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;
using internal::Json;

constexpr int64_t kFormatVersion = 1;
constexpr const char* kEventsPrefix = "events.out.tfevents.";

Json RecordToJson(const StepRecord& record) {
  Json norms = Json::object();
  for (const auto& [layer, norm] : record.gradient_norms) norms[layer] = norm;
  return {{"kind", "step"},
          {"step", record.step},
          {"epoch", record.epoch},
          {"loss", record.loss},
          {"accuracy", record.accuracy},
          {"learning_rate", record.learning_rate},
          {"gradient_norm", record.gradient_norm},
          {"gradient_norms", norms},
          {"nonfinite_scores_replaced", record.nonfinite_scores_replaced},
          {"timing", {{"tokens_per_second", record.tokens_per_second}}}};
}

Json RecordToJson(const ProbeRecord& record) {
  Json heads = Json::array();
  for (const HeadRecord& head : record.heads) {
    heads.push_back({{"layer", head.layer},
                     {"head", head.head},
                     {"entropy", head.entropy},
                     {"mean_distance", head.mean_distance},
                     {"max_distance", head.max_distance}});
  }
  return {{"kind", "probe"}, {"step", record.step}, {"heads", heads}, {"timing", Json::object()}};
}

Json RecordToJson(const EpochRecord& record) {
  return {{"kind", "epoch"},
          {"step", record.step},
          {"epoch", record.epoch},
          {"train_loss", record.train_loss},
          {"train_accuracy", record.train_accuracy},
          {"valid_loss", record.valid_loss},
          {"valid_accuracy", record.valid_accuracy},
          {"valid_macro_f1", record.valid_macro_f1},
          {"best", record.best},
          {"timing",
           {{"seconds", record.seconds},
            {"steps", record.steps},
            {"tokens", record.tokens},
            {"evaluation_seconds", record.evaluation_seconds}}}};
}

StepRecord StepFromJson(const Json& json, const std::string& name) {
  StepRecord record;
  record.step = internal::CountField(json, "step", name);
  record.epoch = internal::NumberField(json, "epoch", name);
  record.loss = internal::NumberField(json, "loss", name);
  record.accuracy = internal::NumberField(json, "accuracy", name);
  record.learning_rate = internal::NumberField(json, "learning_rate", name);
  record.gradient_norm = internal::NumberField(json, "gradient_norm", name);
  const Json& norms = internal::ObjectField(json, "gradient_norms", name);
  for (const auto& [layer, norm] : norms.items()) {
    record.gradient_norms.emplace_back(layer, internal::NumberField(norms, layer.c_str(), name));
  }
  record.nonfinite_scores_replaced = internal::CountField(json, "nonfinite_scores_replaced", name);
  const Json& timing = internal::ObjectField(json, "timing", name);
  record.tokens_per_second = internal::NumberField(timing, "tokens_per_second", name);
  return record;
}

ProbeRecord ProbeFromJson(const Json& json, const std::string& name) {
  ProbeRecord record;
  record.step = internal::CountField(json, "step", name);
  for (const Json& head : internal::ListField(json, "heads", name)) {
    if (!head.is_object()) throw Error(ErrorKind::kInput, "{}: heads must be objects", name);
    HeadRecord each;
    each.layer = static_cast<int>(internal::CountField(head, "layer", name));
    each.head = static_cast<int>(internal::CountField(head, "head", name));
    each.entropy = internal::NumberField(head, "entropy", name);
    each.mean_distance = internal::NumberField(head, "mean_distance", name);
    each.max_distance = internal::NumberField(head, "max_distance", name);
    record.heads.push_back(each);
  }
  return record;
}

EpochRecord EpochFromJson(const Json& json, const std::string& name) {
  EpochRecord record;
  record.step = internal::CountField(json, "step", name);
  record.epoch = internal::NumberField(json, "epoch", name);
  record.train_loss = internal::NumberField(json, "train_loss", name);
  record.train_accuracy = internal::NumberField(json, "train_accuracy", name);
  record.valid_loss = internal::NumberField(json, "valid_loss", name);
  record.valid_accuracy = internal::NumberField(json, "valid_accuracy", name);
  record.valid_macro_f1 = internal::NumberField(json, "valid_macro_f1", name);
  record.best = internal::BooleanFieldOf(json, "best", name);
  const Json& timing = internal::ObjectField(json, "timing", name);
  record.seconds = internal::NumberField(timing, "seconds", name);
  record.steps = internal::CountField(timing, "steps", name);
  record.tokens = internal::CountField(timing, "tokens", name);
  record.evaluation_seconds = internal::NumberField(timing, "evaluation_seconds", name);
  return record;
}

// What TensorBoard shows of a record. Tags: train/, valid/, gradient/, and per head
// attention_entropy/layer_0_head_1.
void WriteScalars(const Json& json, TfEventsWriter& events, double unix_time) {
  const std::string kind = json.value("kind", "");
  if (kind == "start") return;
  const auto step = json.at("step").get<int64_t>();
  const auto scalar = [&](const std::string& tag, const Json& value) {
    events.Scalar(tag, value.get<double>(), step, unix_time);
  };
  if (kind == "step") {
    for (const char* key : {"loss", "accuracy", "learning_rate", "gradient_norm"}) {
      scalar(std::string("train/") + key, json.at(key));
    }
    scalar("train/tokens_per_second", json.at("timing").at("tokens_per_second"));
    for (const auto& [layer, norm] : json.at("gradient_norms").items()) {
      scalar("gradient_norm/" + layer, norm);
    }
  } else if (kind == "probe") {
    for (const Json& head : json.at("heads")) {
      const std::string name =
          fmt::format("layer_{}_head_{}", head.at("layer").get<int>(), head.at("head").get<int>());
      for (const char* key : {"entropy", "mean_distance", "max_distance"}) {
        scalar(fmt::format("attention_{}/{}", key, name), head.at(key));
      }
    }
  } else if (kind == "epoch") {
    scalar("epoch/train_loss", json.at("train_loss"));
    scalar("epoch/train_accuracy", json.at("train_accuracy"));
    scalar("valid/loss", json.at("valid_loss"));
    scalar("valid/accuracy", json.at("valid_accuracy"));
    scalar("valid/macro_f1", json.at("valid_macro_f1"));
  }
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

void RemoveEvents(const std::string& folder) {
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind(kEventsPrefix, 0) == 0) old.push_back(entry.path());
  }
  for (const fs::path& path : old) fs::remove(path);
}

// Calls use(line, number from 1) for each complete line.
void ForEachLine(const std::string& path,
                 const std::function<void(std::string_view, int64_t)>& use) {
  const std::string bytes = ReadRegularFile(path);
  std::string_view rest = bytes;
  int64_t number = 0;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    use(rest.substr(0, end), ++number);
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

struct MetricsLog::Impl {
  AppendWriter file;
  TfEventsWriter events;
  int64_t lines = 0;

  void Append(Json json) {
    const double now = WallSeconds();
    json["timing"]["unix_time"] = now;
    file.AppendLine(json.dump());
    ++lines;
    WriteScalars(json, events, now);
  }
};

MetricsLog::MetricsLog(const RunPaths& paths, int64_t lines) : impl_(std::make_unique<Impl>()) {
  try {
    RemoveEvents(paths.root);
    if (lines == 0) fs::remove(paths.metrics());
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::kResource, "metrics: {}", error.what());
  }
  if (lines > 0) CutLines(paths.metrics(), lines);
  const double now = WallSeconds();
  impl_->events = TfEventsWriter(paths.root + "/" + TfEventsFileName(now, HostName()), now);
  if (lines > 0) {
    ForEachLine(paths.metrics(), [&](std::string_view line, int64_t number) {
      const std::string name = fmt::format("{}:{}", paths.metrics(), number);
      const Json json = internal::ParseObject(line, name);
      try {
        WriteScalars(json, impl_->events, json.at("timing").value("unix_time", now));
      } catch (const Json::exception&) {
        throw Error(ErrorKind::kInput,
                    "{}: is no record of training; put the file back, or begin anew (--replace)",
                    name);
      }
    });
  }
  impl_->file = AppendWriter(paths.metrics());
  impl_->lines = lines;
  if (lines == 0) {
    impl_->Append({{"kind", "start"},
                   {"format_version", kFormatVersion},
                   {"step", 0},
                   {"timing", Json::object()}});
  }
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::Write(const StepRecord& record) { impl_->Append(RecordToJson(record)); }
void MetricsLog::Write(const ProbeRecord& record) { impl_->Append(RecordToJson(record)); }
void MetricsLog::Write(const EpochRecord& record) { impl_->Append(RecordToJson(record)); }

void MetricsLog::Sync() {
  impl_->file.Sync();
  impl_->events.Sync();
}

int64_t MetricsLog::lines() const { return impl_->lines; }

RunHistory ReadHistory(const RunPaths& paths) {
  RunHistory history;
  ForEachLine(paths.metrics(), [&](std::string_view line, int64_t number) {
    const std::string name = fmt::format("{}:{}", paths.metrics(), number);
    const Json json = internal::ParseObject(line, name);
    const std::string kind = internal::TextFieldOf(json, "kind", name);
    if (kind == "start") internal::CheckFormatVersion(json, kFormatVersion, name);
    if (kind == "step") history.steps.push_back(StepFromJson(json, name));
    if (kind == "probe") history.probes.push_back(ProbeFromJson(json, name));
    if (kind == "epoch") history.epochs.push_back(EpochFromJson(json, name));
  });
  return history;
}

}  // namespace headlight
