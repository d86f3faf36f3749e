#include "headlight/train/config_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/train/config_field_makers.h"

namespace headlight {
namespace {

std::string Join(std::span<const std::string> texts, const char* between) {
  return fmt::format("{}", fmt::join(texts, between));
}

// "a finite number above 0", "a whole number from 1 to 1024, or split"
std::string Rule(const ConfigField& field) {
  if (field.type == FieldType::kBoolean) return "true or false";
  if (field.type == FieldType::kChoice) return "one of " + Join(field.choices, ", ");
  std::string rule = field.type == FieldType::kInteger ? "a whole number" : "a finite number";
  const bool bottom = std::isfinite(field.minimum);
  const bool top = std::isfinite(field.maximum);
  if (bottom && top && !field.above) {
    rule += fmt::format(" from {} to {}", field.minimum, field.maximum);
  } else {
    if (bottom)
      rule += fmt::format("{}{}", field.above ? " above " : " of at least ", field.minimum);
    if (bottom && top) rule += " and";
    if (top) rule += fmt::format(" at most {}", field.maximum);
  }
  for (const std::string& word : field.choices) rule += ", or " + word;
  return rule;
}

[[noreturn]] void Refuse(const ConfigField& field, std::string_view found) {
  throw Error(ErrorKind::kUsage, "{}: must be {}, found '{}'", field.name, Rule(field), found);
}

bool InRange(const ConfigField& field, double value) {
  if (!std::isfinite(value)) return false;
  return (field.above ? value > field.minimum : value >= field.minimum) && value <= field.maximum;
}

// Whether all of the text is a number, which `value` then is.
template <typename Number>
bool ParseWhole(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

template <typename Number>
Number Parse(const ConfigField& field, const std::string& text) {
  Number value{};
  if (!ParseWhole(text, value) || !InRange(field, static_cast<double>(value))) Refuse(field, text);
  return value;
}

// Number of single-character edits between two names (Levenshtein).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, change}));
    }
  }
  return row.back();
}

}  // namespace

namespace internal {

const std::string& OnlyValue(const ConfigField& field, std::span<const std::string> values) {
  if (values.size() != 1) {
    throw Error(ErrorKind::kUsage, "{}: takes one value, found {}", field.name, values.size());
  }
  return values[0];
}

int64_t ParseInteger(const ConfigField& field, const std::string& text) {
  return Parse<int64_t>(field, text);
}

double ParseNumber(const ConfigField& field, const std::string& text) {
  return Parse<double>(field, text);
}

bool ParseBoolean(const ConfigField& field, const std::string& text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  Refuse(field, text);
}

size_t ParseChoice(const ConfigField& field, const std::string& text) {
  const auto found = std::find(field.choices.begin(), field.choices.end(), text);
  if (found == field.choices.end()) Refuse(field, text);
  return static_cast<size_t>(found - field.choices.begin());
}

std::optional<AttentionWindow> ParseWindow(const ConfigField& field, const std::string& text) {
  if (text == "off") return std::nullopt;
  const size_t middle = text.find_first_of(",:");
  const auto side = [&](const std::string& part) {
    int64_t value = 0;
    if (!ParseWhole(part, value) || !InRange(field, static_cast<double>(value))) {
      throw Error(ErrorKind::kUsage,
                  "{}: must be off, or one or two whole numbers from {} to {} (16, or 16,4), found "
                  "'{}'",
                  field.name, field.minimum, field.maximum, text);
    }
    return value;
  };
  if (middle == std::string::npos) return AttentionWindow{side(text), side(text)};
  return AttentionWindow{side(text.substr(0, middle)), side(text.substr(middle + 1))};
}

std::string WindowText(const std::optional<AttentionWindow>& window) {
  if (!window) return "off";
  if (window->left == window->right) return fmt::format("{}", window->left);
  return fmt::format("{}:{}", window->left, window->right);
}

}  // namespace internal

std::string ConfigField::TomlKey() const {
  std::string key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string ConfigField::DefaultText() const { return Join(get(TrainConfig{}), ","); }

const ConfigField& FindField(std::string_view name) {
  const std::vector<ConfigField>& fields = TrainFields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const ConfigField& field) { return field.name == name; });
  if (found != fields.end()) return *found;
  const auto nearest = std::min_element(fields.begin(), fields.end(),
                                        [&](const ConfigField& a, const ConfigField& b) {
                                          return Distance(a.name, name) < Distance(b.name, name);
                                        });
  throw Error(ErrorKind::kUsage, "no choice of training is named '{}'; the nearest is '{}'", name,
              nearest->name);
}

void SetField(TrainConfig& config, std::string_view name, const std::string& value) {
  FindField(name).set(config, std::span(&value, 1));
}

std::string GetField(const TrainConfig& config, std::string_view name) {
  return Join(FindField(name).get(config), ",");
}

}  // namespace headlight
