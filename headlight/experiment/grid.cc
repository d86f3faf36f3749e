#include "headlight/experiment/grid.h"

#include <algorithm>
#include <set>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr size_t kMaxCombinations = 10000;

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-';
}

std::string Plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !IsPlain(c); }, '-');
  return text;
}

}  // namespace

Variation ParseVariation(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error(ErrorKind::kUsage, "--vary: must be NAME=VALUE,VALUE,... , found \"{}\"", text);
  }
  Variation variation{std::string(text.substr(0, equals)), {}};
  while (variation.name.starts_with('-')) variation.name.erase(0, 1);
  std::set<std::string> seen;
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string value(text.substr(begin, end - begin));
    if (value.empty())
      throw Error(ErrorKind::kUsage, "--vary {}: a value is empty in \"{}\"", variation.name, text);
    if (!seen.insert(value).second) {
      throw Error(ErrorKind::kUsage, "--vary {}: the value {} is named twice", variation.name,
                  value);
    }
    variation.values.push_back(std::move(value));
    begin = end + 1;
  }
  return variation;
}

std::vector<Choices> ExpandGrid(const std::vector<Variation>& variations) {
  std::set<std::string> names;
  std::vector<Choices> combinations = {{}};
  for (const Variation& variation : variations) {
    if (!names.insert(variation.name).second) {
      throw Error(ErrorKind::kUsage, "--vary: {} is varied twice", variation.name);
    }
    if (combinations.size() * variation.values.size() > kMaxCombinations) {
      throw Error(ErrorKind::kUsage, "--vary: at most {} combinations can be compared",
                  kMaxCombinations);
    }
    std::vector<Choices> longer;
    for (const Choices& choices : combinations) {
      for (const std::string& value : variation.values) {
        longer.push_back(choices);
        longer.back().emplace_back(variation.name, value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

std::string ChoicesLabel(const Choices& choices) {
  if (choices.empty()) return "all defaults";
  std::string label;
  for (const auto& [name, value] : choices) {
    if (!label.empty()) label += ' ';
    label.append(name).append("=").append(value);
  }
  return label;
}

std::string CellName(const Choices& choices, uint64_t seed) {
  std::string name;
  for (const auto& [flag, value] : choices) {
    name.append(Plain(flag)).append("-").append(Plain(value)).append("_");
  }
  return name.append("seed-").append(std::to_string(seed));
}

}  // namespace headlight
