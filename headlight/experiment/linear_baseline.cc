#include "headlight/experiment/linear_baseline.h"

#include <linear.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <unordered_map>

#include "headlight/base/clock.h"
#include "headlight/base/error.h"

namespace headlight {
namespace {

using FeatureKey = uint64_t;  // a word, or a pair of words

std::vector<FeatureKey> KeysOf(const std::vector<int32_t>& ids) {
  std::vector<FeatureKey> keys;
  keys.reserve(2 * ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<uint32_t>(ids[i]);
    keys.push_back(id);
    if (i > 0) keys.push_back((uint64_t{static_cast<uint32_t>(ids[i - 1])} + 1) << 32 | id);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

using FeatureIndex = std::unordered_map<FeatureKey, int>;  // liblinear counts from 1

FeatureIndex IndexFeatures(std::span<const std::vector<int32_t>> texts) {
  std::unordered_map<FeatureKey, int> counts;
  for (const auto& ids : texts) {
    for (FeatureKey key : KeysOf(ids)) ++counts[key];
  }
  std::vector<FeatureKey> kept;
  for (const auto& [key, count] : counts) {
    const bool pair = key >> 32 != 0;
    if (!pair || count >= 2) kept.push_back(key);
  }
  std::sort(kept.begin(),
            kept.end());  // the order of features, and so the bits of the fit, are fixed
  FeatureIndex index;
  index.reserve(kept.size());
  for (FeatureKey key : kept) index.emplace(key, static_cast<int>(index.size()) + 1);
  return index;
}

std::vector<feature_node> Row(const std::vector<int32_t>& ids, const FeatureIndex& index) {
  std::vector<feature_node> nodes;
  for (FeatureKey key : KeysOf(ids)) {
    const auto found = index.find(key);
    if (found != index.end()) nodes.push_back({found->second, 1.0});
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const feature_node& a, const feature_node& b) { return a.index < b.index; });
  const double length = std::sqrt(static_cast<double>(std::max<size_t>(nodes.size(), 1)));
  for (feature_node& node : nodes) node.value = 1.0 / length;
  nodes.push_back({-1, 0.0});
  return nodes;
}

double Accuracy(const model& fitted, std::span<std::vector<feature_node>> rows,
                std::span<const int32_t> labels) {
  int64_t right = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    right += std::lround(predict(&fitted, rows[i].data())) == labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

void CheckTexts(const LabelledTexts& texts, const char* side) {
  if (texts.ids.empty() || texts.ids.size() != texts.labels.size()) {
    throw Error(
        ErrorKind::kInput,
        "linear baseline: the {} side must have texts with a label each, found {} texts, {} labels",
        side, texts.ids.size(), texts.labels.size());
  }
}

struct FreeModel {
  void operator()(model* fitted) const { free_and_destroy_model(&fitted); }
};

}  // namespace

LinearBaseline FitLinearBaseline(const LabelledTexts& train_texts,
                                 const LabelledTexts& valid_texts) {
  CheckTexts(train_texts, "training");
  CheckTexts(valid_texts, "validation");
  if (std::set<int32_t>(train_texts.labels.begin(), train_texts.labels.end()).size() < 2) {
    throw Error(ErrorKind::kInput,
                "linear baseline: the training texts must have at least two classes");
  }
  const double start = MonotonicSeconds();
  const FeatureIndex index = IndexFeatures(train_texts.ids);
  const auto rows_of = [&index](std::span<const std::vector<int32_t>> texts) {
    std::vector<std::vector<feature_node>> rows;
    rows.reserve(texts.size());
    for (const auto& ids : texts) rows.push_back(Row(ids, index));
    return rows;
  };
  auto train_rows = rows_of(train_texts.ids), valid_rows = rows_of(valid_texts.ids);
  std::vector<feature_node*> pointers;
  pointers.reserve(train_rows.size());
  for (auto& row : train_rows) pointers.push_back(row.data());
  std::vector<double> targets(train_texts.labels.begin(), train_texts.labels.end());

  problem task{};
  task.l = static_cast<int>(pointers.size());
  task.n = static_cast<int>(index.size());
  task.y = targets.data();
  task.x = pointers.data();
  task.bias = -1;
  parameter settings{};
  settings.solver_type = L2R_LR;
  settings.C = 10;
  settings.eps = 0.01;
  set_print_string_function([](const char*) {});  // the library never prints
  const std::unique_ptr<model, FreeModel> fitted(train(&task, &settings));

  LinearBaseline result;
  result.train_accuracy = Accuracy(*fitted, train_rows, train_texts.labels);
  result.valid_accuracy = Accuracy(*fitted, valid_rows, valid_texts.labels);
  result.features = task.n;
  result.seconds = MonotonicSeconds() - start;
  return result;
}

}  // namespace headlight
