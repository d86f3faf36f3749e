// TextClassifier: a transformer encoder with a pooled linear classifier, on ragged batches.
//
// Source: Vaswani et al. 2017 (encoder), with pre-norm (Xiong et al. 2020) and relative positions
// (Shaw et al. 2018) as options. All activations are [tokens, features]; there is no padding.
//
// Parameters, by name (weights are [out, in] as in torch.nn.Linear; R = qk_rank, H = head_dim, I =
// heads * H; query head h owns rows [h * R, (h + 1) * R), and reads key/value head h / (heads /
// kv_heads)):
//   embedding.token.weight                    [vocabulary, dim]
//   embedding.position.weight                 [max_len, dim]        learned positions
//   encoder.N.attention.query.weight|bias     [heads * R, dim] | [heads * R]
//   encoder.N.attention.key.weight|bias       [kv_heads * R, dim] | [kv_heads * R]
//   encoder.N.attention.value.weight|bias     [kv_heads * H, dim] | [kv_heads * H]
//   encoder.N.attention.relative_key          [heads, 2L-1, R]      relative positions; row
//   encoder.N.attention.relative_value        [heads, 2L-1, H]        clamp(key - query, +-(L-1)) +
//   L - 1 encoder.N.attention.output.weight|bias    [dim, I] | [dim]
//   encoder.N.attention_norm.weight|bias      [dim]
//   encoder.N.feed_forward.up.weight|bias     [F, dim] | [F]
//   encoder.N.feed_forward.down.weight|bias   [dim, F] | [dim]
//   encoder.N.feed_forward_norm.weight|bias   [dim]
//   norm.weight|bias                          [dim]                 pre-norm
//   pooling.query                             [dim]                 attention pooling
//   classifier.weight|bias                    [classes, dim] | [classes]
// In torch.nn.TransformerEncoderLayer these are self_attn.in_proj_weight (query, key, value
// stacked), self_attn.out_proj, norm1, linear1, linear2, norm2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headlight/models/text_classifier_config.h"
#include "headlight/nn/options.h"
#include "headlight/nn/parameter.h"
#include "headlight/nn/ragged_batch.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

// Where a non-finite value first appeared.
struct NonfiniteReport {
  int layer = -1;      // -1: outside of the encoder's blocks
  int head = -1;       // -1: not inside attention; of keys and values: the key/value head
  std::string tensor;  // "query", "attention", "feed_forward", "logits", a parameter's name, ...
  int64_t sequence = -1;
  int64_t row = -1;  // token within the batch (rows of the tensor)
  double value = 0;  // NaN or +-inf

  // "layer 1, head 3, tensor attention, sequence 4: nan"
  std::string ToString() const;
};

class TextClassifier {
 public:
  // What Forward keeps for Backward, with the buffers of both: keep one per trainer and pass it to
  // every step, so that nothing is allocated once it has seen the largest batch.
  class Saved {
   public:
    Saved();
    ~Saved();
    Saved(Saved&&) noexcept;
    Saved& operator=(Saved&&) noexcept;

    struct State;
    State& state() { return *state_; }

   private:
    std::unique_ptr<State> state_;
  };

  // Throws kUsage for an invalid config, kShape for a dtype other than f32 and f64. f64 runs the
  // reference kernels. Values start as nn/init.h says, from `seed`.
  TextClassifier(const TextClassifierConfig& config, DType dtype, uint64_t seed);
  ~TextClassifier();
  TextClassifier(TextClassifier&&) noexcept;
  TextClassifier& operator=(TextClassifier&&) noexcept;

  const TextClassifierConfig& config() const;
  DType dtype() const;

  // Logits [batch, classes], in a buffer of their own. A text of no tokens pools to zeros. `saved`
  // may be null when no Backward follows. Const and safe to call from several threads, each with
  // its own Saved. Throws kShape for a batch that does not fit (a text longer than max_len, an id
  // out of range), and for training with dropout without sample ids.
  Tensor Forward(const RaggedBatch& batch, const ForwardOptions& options, Saved* saved) const;

  // Adds the gradient to every parameter's gradient. logits_gradient: [batch, classes]. The batch
  // given to the Forward that filled `saved` must still live and be unchanged.
  void Backward(const Tensor& logits_gradient, Saved& saved);

  // In forward order; the pointers live as long as the model (moving it keeps them).
  std::vector<Parameter*> Parameters();
  std::vector<const Parameter*> Parameters() const;

  // Repacks weights for the products. Call after any change of parameter values, before the next
  // Forward or Backward (the constructor has called it).
  void PrepareWeights();

  // Attention scores replaced under NonfinitePolicy::kZero since the model was made.
  int64_t NonfiniteScoresReplaced() const;

  // Runs the pass again, looking at each tensor in turn: first the parameters, then the forward
  // tensors in order. Nothing found: false. For use after a loss came out non-finite.
  bool FindFirstNonfinite(const RaggedBatch& batch, const ForwardOptions& options,
                          NonfiniteReport* report) const;
  // The first parameter gradient, in the order in which the backward pass makes them (classifier
  // first), that holds a non-finite value.
  bool FindFirstNonfiniteGradient(NonfiniteReport* report) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headlight
