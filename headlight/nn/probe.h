// Probe: the one hook that sees inside a forward pass. Without a probe, attention weights are never
// built and nothing is kept.
//
// A probe does not change any output: what it asks for is computed beside the pass. It works in
// training too; weights and statistics are those before dropout.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headlight/tensor/tensor.h"

namespace headlight {

// The attention weights of one head on one sequence.
struct HeadWeights {
  int layer = 0;
  int head = 0;
  int64_t sequence = 0;  // slot in the batch
  Tensor weights;        // [query_len, key_len], the model's dtype; rows sum to 1, or are 0 where a
                         // query has nothing to attend to
};

// Per query of one head on one sequence, computed inside the fused pass.
struct HeadStatistics {
  int layer = 0;
  int head = 0;
  int64_t sequence = 0;
  std::vector<float> entropy;            // natural log, of the row of weights
  std::vector<float> expected_distance;  // sum over keys of weight x |query - key|
  std::vector<float> argmax_distance;    // |query - key| at the largest weight (first of equals)
  std::vector<float> largest_weight;
};

struct Probe {
  // What is asked for. Empty lists mean all.
  std::vector<int> layers;
  std::vector<int> heads;
  bool want_weights = false;
  bool want_statistics = false;
  // Sees each tensor of the pass as it is made: layer (-1: none), its name ("embedding", "query",
  // "attention", "attention_norm", ..., "logits"), and the values. For debugging and for finding
  // non-finite values; the tensor is only valid during the call.
  std::function<void(int layer, const char* name, const Tensor& values)> on_tensor;

  // What was seen, by layer, then sequence, then head. Appended to; the caller clears.
  std::vector<HeadWeights> weights;
  std::vector<HeadStatistics> statistics;

  bool Wants(int layer, int head) const;
  void Clear() {
    weights.clear();
    statistics.clear();
  }
};

}  // namespace headlight
