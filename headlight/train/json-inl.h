// Reading and writing of JSON as the files of a run use it. Internal to train/'s sources.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/train/metrics.h"

namespace headlight::internal {

using Json = nlohmann::ordered_json;  // keeps the order in which fields were set

// A file's bytes as an object. kInput with `name` for anything else.
inline Json ParseObject(std::string_view bytes, const std::string& name) {
  Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    throw Error(ErrorKind::kInput, "{}: must be a JSON object", name);
  }
  return json;
}

inline const Json& Field(const Json& object, const char* key, const std::string& name) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(ErrorKind::kInput, "{}: lacks '{}'", name, key);
  return *found;
}

inline int64_t IntegerField(const Json& object, const char* key, const std::string& name) {
  const Json& value = Field(object, key, name);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
  if (!fits) throw Error(ErrorKind::kInput, "{}: '{}' must be a whole number", name, key);
  return value.get<int64_t>();
}

// A number of things: not negative.
inline int64_t CountField(const Json& object, const char* key, const std::string& name) {
  const int64_t value = IntegerField(object, key, name);
  if (value < 0) {
    throw Error(ErrorKind::kInput, "{}: '{}' must not be negative, found {}", name, key, value);
  }
  return value;
}

inline double NumberField(const Json& object, const char* key, const std::string& name) {
  const Json& value = Field(object, key, name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    throw Error(ErrorKind::kInput, "{}: '{}' must be a finite number", name, key);
  }
  return value.get<double>();
}

// From 0 to 1.
inline double ShareField(const Json& object, const char* key, const std::string& name) {
  const double value = NumberField(object, key, name);
  if (value >= 0 && value <= 1) return value;
  throw Error(ErrorKind::kInput, "{}: '{}' must be 0 to 1, found {}", name, key, value);
}

inline std::string TextFieldOf(const Json& object, const char* key, const std::string& name) {
  const Json& value = Field(object, key, name);
  if (!value.is_string()) throw Error(ErrorKind::kInput, "{}: '{}' must be a text", name, key);
  return value.get<std::string>();
}

inline bool BooleanFieldOf(const Json& object, const char* key, const std::string& name) {
  const Json& value = Field(object, key, name);
  if (!value.is_boolean()) {
    throw Error(ErrorKind::kInput, "{}: '{}' must be true or false", name, key);
  }
  return value.get<bool>();
}

inline const Json& ObjectField(const Json& object, const char* key, const std::string& name) {
  const Json& value = Field(object, key, name);
  if (!value.is_object()) throw Error(ErrorKind::kInput, "{}: '{}' must be an object", name, key);
  return value;
}

inline const Json& ListField(const Json& object, const char* key, const std::string& name) {
  const Json& value = Field(object, key, name);
  if (!value.is_array()) throw Error(ErrorKind::kInput, "{}: '{}' must be a list", name, key);
  return value;
}

inline void CheckFormatVersion(const Json& object, int64_t version, const std::string& name) {
  const int64_t found = IntegerField(object, "format_version", name);
  if (found != version) {
    throw Error(ErrorKind::kInput, "{}: format_version must be {}, found {}", name, version, found);
  }
}

inline Json MetricsToJson(const ClassificationMetrics& metrics) {
  return {{"count", metrics.count},
          {"loss", metrics.loss},
          {"accuracy", metrics.accuracy},
          {"macro_f1", metrics.macro_f1},
          {"confusion", metrics.confusion}};
}

inline ClassificationMetrics MetricsFromJson(const Json& json, const std::string& name) {
  ClassificationMetrics metrics;
  metrics.count = CountField(json, "count", name);
  metrics.loss = NumberField(json, "loss", name);
  metrics.accuracy = ShareField(json, "accuracy", name);
  metrics.macro_f1 = ShareField(json, "macro_f1", name);
  const Json& rows = ListField(json, "confusion", name);
  int64_t rest = metrics.count;
  for (const Json& row : rows) {
    bool fits = row.is_array() && row.size() == rows.size();
    for (const Json& count : row) {
      fits = fits && count.is_number_integer() && count >= 0 && count <= rest;
      if (fits) rest -= count.get<int64_t>();
    }
    if (!fits) {
      throw Error(ErrorKind::kInput,
                  "{}: 'confusion' must be a square table of counts, at most {} in all", name,
                  metrics.count);
    }
    metrics.confusion.push_back(row.get<std::vector<int64_t>>());
  }
  return metrics;
}

// Readers take a row of each class for granted.
inline void CheckConfusion(const ClassificationMetrics& metrics, size_t classes,
                           const std::string& name) {
  if (metrics.confusion.size() == classes) return;
  throw Error(ErrorKind::kInput, "{}: 'confusion' must have {} rows, one for each label, found {}",
              name, classes, metrics.confusion.size());
}

}  // namespace headlight::internal
