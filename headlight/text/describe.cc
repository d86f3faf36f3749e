#include "headlight/text/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "headlight/base/threads.h"

namespace headlight {
namespace {

constexpr int64_t kGrain = 64;  // texts per task

// What is measured of each text by itself.
struct TextFacts {
  int64_t tokens = 0;
  std::string key;
  Utf8Check utf8;
  std::vector<ScriptCount> scripts;
};

std::vector<TextFacts> MeasureTexts(const Dataset& dataset, const TokenizerOptions& options) {
  const Tokenizer tokenizer(options);
  std::vector<TextFacts> facts(dataset.examples.size());
  ParallelForRange(static_cast<int64_t>(facts.size()), kGrain,
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t i = begin; i < end; ++i) {
                       const std::string& text = dataset.examples[static_cast<size_t>(i)].text;
                       TextFacts& fact = facts[static_cast<size_t>(i)];
                       fact.tokens = static_cast<int64_t>(tokenizer.Tokenize(text).size());
                       fact.key = TextKey(text);
                       fact.utf8 = CheckUtf8(text, 1);
                       CountScripts(text, &fact.scripts);
                     }
                   });
  return facts;
}

LengthSummary Summarize(const std::vector<TextFacts>& facts) {
  LengthSummary summary;
  if (facts.empty()) return summary;
  std::vector<int64_t> lengths;
  lengths.reserve(facts.size());
  for (const TextFacts& fact : facts) {
    lengths.push_back(fact.tokens);
    summary.total += fact.tokens;
  }
  std::sort(lengths.begin(), lengths.end());
  const auto percentile = [&lengths](size_t per_cent) {
    return lengths[(lengths.size() * per_cent + 99) / 100 - 1];
  };
  summary.p50 = percentile(50);
  summary.p90 = percentile(90);
  summary.p99 = percentile(99);
  summary.max = lengths.back();
  return summary;
}

std::vector<ScriptCount> SumScripts(const std::vector<TextFacts>& facts) {
  std::unordered_map<std::string, int64_t> sums;
  for (const TextFacts& fact : facts) {
    for (const ScriptCount& count : fact.scripts) sums[count.script] += count.characters;
  }
  std::vector<ScriptCount> scripts;
  scripts.reserve(sums.size());
  for (const auto& [script, characters] : sums) scripts.push_back({script, characters});
  std::sort(scripts.begin(), scripts.end(), [](const ScriptCount& left, const ScriptCount& right) {
    return left.characters != right.characters ? left.characters > right.characters
                                               : left.script < right.script;
  });
  return scripts;
}

std::vector<LabelCount> CountLabels(const Dataset& dataset) {
  std::vector<LabelCount> labels;
  std::unordered_map<std::string_view, int64_t> counts;
  for (const Example& example : dataset.examples) ++counts[example.label];
  for (std::string& label : dataset.Labels()) {
    const int64_t count = counts[label];
    labels.push_back({std::move(label), count});
  }
  return labels;
}

class DefectFinder {
 public:
  DefectFinder(const Dataset& dataset, const std::vector<TextFacts>& facts, size_t max_places)
      : dataset_(dataset), facts_(facts), max_places_(max_places) {}

  std::vector<Defect> Find(const Dataset* valid) {
    Defect empty{"empty texts", 0, 0, {}};
    Defect unlabelled{"empty labels", 0, 0, {}};
    Defect broken{"broken UTF-8", 0, 0, {}};
    Defect replaced{"replacement characters", 0, 0, {}};
    for (size_t i = 0; i < facts_.size(); ++i) {
      const Utf8Check& utf8 = facts_[i].utf8;
      if (facts_[i].key.empty()) Note(i, 1, "", &empty);
      if (dataset_.examples[i].label.empty()) Note(i, 1, "", &unlabelled);
      if (utf8.broken > 0) {
        Note(i, utf8.broken, fmt::format(" (byte {} of the text)", utf8.broken_places[0]), &broken);
      }
      if (utf8.replacement_characters > 0) Note(i, utf8.replacement_characters, "", &replaced);
    }
    Defect duplicates{"duplicates", 0, 0, {}};
    Defect two_labels{"texts with two labels", 0, 0, {}};
    FindRepeated(&duplicates, &two_labels);
    return {std::move(empty),   std::move(unlabelled), std::move(duplicates), std::move(two_labels),
            FindInValid(valid), std::move(broken),     std::move(replaced)};
  }

 private:
  void Note(size_t row, int64_t occurrences, std::string_view detail, Defect* defect) const {
    ++defect->count;
    defect->occurrences += occurrences;
    if (defect->places.size() < max_places_) {
      defect->places.push_back(fmt::format("{}{}", dataset_.examples[row].origin, detail));
    }
  }

  // An empty text is a defect of its own and no duplicate.
  void FindRepeated(Defect* duplicates, Defect* two_labels) const {
    std::unordered_map<std::string_view, std::vector<size_t>> rows_of;  // one row per label
    rows_of.reserve(facts_.size());
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (facts_[i].key.empty()) continue;
      std::vector<size_t>& rows = rows_of[facts_[i].key];
      const std::string& label = dataset_.examples[i].label;
      const bool seen = std::any_of(rows.begin(), rows.end(), [&](size_t row) {
        return dataset_.examples[row].label == label;
      });
      if (seen) {
        Note(i, 1, "", duplicates);
        continue;
      }
      if (!rows.empty()) {
        Note(i, 1,
             fmt::format(" ('{}'; '{}' in {})", label, dataset_.examples[rows[0]].label,
                         dataset_.examples[rows[0]].origin),
             two_labels);
      }
      rows.push_back(i);
    }
  }

  Defect FindInValid(const Dataset* valid) const {
    Defect both{"texts in both train and valid", 0, 0, {}};
    if (valid == nullptr) return both;
    std::unordered_map<std::string, size_t> row_of;
    for (size_t i = 0; i < valid->examples.size(); ++i) {
      row_of.emplace(TextKey(valid->examples[i].text), i);
    }
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (facts_[i].key.empty()) continue;
      const auto at = row_of.find(facts_[i].key);
      if (at == row_of.end()) continue;
      Note(i, 1, fmt::format(" (as {})", valid->examples[at->second].origin), &both);
    }
    return both;
  }

  const Dataset& dataset_;
  const std::vector<TextFacts>& facts_;
  size_t max_places_;
};

}  // namespace

DatasetDescription Describe(const Dataset& dataset, const Dataset* valid,
                            const DescribeOptions& options) {
  const std::vector<TextFacts> facts = MeasureTexts(dataset, options.tokenizer);
  DatasetDescription description;
  description.rows = static_cast<int64_t>(dataset.examples.size());
  description.format = dataset.format;
  description.labels = CountLabels(dataset);
  description.lengths = Summarize(facts);
  description.scripts = SumScripts(facts);
  description.defects = DefectFinder(dataset, facts, options.max_places).Find(valid);
  return description;
}

}  // namespace headlight
