// How the lines of the table in train_fields.cc become fields. Internal to train/.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headlight/train/config_field.h"

namespace headlight::internal {

// One text, parsed and checked against the field's range. kUsage with the field's rule.
const std::string& OnlyValue(const ConfigField& field, std::span<const std::string> values);
int64_t ParseInteger(const ConfigField& field, const std::string& text);
double ParseNumber(const ConfigField& field, const std::string& text);
bool ParseBoolean(const ConfigField& field, const std::string& text);
size_t ParseChoice(const ConfigField& field, const std::string& text);
std::optional<AttentionWindow> ParseWindow(const ConfigField& field, const std::string& text);
// "off", "16", "16:4".
std::string WindowText(const std::optional<AttentionWindow>& window);

// What a line of the table says about any kind of field.
struct FieldLine {
  const char* name;
  const char* section;
  const char* help;
  const char* value_name = "N";
};

struct FieldRange {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above = false;
};

inline ConfigField NewField(const FieldLine& line, FieldType type) {
  ConfigField field;
  field.name = line.name;
  field.section = line.section;
  field.help = line.help;
  field.value_name = line.value_name;
  field.type = type;
  return field;
}

// `access` is a generic lambda from a config to the member: [](auto& c) -> auto& { return c.x; }.
// `words` stand for numbers.
template <typename Access>
ConfigField NumberField(const FieldLine& line, const FieldRange& range, Access access,
                        const std::vector<std::pair<std::string, double>>& words = {}) {
  using Number = std::remove_reference_t<decltype(access(std::declval<TrainConfig&>()))>;
  constexpr bool kInteger = std::is_integral_v<Number>;
  ConfigField field = NewField(line, kInteger ? FieldType::kInteger : FieldType::kNumber);
  field.minimum = range.minimum;
  field.maximum = range.maximum;
  field.above = range.above;
  for (const auto& [word, value] : words) field.choices.push_back(word);
  field.set = [rule = field, words, access](TrainConfig& config,
                                            std::span<const std::string> values) {
    const std::string& text = OnlyValue(rule, values);
    for (const auto& [word, value] : words) {
      if (word == text) {
        access(config) = static_cast<Number>(value);
        return;
      }
    }
    if constexpr (kInteger) {
      access(config) = ParseInteger(rule, text);
    } else {
      access(config) = ParseNumber(rule, text);
    }
  };
  field.get = [words, access](const TrainConfig& config) -> std::vector<std::string> {
    const Number value = access(config);
    for (const auto& [word, number] : words) {
      if (static_cast<Number>(number) == value) return {word};
    }
    return {fmt::format("{}", value)};  // the shortest text that reads back to the same number
  };
  return field;
}

template <typename Access>
ConfigField BooleanField(const FieldLine& line, Access access) {
  ConfigField field = NewField(line, FieldType::kBoolean);
  field.value_name = "true|false";
  field.set = [rule = field, access](TrainConfig& config, std::span<const std::string> values) {
    access(config) = ParseBoolean(rule, OnlyValue(rule, values));
  };
  field.get = [access](const TrainConfig& config) -> std::vector<std::string> {
    return {access(config) ? "true" : "false"};
  };
  return field;
}

template <typename Access>
ConfigField TextField(const FieldLine& line, Access access) {
  ConfigField field = NewField(line, FieldType::kText);
  field.set = [rule = field, access](TrainConfig& config, std::span<const std::string> values) {
    access(config) = OnlyValue(rule, values);
  };
  field.get = [access](const TrainConfig& config) -> std::vector<std::string> {
    return {access(config)};
  };
  return field;
}

// An optional window: "off", "16", "16,4" or "16:4" (--vary separates values by commas). A text to
// TOML and to compare, so that its comma is its own.
template <typename Access>
ConfigField WindowField(const FieldLine& line, const FieldRange& range, Access access) {
  ConfigField field = NewField(line, FieldType::kText);
  field.minimum = range.minimum;
  field.maximum = range.maximum;
  field.choices = {"off"};
  field.set = [rule = field, access](TrainConfig& config, std::span<const std::string> values) {
    access(config) = ParseWindow(rule, OnlyValue(rule, values));
  };
  field.get = [access](const TrainConfig& config) -> std::vector<std::string> {
    return {WindowText(access(config))};
  };
  return field;
}

template <typename Access>
ConfigField TextsField(const FieldLine& line, Access access) {
  ConfigField field = NewField(line, FieldType::kTexts);
  field.set = [access](TrainConfig& config, std::span<const std::string> values) {
    access(config).assign(values.begin(), values.end());
  };
  field.get = [access](const TrainConfig& config) { return access(config); };
  return field;
}

template <typename Choice, typename Access>
ConfigField ChoiceField(const FieldLine& line,
                        const std::vector<std::pair<std::string, Choice>>& choices, Access access) {
  ConfigField field = NewField(line, FieldType::kChoice);
  for (const auto& [word, value] : choices) field.choices.push_back(word);
  field.value_name = fmt::format("{}", fmt::join(field.choices, "|"));
  field.set = [rule = field, choices, access](TrainConfig& config,
                                              std::span<const std::string> values) {
    access(config) = choices[ParseChoice(rule, OnlyValue(rule, values))].second;
  };
  field.get = [choices, access](const TrainConfig& config) -> std::vector<std::string> {
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) {
      return choice.second == access(config);
    });
    return {found == choices.end() ? std::string() : found->first};
  };
  return field;
}

// The choices of an enumeration with a function from value to name.
template <typename Choice, typename NameFunction>
std::vector<std::pair<std::string, Choice>> Named(std::initializer_list<Choice> values,
                                                  NameFunction name) {
  std::vector<std::pair<std::string, Choice>> choices;
  for (const Choice value : values) choices.emplace_back(name(value), value);
  return choices;
}

}  // namespace headlight::internal
