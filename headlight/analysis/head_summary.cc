#include "headlight/analysis/head_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "headlight/analysis/word_class.h"
#include "headlight/base/error.h"

namespace headlight {
namespace {

std::vector<bool> PunctuationOf(const AnalysedText& text) {
  std::vector<bool> result;
  for (const std::string& token : text.tokens) result.push_back(IsPunctuationToken(token));
  return result;
}

// Adds one query's row to the sums of its head.
void AddRow(const float* row, int64_t query, const std::vector<bool>& punctuation,
            HeadSummary& sum) {
  const auto keys = static_cast<int64_t>(punctuation.size());
  double entropy = 0, distance = 0, on_punctuation = 0;
  int64_t best = 0;
  for (int64_t key = 0; key < keys; ++key) {
    const double weight = row[key];
    if (weight > 0) entropy -= weight * std::log(weight);
    distance += weight * static_cast<double>(std::abs(query - key));
    if (punctuation[static_cast<size_t>(key)]) on_punctuation += weight;
    if (row[key] > row[best]) best = key;
  }
  const auto best_distance = static_cast<double>(std::abs(query - best));
  ++sum.queries;
  sum.entropy += entropy;
  sum.relative_entropy += entropy / std::log(static_cast<double>(keys));
  sum.mean_distance += distance;
  sum.argmax_distance += best_distance;
  sum.max_distance = std::max(sum.max_distance, best_distance);
  sum.largest_weight += row[best];
  sum.first += row[0];
  sum.punctuation += on_punctuation;
  sum.self += row[query];
  if (query > 0) sum.previous += row[query - 1];
  if (query + 1 < keys) sum.next += row[query + 1];
}

void AddUniform(const std::vector<bool>& punctuation, HeadSummary& sum) {
  const auto keys = static_cast<double>(punctuation.size());
  sum.uniform_first += 1;  // keys queries of 1 / keys each
  sum.uniform_punctuation +=
      static_cast<double>(std::count(punctuation.begin(), punctuation.end(), true));
  sum.uniform_neighbour += (keys - 1) / keys;
}

// Sum over queries of the total variation distance to the mean row.
double QueryDependence(const View<const float>& weights) {
  const int64_t queries = weights.size(0), keys = weights.size(1);
  std::vector<double> mean(static_cast<size_t>(keys));
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t key = 0; key < keys; ++key) mean[static_cast<size_t>(key)] += weights(query, key);
  }
  double total = 0;
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t key = 0; key < keys; ++key) {
      const double expected = mean[static_cast<size_t>(key)] / static_cast<double>(queries);
      total += std::abs(weights(query, key) - expected) / 2;
    }
  }
  return total;
}

void DivideByQueries(HeadSummary& sum) {
  const auto queries = static_cast<double>(sum.queries);
  for (double* value : {&sum.entropy, &sum.relative_entropy, &sum.mean_distance,
                        &sum.argmax_distance, &sum.largest_weight, &sum.first, &sum.punctuation,
                        &sum.previous, &sum.next, &sum.self, &sum.uniform_first,
                        &sum.uniform_punctuation, &sum.uniform_neighbour, &sum.query_dependence}) {
    *value /= queries;
  }
}

}  // namespace

std::vector<HeadSummary> SummarizeHeads(const TextClassifier& model,
                                        std::span<const AnalysedText> texts) {
  const auto heads = static_cast<int>(model.config().heads);
  std::vector<HeadSummary> summaries;
  for (int layer = 0; layer < model.config().layers; ++layer) {
    for (int head = 0; head < heads; ++head) {
      summaries.emplace_back();
      summaries.back().layer = layer;
      summaries.back().head = head;
    }
  }
  WalkAttention(model, texts, [&](const HeadView& seen) {
    const AnalysedText& text = texts[static_cast<size_t>(seen.text)];
    const auto length = static_cast<int64_t>(text.ids.size());
    if (length < 2) return;
    HeadSummary& sum = summaries[static_cast<size_t>(seen.layer * heads + seen.head)];
    const std::vector<bool> punctuation = PunctuationOf(text);
    for (int64_t query = 0; query < length; ++query) {
      AddRow(seen.weights.row(query), query, punctuation, sum);
    }
    AddUniform(punctuation, sum);
    sum.query_dependence += QueryDependence(seen.weights);
  });
  for (HeadSummary& sum : summaries) {
    if (sum.queries == 0) {
      throw Error(ErrorKind::kInput, "head statistics: no text has two tokens or more");
    }
    DivideByQueries(sum);
  }
  return summaries;
}

}  // namespace headlight
