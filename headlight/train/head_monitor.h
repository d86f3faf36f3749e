// What each head does as training goes on: entropy and distance of attention on a few fixed texts.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/models/text_classifier.h"
#include "headlight/nn/probe.h"
#include "headlight/text/text_encoder.h"
#include "headlight/train/batching.h"
#include "headlight/train/metrics_log.h"

namespace headlight {

class HeadMonitor {
 public:
  // Draws `count` of the texts (all when there are fewer) by `seed`. `texts` must outlive this.
  HeadMonitor(const EncodedDataset& texts, int64_t count, uint64_t seed);

  // One forward pass without dropout. Means are over all queries of all texts.
  std::vector<HeadRecord> Measure(const TextClassifier& model, NonfinitePolicy nonfinite);

 private:
  const EncodedDataset& texts_;
  std::vector<int64_t> chosen_;
  BatchBuilder builder_;
  TextClassifier::Saved saved_;
  Probe probe_;
};

}  // namespace headlight
