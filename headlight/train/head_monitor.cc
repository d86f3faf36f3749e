#include "headlight/train/head_monitor.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "headlight/base/random.h"

namespace headlight {
namespace {

constexpr uint64_t kChoiceStream = uint64_t{1} << 41;  // of the run's seed; see batching.cc

// Head `slot` of a layer, over all queries of all sequences that have something to attend to.
template <typename T>
HeadRecord MeanOverQueries(const ProbedStatistics& statistics, size_t slot,
                           const RaggedLayout& layout) {
  HeadRecord record;
  record.layer = statistics.layer;
  record.head = statistics.heads[slot];
  const auto row = static_cast<int64_t>(slot);
  const View<const T> entropy = statistics.entropy.view<T>();
  const View<const int32_t> largest_key = statistics.largest_key.view<int32_t>();
  int64_t queries = 0;
  for (int64_t sequence = 0; sequence < layout.batch(); ++sequence) {
    for (int64_t query = 0; query < layout.length(sequence); ++query) {
      const int64_t token = layout.begin(sequence) + query;
      const int64_t key = largest_key(row, token);
      if (key < 0) continue;
      const auto distance = static_cast<double>(std::abs(key - query));
      record.entropy += static_cast<double>(entropy(row, token));
      record.mean_distance += distance;
      record.max_distance = std::max(record.max_distance, distance);
      ++queries;
    }
  }
  const auto count = static_cast<double>(std::max<int64_t>(queries, 1));
  record.entropy /= count;
  record.mean_distance /= count;
  return record;
}

}  // namespace

HeadMonitor::HeadMonitor(const EncodedDataset& texts, int64_t count, uint64_t seed)
    : texts_(texts), chosen_(static_cast<size_t>(texts.size())) {
  std::iota(chosen_.begin(), chosen_.end(), int64_t{0});
  RandomStream(seed, kChoiceStream).Shuffle(chosen_);
  chosen_.resize(std::min(chosen_.size(), static_cast<size_t>(count)));
  std::sort(chosen_.begin(), chosen_.end());
  probe_.want_statistics = true;
}

std::vector<HeadRecord> HeadMonitor::Measure(const TextClassifier& model,
                                             NonfinitePolicy nonfinite) {
  probe_.Clear();
  ForwardOptions options;
  options.probe = &probe_;
  options.nonfinite = nonfinite;
  options.for_backward = false;
  const RaggedBatch& batch = builder_.Fill(texts_, chosen_);
  model.Forward(batch, options, &saved_);
  const RaggedLayout layout = batch.layout();

  std::vector<HeadRecord> records;
  for (const ProbedStatistics& statistics : probe_.statistics) {
    for (size_t slot = 0; slot < statistics.heads.size(); ++slot) {
      records.push_back(DispatchFloat(statistics.entropy.dtype(), [&]<typename T>() {
        return MeanOverQueries<T>(statistics, slot, layout);
      }));
    }
  }
  return records;
}

}  // namespace headlight
