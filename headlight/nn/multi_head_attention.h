// MultiHeadAttention: project to queries, keys and values, attend per head, project the heads' join
// back (Vaswani et al. 2017, section 3.2.2). One head is heads = 1, by the same code.
//
// Self-attention computes query, key and value in one product; cross-attention takes keys and
// values from another ragged sequence. Head h owns the features [h * head_dim, (h + 1) * head_dim)
// of the heads' join, and reads key/value head h / (heads / kv_heads) (Ainslie et al. 2023, "GQA";
// kv_heads 1: Shazeer 2019, "Fast transformer decoding").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headlight/nn/linear.h"
#include "headlight/nn/options.h"
#include "headlight/nn/parameter.h"
#include "headlight/nn/ragged_batch.h"
#include "headlight/nn/workspace.h"

namespace headlight {

struct MultiHeadAttentionConfig {
  // Parameters, weights as [out, in]: NAME.query.* [heads * qk_dim, dim], NAME.key.* [kv_heads *
  // qk_dim, dim], NAME.value.* [kv_heads * head_dim, dim], NAME.output.* [dim, heads * head_dim],
  // NAME.relative_key [heads, 2L - 1, qk_dim], NAME.relative_value [heads, 2L - 1, head_dim].
  std::string name = "attention";
  int layer = 0;           // names it in probes, profiles and the draws of dropout
  int64_t dim = 0;         // features of x and y
  int64_t memory_dim = 0;  // 0: self-attention; else the features of the memory
  int64_t heads = 1;
  int64_t kv_heads = 0;  // of keys and values; divides heads; 0: heads
  int64_t head_dim = 0;  // of a value head; 0: dim / heads
  int64_t qk_dim = 0;    // of a query and key head, the rank of its scores; 0: head_dim
  bool projection_bias = true;
  bool output_projection = true;  // without: y is the heads' join, heads * head_dim = dim
  bool output_bias = true;
  std::optional<double> scale = std::nullopt;  // 1 / sqrt(qk_dim) unless given
  bool causal = false;                         // aligned to the end of the keys
  std::optional<AttentionWindow> window = std::nullopt;
  AttentionImplementation implementation = AttentionImplementation::kFused;
  double dropout = 0;             // on weights
  int64_t relative_distance = 0;  // L of Shaw et al. 2018; 0: no relative positions
  bool relative_values = false;
  Precision precision = Precision::kF32;  // of the projections and of attention
  bool alibi = false;  // Press et al. 2022, with the slopes of AlibiSlopes(heads)
};

// "1, 2, 4, 8, ..., 256": the head counts that divide dim (or key/value head counts that divide the
// heads), for messages.
std::string HeadCountsThatDivide(int64_t dim);
// Throws kUsage, as `operation`, unless kv_heads divides heads.
void CheckKeyValueHeads(const char* operation, int64_t heads, int64_t kv_heads);

// How many pairs of a query and a key causality and window keep.
double KeptPairs(const RaggedLayout& queries, const RaggedLayout& keys, bool causal,
                 const std::optional<AttentionWindow>& window);

class MultiHeadAttention {
 public:
  // What it attends over. Spans and tensors must live until the backward pass is done.
  struct Input {
    const Tensor& x;  // [tokens, dim]
    RaggedLayout layout;
    const Tensor* memory = nullptr;  // [memory tokens, memory_dim], for cross-attention
    RaggedLayout memory_layout = {};
    std::span<const int64_t> key_lengths =
        {};                         // empty, or per sequence: keys at or after it are masked
    View<const uint8_t> keep = {};  // none, or [batch, heads, query_len, key_len]: zero masks
                                    // (strides 0 repeat; the sizes are at least the longest)
  };

  struct Saved {
    Tensor input, memory;  // share the caller's buffers, which must stay unchanged
    RaggedLayout layout, memory_layout;
    std::span<const int64_t> key_lengths;
    View<const uint8_t> keep;
    ForwardOptions options;
    GrowingTensor
        projected;  // [tokens, queries + keys + values]; cross-attention: [tokens, queries]
    GrowingTensor key_value;  // [memory tokens, keys + values], of cross-attention
    GrowingTensor attention;  // [tokens, heads * head_dim]
    AttentionPass pass;
    int64_t replaced_scores = 0;  // under NonfinitePolicy::kZero
  };

  MultiHeadAttention() = default;
  // Throws kUsage when heads does not divide dim and no head_dim is given, and when kv_heads does
  // not divide heads.
  MultiHeadAttention(const MultiHeadAttentionConfig& config, DType dtype, uint64_t seed);

  // y [tokens, dim] = attention of input (+ residual, where one is given). y is not x.
  void Forward(const Input& input, const ForwardOptions& options, const Tensor* residual,
               Saved& saved, Tensor& y) const;

  struct Gradients {
    Update update = Update::kOverwrite;  // of dx
    Tensor& dx;                          // [tokens, dim]; may be dy when it is added to
    Tensor* dmemory = nullptr;           // [memory tokens, memory_dim], overwritten; may be null
  };
  void Backward(const Tensor& dy, Saved& saved, Workspace& workspace, const Gradients& gradients);

  const MultiHeadAttentionConfig& config() const { return config_; }
  void PrepareWeights();
  void Collect(std::vector<Parameter*>& parameters);

 private:
  struct Pass;  // the kernel's description of one pass

  bool cross() const { return config_.memory_dim > 0; }
  // Features of all heads' join, queries, keys and values.
  int64_t inner() const { return config_.heads * config_.head_dim; }
  int64_t queries() const { return config_.heads * config_.qk_dim; }
  int64_t keys() const { return config_.kv_heads * config_.qk_dim; }
  int64_t values() const { return config_.kv_heads * config_.head_dim; }
  Pass MakePass(Saved& saved) const;
  // Windows on a product's output: [tokens, heads, qk_dim], [tokens, kv_heads, qk_dim], [tokens,
  // kv_heads, head_dim].
  Tensor Queries(const Tensor& projected) const;
  Tensor Keys(const Tensor& memory) const;
  Tensor Values(const Tensor& memory) const;
  // Of so many products of each pair that the mask keeps, as wide as queries and as values.
  double Flops(const Saved& saved, double query_products, double value_products) const;

  MultiHeadAttentionConfig config_;
  Linear projection_;  // query, key, value; of cross-attention: query
  Linear key_value_;   // of cross-attention
  Linear output_;
  Parameter relative_key_, relative_value_;
};

}  // namespace headlight
