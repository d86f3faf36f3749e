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
struct ProbedWeights {
  int layer = 0;
  int head = 0;
  int64_t sequence = 0;  // slot in the batch
  Tensor weights;        // [query_len, key_len], the model's dtype; rows sum to 1, or are 0 where a
                         // query has nothing to attend to
};

// Per query of the chosen heads of one layer, computed inside the fused pass in O(tokens) memory.
// Tensors are [heads, tokens] of the model's dtype, in the order of `heads`; a sequence's tokens
// lie at its offsets of the batch. All are 0 (and the key -1) for a query with nothing to attend
// to.
struct ProbedStatistics {
  int layer = 0;
  std::vector<int> heads;
  Tensor entropy;            // -sum w ln w, in nats
  Tensor distance;           // sum over keys of w (key - query)
  Tensor absolute_distance;  // sum over keys of w |key - query|
  Tensor largest_weight;
  Tensor largest_key;  // i32: the key of the largest weight (first of equals), within the sequence
  Tensor set_mass;     // sum of w over Probe::key_set; empty when that is
};

struct Probe {
  // What is asked for. Empty lists mean all.
  std::vector<int> layers;
  std::vector<int> heads;
  bool want_weights = false;
  bool want_statistics = false;
  std::vector<uint8_t>
      key_set;  // empty, or one per token: non-zero is in the set (punctuation, ...)
  // Sees each tensor of the pass as it is made: layer (-1: none), its name ("embedding", "query",
  // "attention", "attention_norm", ..., "logits"), and the values. For debugging and for finding
  // non-finite values; the tensor is only valid during the call.
  std::function<void(int layer, const char* name, const Tensor& values)> on_tensor;

  // What was seen, by layer, then sequence, then head. Appended to; the caller clears.
  std::vector<ProbedWeights> weights;
  std::vector<ProbedStatistics> statistics;

  bool WantsLayer(int layer) const;
  bool WantsHead(int head) const;
  void See(int layer, const char* name, const Tensor& values) const {
    if (on_tensor) on_tensor(layer, name, values);
  }
  void Clear() {
    weights.clear();
    statistics.clear();
  }
};

}  // namespace headlight
