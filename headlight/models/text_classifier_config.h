// Every choice of a text classifier, with the defaults of the field's classic head-count
// experiment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/nn/options.h"

namespace headlight {

struct TextClassifierConfig {
  int64_t vocabulary = 0;  // number of token ids; must be given
  int64_t classes = 0;     // must be given, at least 2
  int64_t max_len = 512;   // longest text in tokens

  int64_t dim = 256;
  int64_t layers = 2;  // 0 is legal: pooled embeddings
  int64_t heads = 8;
  int64_t kv_heads = 0;      // key/value heads (grouped-query); 0: heads; must divide heads
  int64_t head_dim = 0;      // 0: dim / heads, which must divide
  int64_t qk_rank = 0;       // width of a query and key head (low-rank scores); 0: head_dim
  int64_t feed_forward = 0;  // 0: 4 * dim

  PositionKind positions = PositionKind::kSinusoidal;
  int64_t relative_distance = 0;  // L of the table [heads, 2L-1, qk_rank]; 0: max_len
  bool relative_values = false;   // relative positions add to the values too

  NormPlacement norm = NormPlacement::kPost;
  HiddenActivation activation = HiddenActivation::kRelu;
  PoolingChoice pooling = PoolingChoice::kMean;
  double norm_epsilon = 1e-5;

  bool causal = false;
  std::optional<AttentionWindow> window;  // absent: tokens see all of their text
  // Results are the same up to rounding; time and memory differ.
  AttentionImplementation attention = AttentionImplementation::kFused;
  // Of every dense product and attention; parameters, norms, losses and optimizer state are f32.
  Precision precision = Precision::kF32;
  bool projection_bias = true;    // on query, key and value
  bool output_projection = true;  // false (the textbook single head) needs heads * head_dim = dim
  bool output_bias = true;
  ScaleKind scale = ScaleKind::kInverseSqrt;
  double scale_value = 0;  // of ScaleKind::kGiven

  double dropout = 0.1;            // after the embedding and on each residual branch
  double attention_dropout = 0.1;  // on attention weights
  double embedding_std = 1.0;      // of the initial token and learned position vectors (normal)

  // Resolved values.
  int64_t HeadDim() const { return head_dim > 0 ? head_dim : dim / heads; }
  int64_t KeyValueHeads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t QueryDim() const { return qk_rank > 0 ? qk_rank : HeadDim(); }
  int64_t FeedForwardDim() const { return feed_forward > 0 ? feed_forward : 4 * dim; }
  int64_t RelativeDistance() const { return relative_distance > 0 ? relative_distance : max_len; }

  friend bool operator==(const TextClassifierConfig&, const TextClassifierConfig&) = default;
};

// Throws kUsage with the rule that does not hold and what would: for a head count that does not
// divide dim, the nearest head counts that do.
void ValidateConfig(const TextClassifierConfig& config);

// Number of parameters by formula, without building the model. The config must be valid.
int64_t ParameterCount(const TextClassifierConfig& config);

// Multiply-adds count as two: the forward products over `tokens` tokens with `pairs` pairs of a
// query and a key that causality and window keep (KeptPairs), classifier and norms left out. A
// training step takes three times that.
double ForwardFlops(const TextClassifierConfig& config, int64_t tokens, double pairs);

}  // namespace headlight
