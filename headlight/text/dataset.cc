#include "headlight/text/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "headlight/text/unicode.h"

namespace headlight {
namespace {

// "-12", "0", "7": at most 18 digits, so that comparing needs no big numbers.
bool IsInteger(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> Dataset::Labels() const {
  std::unordered_set<std::string_view> found;
  for (const Example& example : examples) {
    if (!example.label.empty()) found.insert(example.label);
  }
  std::vector<std::string> labels(found.begin(), found.end());
  std::sort(labels.begin(), labels.end());
  if (std::all_of(labels.begin(), labels.end(), IsInteger)) {
    std::stable_sort(labels.begin(), labels.end(), [](const auto& left, const auto& right) {
      return std::stoll(left) < std::stoll(right);
    });
  }
  return labels;
}

int64_t DropUnusable(Dataset* dataset) {
  const auto dropped =
      static_cast<int64_t>(std::erase_if(dataset->examples, [](const Example& example) {
        return example.label.empty() || IsBlank(example.text);
      }));
  dataset->dropped += dropped;
  return dropped;
}

std::string DroppedNote(const Dataset& dataset) {
  if (dataset.dropped == 0) return "";
  return fmt::format("; {} more rows are skipped, for their text or label is empty",
                     dataset.dropped);
}

}  // namespace headlight
