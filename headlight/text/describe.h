// What a dataset holds, and what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/text/dataset.h"
#include "headlight/text/tokenizer.h"
#include "headlight/text/unicode.h"

namespace headlight {

struct LabelCount {
  std::string label;
  int64_t count = 0;
};

// Tokens per text; a percentile is the smallest length that so many per cent of the texts do not
// exceed.
struct LengthSummary {
  int64_t p50 = 0;
  int64_t p90 = 0;
  int64_t p99 = 0;
  int64_t max = 0;
  int64_t total = 0;
};

struct Defect {
  std::string name;                 // "empty texts", ...
  int64_t count = 0;                // rows
  int64_t occurrences = 0;          // broken sequences, replacement characters; else as count
  std::vector<std::string> places;  // of the first rows
};

struct DatasetDescription {
  int64_t rows = 0;
  std::string format;
  std::vector<LabelCount> labels;  // in the order of Dataset::Labels
  LengthSummary lengths;
  std::vector<ScriptCount> scripts;  // the most frequent first
  std::vector<Defect> defects;       // every kind, in a fixed order, those with count 0 too
};

struct DescribeOptions {
  TokenizerOptions tokenizer;
  size_t max_places = 5;
};

// The kinds of defects, in this order: "empty texts", "empty labels", "duplicates" (rows whose text
// and label occurred before), "texts with two labels" (rows whose text occurred before with another
// label), "texts in both train and valid" (rows of train; 0 where `valid` is null), "broken UTF-8",
// "replacement characters". Texts are compared by TextKey.
DatasetDescription Describe(const Dataset& dataset, const Dataset* valid,
                            const DescribeOptions& options);

}  // namespace headlight
