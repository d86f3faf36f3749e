#include "headlight/nn/block.h"

#include <utility>

#include "headlight/base/profiler.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/activation/activation.h"
#include "headlight/nn/dropout_places.h"

namespace headlight {
namespace {

BlockConfig Named(BlockConfig config) {
  config.attention.name = config.name + ".attention";
  config.attention.dim = config.dim;
  config.attention.precision = config.precision;
  return config;
}

void DropRows(const Tensor& x, const ForwardOptions& options, double rate, int64_t place,
              const RaggedLayout& layout, Tensor& y) {
  Dropout(x,
          {.rate = rate,
           .seed = options.seed,
           .layer = place,
           .step = options.step,
           .offsets = layout.offsets,
           .sample_ids = layout.sample_ids},
          y);
}

// y += x, both contiguous [rows, features].
void AddTo(Tensor& y, const Tensor& x) {
  DispatchFloat(y.dtype(), [&]<typename T>() {
    T* to = y.data<T>();
    const T* from = x.data<T>();
    constexpr int64_t kGrain = 1 << 16;
    ParallelForRange(y.elements(), kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

}  // namespace

Block::Block(BlockConfig config, DType dtype, uint64_t seed)
    : config_(Named(std::move(config))),
      attention_(config_.attention, dtype, seed),
      attention_norm_(config_.name + ".attention_norm", config_.dim, config_.norm_epsilon, dtype),
      feed_forward_norm_(config_.name + ".feed_forward_norm", config_.dim, config_.norm_epsilon,
                         dtype),
      feed_forward_({.name = config_.name + ".feed_forward",
                     .dim = config_.dim,
                     .hidden = config_.hidden,
                     .activation = config_.activation,
                     .precision = config_.precision},
                    dtype, seed) {}

Tensor& Block::Forward(const Tensor& x, const RaggedLayout& layout, const ForwardOptions& options,
                       Saved& saved, Workspace& workspace) const {
  const int layer = config_.attention.layer;
  const bool pre = config_.norm == NormPlacement::kPre, drops = Drops(options);
  const Shape shape = x.shape();
  const auto see = [&](const char* name, const Tensor& values) {
    if (options.probe != nullptr) options.probe->See(layer, name, values);
  };

  Tensor attention_input = x;
  if (pre) {
    const Zone zone(ZoneKind::kNorm, ZonePass::kForward, layer);
    Tensor normalised = x;
    attention_input = saved.attention_input.Get(shape, x.dtype());
    attention_norm_.Forward(normalised, nullptr, saved.attention_norm, attention_input);
    see("attention_norm", attention_input);
  }

  // Where nothing is dropped the product adds the residual; else the norm that follows does.
  Tensor& sum = saved.attention_sum.Get(shape, x.dtype());
  attention_.Forward({.x = attention_input, .layout = layout}, options, drops ? nullptr : &x,
                     saved.attention, sum);
  if (drops) {
    const Zone zone(ZoneKind::kOutputProjection, ZonePass::kForward, layer);
    DropRows(sum, options, config_.dropout, DropoutPlace(layer, kDropAttentionBranch), layout, sum);
  }

  Tensor& feed_forward_input = saved.feed_forward_input.Get(shape, x.dtype());
  {
    const Zone zone(ZoneKind::kNorm, ZonePass::kForward, layer);
    LayerNorm::Saved& norm_saved = pre ? saved.feed_forward_norm : saved.attention_norm;
    const LayerNorm& norm = pre ? feed_forward_norm_ : attention_norm_;
    norm.Forward(sum, drops ? &x : nullptr, norm_saved, feed_forward_input);
    see("attention_sum", sum);
    see(pre ? "feed_forward_norm" : "attention_norm", feed_forward_input);
  }

  if (pre) {
    Tensor& output = saved.output.Get(shape, x.dtype());
    FeedForwardForward(sum, options, saved, workspace, output);
    if (drops) AddTo(output, sum);
    see("feed_forward_sum", output);
    return output;
  }
  Tensor& out_sum = saved.feed_forward_sum.Get(shape, x.dtype());
  FeedForwardForward(feed_forward_input, options, saved, workspace, out_sum);
  Tensor& output = saved.output.Get(shape, x.dtype());
  const Zone zone(ZoneKind::kNorm, ZonePass::kForward, layer);
  feed_forward_norm_.Forward(out_sum, drops ? &feed_forward_input : nullptr,
                             saved.feed_forward_norm, output);
  see("feed_forward_sum", out_sum);
  see("feed_forward_norm", output);
  return output;
}

void Block::FeedForwardForward(const Tensor& residual, const ForwardOptions& options, Saved& saved,
                               Workspace& workspace, Tensor& y) const {
  const int layer = config_.attention.layer;
  const Tensor& x = saved.feed_forward_input.tensor();
  const bool drops = Drops(options);
  const Zone zone(ZoneKind::kFeedForward, ZonePass::kForward, layer,
                  feed_forward_.Flops(x.size(0)));
  feed_forward_.Forward(x, drops ? nullptr : &residual,
                        options.for_backward ? &saved.feed_forward : nullptr, workspace, y);
  if (drops) {
    DropRows(y, options, config_.dropout, DropoutPlace(layer, kDropFeedForwardBranch),
             saved.attention.layout, y);
  }
}

const Tensor& Block::BranchGradient(const Tensor& gradient, const Saved& saved, int64_t place,
                                    Workspace& workspace) const {
  const ForwardOptions& options = saved.attention.options;
  if (!Drops(options)) return gradient;
  Tensor& branch = workspace.branch.Get(gradient.shape(), gradient.dtype());
  DropRows(gradient, options, config_.dropout, place, saved.attention.layout, branch);
  return branch;
}

void Block::Backward(Tensor& gradient, Saved& saved, Workspace& workspace) {
  const int layer = config_.attention.layer;
  const bool pre = config_.norm == NormPlacement::kPre;
  const auto norm_backward = [&](LayerNorm& norm, const Tensor& dy, LayerNorm::Saved& norm_saved) {
    const Zone zone(ZoneKind::kNorm, ZonePass::kBackward, layer);
    // pre: the residual's gradient joins behind the norm; post: it passed through it.
    norm.Backward(dy, pre ? &gradient : nullptr, norm_saved, gradient);
  };
  // post: branches add to the residual's gradient; pre: they give that of the norm's output.
  const Update update = pre ? Update::kOverwrite : Update::kAdd;
  Tensor branch_input = gradient;
  if (pre) branch_input = workspace.normed.Get(gradient.shape(), gradient.dtype());

  if (!pre) norm_backward(feed_forward_norm_, gradient, saved.feed_forward_norm);
  {
    const Zone zone(ZoneKind::kFeedForward, ZonePass::kBackward, layer,
                    2 * feed_forward_.Flops(gradient.size(0)));
    const Tensor& dy =
        BranchGradient(gradient, saved, DropoutPlace(layer, kDropFeedForwardBranch), workspace);
    feed_forward_.Backward(dy, update, saved.feed_forward, workspace, branch_input);
  }
  if (pre) {
    norm_backward(feed_forward_norm_, branch_input, saved.feed_forward_norm);
  } else {
    norm_backward(attention_norm_, gradient, saved.attention_norm);
  }
  const Tensor& dy =
      BranchGradient(gradient, saved, DropoutPlace(layer, kDropAttentionBranch), workspace);
  attention_.Backward(dy, saved.attention, workspace, {.update = update, .dx = branch_input});
  if (pre) norm_backward(attention_norm_, branch_input, saved.attention_norm);
}

void Block::PrepareWeights() {
  attention_.PrepareWeights();
  feed_forward_.PrepareWeights();
}

void Block::Collect(std::vector<Parameter*>& parameters) {
  attention_.Collect(parameters);
  attention_norm_.Collect(parameters);
  feed_forward_.Collect(parameters);
  feed_forward_norm_.Collect(parameters);
}

}  // namespace headlight
