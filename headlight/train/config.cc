#include "headlight/train/config.h"

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <sstream>

#include "headlight/base/error.h"
#include "headlight/train/config_field.h"

namespace headlight {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr const char* kUntouchedByResults[] = {"threads", "data", "valid"};

std::string TomlString(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>{text};
  return out.str();
}

bool IsWord(const ConfigField& field, const std::string& text) {
  return std::find(field.choices.begin(), field.choices.end(), text) != field.choices.end();
}

// A choice's texts as TOML: numbers as numbers, words and names as strings.
std::string FieldToToml(const ConfigField& field, const TrainConfig& config) {
  const std::vector<std::string> values = field.get(config);
  switch (field.type) {
    case FieldType::kTexts: {
      std::string list = "[";
      for (const std::string& value : values) {
        list += (list.size() > 1 ? ", " : "") + TomlString(value);
      }
      return list + "]";
    }
    case FieldType::kInteger:
    case FieldType::kNumber:
    case FieldType::kBoolean:
      if (IsWord(field, values[0])) break;
      return values[0];
    case FieldType::kText:
    case FieldType::kChoice:
      break;
  }
  return TomlString(values[0]);
}

std::string ScalarText(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  throw Error(ErrorKind::kInput, "{}: must be a text, a number or true or false", where);
}

std::vector<std::string> NodeTexts(const ConfigField& field, const toml::node& node,
                                   const std::string& where) {
  if (field.type != FieldType::kTexts) return {ScalarText(node, where)};
  const toml::array* array = node.as_array();
  if (array == nullptr) throw Error(ErrorKind::kInput, "{}: must be a list of texts", where);
  std::vector<std::string> texts;
  for (const toml::node& element : *array) texts.push_back(ScalarText(element, where));
  return texts;
}

const ConfigField* FieldOfKey(std::string_view section, std::string_view key) {
  for (const ConfigField& field : TrainFields()) {
    if (field.section == section && field.TomlKey() == key) return &field;
  }
  return nullptr;
}

void ReadSection(const toml::table& table, std::string_view section, const std::string& name,
                 TrainConfig& config) {
  for (const auto& [key, node] : table) {
    const std::string where = fmt::format("{}: {}.{}", name, section, key.str());
    const ConfigField* field = FieldOfKey(section, key.str());
    if (field == nullptr) throw Error(ErrorKind::kInput, "{}: is not a choice of training", where);
    try {
      field->set(config, NodeTexts(*field, node, where));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInput) throw;
      throw Error(ErrorKind::kInput, "{}: {}", name, error.what());
    }
  }
}

void CheckVersion(const toml::table& root, const std::string& name) {
  const std::optional<int64_t> version = root["format_version"].value<int64_t>();
  if (!version || *version != kFormatVersion) {
    throw Error(ErrorKind::kInput, "{}: format_version must be {}, found {}", name, kFormatVersion,
                version ? fmt::format("{}", *version) : "none");
  }
}

}  // namespace

TrainConfig::TrainConfig() {
  text.max_len = 256;
  text.vocabulary.max_size = 20000;
  // A token that occurs once teaches nothing but its text; as <unk> it teaches what <unk> means.
  text.vocabulary.min_count = 2;
}

TextClassifierConfig ResolvedModel(const TrainConfig& config, int64_t vocabulary, int64_t classes) {
  TextClassifierConfig model = config.model;
  model.vocabulary = vocabulary;
  model.classes = classes;
  model.max_len = config.text.max_len;
  return model;
}

int64_t TotalSteps(const TrainConfig& config, int64_t batches_per_epoch) {
  if (config.training.steps > 0) return config.training.steps;
  return config.training.epochs * batches_per_epoch;
}

Schedule ResolvedSchedule(const TrainConfig& config, int64_t total_steps) {
  const TrainingChoices& training = config.training;
  double warmup = training.warmup;
  if (warmup < 0) warmup = training.schedule == ScheduleKind::kConstant ? 0 : 0.1;
  Schedule schedule;
  schedule.kind = training.schedule;
  schedule.peak = training.learning_rate;
  schedule.total_steps = total_steps;
  schedule.warmup_steps =
      warmup < 1 ? std::llround(warmup * static_cast<double>(total_steps)) : std::llround(warmup);
  return schedule;
}

void ValidateTrainConfig(const TrainConfig& config) {
  for (const ConfigField& field : TrainFields()) {
    TrainConfig copy = config;
    field.set(copy, field.get(config));
  }
  // Vocabulary and classes are known later; any valid numbers do for the model's own rules.
  ValidateConfig(ResolvedModel(config, 3, 2));
  if (config.data.data.empty()) {
    throw Error(ErrorKind::kUsage, "data: training needs at least one file or folder of text");
  }
  const TrainingChoices& training = config.training;
  if (training.schedule != ScheduleKind::kConstant && training.steps > 0 &&
      training.warmup > static_cast<double>(training.steps)) {
    throw Error(ErrorKind::kUsage, "warmup: must not exceed steps ({}), found {}", training.steps,
                training.warmup);
  }
}

std::string TrainConfigToToml(const TrainConfig& config) {
  std::string out = fmt::format("format_version = {}\n", kFormatVersion);
  std::string section;
  for (const ConfigField& field : TrainFields()) {
    if (field.section != section) {
      section = field.section;
      out += fmt::format("\n[{}]\n", section);
    }
    out += fmt::format("{} = {}\n", field.TomlKey(), FieldToToml(field, config));
  }
  return out;
}

TrainConfig TrainConfigFromToml(std::string_view toml, const std::string& name) {
  toml::table root;
  try {
    root = toml::parse(toml);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::kInput, "{}: line {}: {}", name, error.source().begin.line,
                error.description());
  }
  CheckVersion(root, name);
  TrainConfig config;
  for (const auto& [key, node] : root) {
    if (key.str() == "format_version") continue;
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      throw Error(ErrorKind::kInput, "{}: {}: must be a table", name, key.str());
    }
    ReadSection(*table, key.str(), name, config);
  }
  return config;
}

bool IsTrainConfig(std::string_view toml) {
  try {
    return toml::parse(toml)["format_version"].is_integer();
  } catch (const toml::parse_error&) {
    return false;
  }
}

std::vector<std::string> DifferingChoices(const TrainConfig& a, const TrainConfig& b) {
  std::vector<std::string> names;
  for (const ConfigField& field : TrainFields()) {
    const bool free = std::find(std::begin(kUntouchedByResults), std::end(kUntouchedByResults),
                                field.name) != std::end(kUntouchedByResults);
    if (!free && field.get(a) != field.get(b)) names.push_back(field.name);
  }
  return names;
}

}  // namespace headlight
