// Block: one encoder layer, attention and feed-forward, each on a residual branch (Vaswani et al.
// 2017, section 3.1; pre-norm: Xiong et al. 2020).
//   post: h = norm(x + attention(x));       y = norm(h + feed_forward(h))
//   pre:  r = x + attention(norm(x));       y = r + feed_forward(norm(r))
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/nn/feed_forward.h"
#include "headlight/nn/layer_norm.h"
#include "headlight/nn/multi_head_attention.h"
#include "headlight/nn/options.h"

namespace headlight {

struct BlockConfig {
  // Parameters NAME.attention.*, NAME.attention_norm.*, NAME.feed_forward.*,
  // NAME.feed_forward_norm.*
  std::string name;
  MultiHeadAttentionConfig attention;  // its name and dim are set by the block
  int64_t dim = 0;
  int64_t hidden = 0;
  HiddenActivation activation = HiddenActivation::kRelu;
  NormPlacement norm = NormPlacement::kPost;
  double norm_epsilon = 1e-5;
  double dropout = 0;                     // on each branch before it is added
  Precision precision = Precision::kF32;  // of every product
};

class Block {
 public:
  struct Saved {
    MultiHeadAttention::Saved attention;
    LayerNorm::Saved attention_norm, feed_forward_norm;
    FeedForward::Saved feed_forward;
    // [tokens, dim] each. pre: norm(x); x + attention; the input of feed-forward; post: h +
    // feed_forward; y.
    GrowingTensor attention_input, attention_sum, feed_forward_input, feed_forward_sum, output;
  };

  Block() = default;
  Block(BlockConfig config, DType dtype, uint64_t seed);

  // The output, [tokens, dim], lies in saved.output. x may be saved.output of the layer before, and
  // even of this very Saved when options.for_backward is false.
  Tensor& Forward(const Tensor& x, const RaggedLayout& layout, const ForwardOptions& options,
                  Saved& saved, Workspace& workspace) const;
  // `gradient` [tokens, dim]: in, of the output; out, of x.
  void Backward(Tensor& gradient, Saved& saved, Workspace& workspace);

  int64_t replaced_scores(const Saved& saved) const { return saved.attention.replaced_scores; }
  void PrepareWeights();
  void Collect(std::vector<Parameter*>& parameters);

 private:
  bool Drops(const ForwardOptions& options) const {
    return options.training && config_.dropout > 0;
  }
  // The gradient of a branch out of that of the sum: itself, or with the dropped elements at 0.
  const Tensor& BranchGradient(const Tensor& gradient, const Saved& saved, int64_t place,
                               Workspace& workspace) const;
  // y = feed_forward(x) with its dropout, the residual added where nothing is dropped.
  void FeedForwardForward(const Tensor& residual, const ForwardOptions& options, Saved& saved,
                          Workspace& workspace, Tensor& y) const;

  BlockConfig config_;
  MultiHeadAttention attention_;
  LayerNorm attention_norm_, feed_forward_norm_;
  FeedForward feed_forward_;
};

}  // namespace headlight
