#include "headlight/text/split.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/io/csv.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

// All rows of one text; they stay together.
struct Group {
  std::vector<size_t> rows;
};

// The groups of one label (a text with two labels counts as its first), in order of appearance.
struct Stratum {
  std::vector<Group> groups;
  size_t rows = 0;
};

std::vector<Stratum> MakeStrata(const Dataset& dataset) {
  std::vector<Stratum> strata;
  std::unordered_map<std::string, size_t> stratum_of;                   // label
  std::unordered_map<std::string, std::pair<size_t, size_t>> place_of;  // text key
  for (size_t row = 0; row < dataset.examples.size(); ++row) {
    const Example& example = dataset.examples[row];
    std::string key = TextKey(example.text);
    auto place = place_of.find(key);
    if (place == place_of.end()) {
      const size_t stratum = stratum_of.emplace(example.label, strata.size()).first->second;
      if (stratum == strata.size()) strata.emplace_back();
      place =
          place_of.emplace(std::move(key), std::pair(stratum, strata[stratum].groups.size())).first;
      strata[stratum].groups.emplace_back();
    }
    const auto [stratum, group] = place->second;
    strata[stratum].groups[group].rows.push_back(row);
    ++strata[stratum].rows;
  }
  return strata;
}

// Marks the rows of `stratum` that go to the validation part.
void DrawValid(Stratum stratum, double share, RandomStream* random, std::vector<bool>* valid) {
  random->Shuffle(stratum.groups);
  const auto target = static_cast<size_t>(std::llround(share * static_cast<double>(stratum.rows)));
  std::vector<bool> drawn(stratum.groups.size(), false);
  size_t rows = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const size_t size = stratum.groups[i].rows.size();
    if (rows + size > target) continue;
    drawn[i] = true;
    rows += size;
  }
  const size_t count = static_cast<size_t>(std::count(drawn.begin(), drawn.end(), true));
  if (drawn.size() >= 2 && count == 0) drawn[0] = true;
  if (drawn.size() >= 2 && count == drawn.size()) drawn.back() = false;
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (!drawn[i]) continue;
    for (const size_t row : stratum.groups[i].rows) (*valid)[row] = true;
  }
}

void AppendJsonLine(const Example& example, std::string* out) {
  try {
    nlohmann::ordered_json json;
    json["text"] = example.text;
    json["label"] = example.label;
    out->append(json.dump());
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::kInput,
                "data: {}: broken UTF-8 cannot be written as JSON lines (CSV can hold it)",
                example.origin);
  }
  out->push_back('\n');
}

}  // namespace

TrainValid StratifiedSplit(const Dataset& dataset, const SplitOptions& options) {
  if (!(options.valid_share > 0 && options.valid_share < 1)) {
    throw Error(ErrorKind::kUsage, "split: the validation share must be in (0, 1), found {}",
                options.valid_share);
  }
  std::vector<bool> valid(dataset.examples.size(), false);
  uint64_t stream = 0;
  for (Stratum& stratum : MakeStrata(dataset)) {
    RandomStream random(options.seed, stream++);
    DrawValid(std::move(stratum), options.valid_share, &random, &valid);
  }
  TrainValid parts;
  parts.train.format = dataset.format;
  parts.valid.format = dataset.format;
  parts.train.dropped = dataset.dropped;
  for (size_t row = 0; row < valid.size(); ++row) {
    (valid[row] ? parts.valid : parts.train).examples.push_back(dataset.examples[row]);
  }
  if (parts.train.examples.empty() || parts.valid.examples.empty()) {
    throw Error(ErrorKind::kInput,
                "split: {} rows leave the {} part empty (no label has two different texts){}",
                valid.size(), parts.train.examples.empty() ? "training" : "validation",
                DroppedNote(dataset));
  }
  return parts;
}

std::string FormatDataset(const Dataset& dataset, DataFormat format) {
  if (format != DataFormat::kCsv && format != DataFormat::kJsonl) {
    throw Error(ErrorKind::kUsage, "data: a dataset is written as csv or jsonl, not as {}",
                DataFormatName(format));
  }
  std::string out;
  if (format == DataFormat::kCsv) out = "text,label\n";
  for (const Example& example : dataset.examples) {
    if (format == DataFormat::kJsonl) {
      AppendJsonLine(example, &out);
      continue;
    }
    AppendCsvField(example.text, ',', &out);
    out.push_back(',');
    AppendCsvField(example.label, ',', &out);
    out.push_back('\n');
  }
  return out;
}

}  // namespace headlight
