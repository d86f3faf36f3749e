#include "headlight/models/text_classifier.h"

#include <atomic>
#include <cmath>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/profiler.h"
#include "headlight/kernels/activation/activation.h"
#include "headlight/nn/block.h"
#include "headlight/nn/dropout_places.h"
#include "headlight/nn/embedding.h"
#include "headlight/nn/pooling.h"

namespace headlight {
namespace {

BlockConfig MakeBlockConfig(const TextClassifierConfig& config, int layer) {
  BlockConfig block;
  block.name = "encoder." + std::to_string(layer);
  block.dim = config.dim;
  block.hidden = config.FeedForwardDim();
  block.activation = config.activation;
  block.norm = config.norm;
  block.norm_epsilon = config.norm_epsilon;
  block.dropout = config.dropout;
  block.precision = config.precision;
  MultiHeadAttentionConfig& attention = block.attention;
  attention.layer = layer;
  attention.heads = config.heads;
  attention.kv_heads = config.KeyValueHeads();
  attention.head_dim = config.HeadDim();
  attention.qk_dim = config.QueryDim();
  attention.projection_bias = config.projection_bias;
  attention.output_projection = config.output_projection;
  attention.output_bias = config.output_bias;
  attention.causal = config.causal;
  attention.window = config.window;
  attention.implementation = config.attention;
  attention.dropout = config.attention_dropout;
  if (config.scale == ScaleKind::kGiven) attention.scale = config.scale_value;
  if (config.scale == ScaleKind::kInverseFourthRoot) {
    attention.scale = std::pow(static_cast<double>(config.QueryDim()), -0.25);
  }
  attention.alibi = config.positions == PositionKind::kAlibi;
  if (config.positions == PositionKind::kRelative) {
    attention.relative_distance = config.RelativeDistance();
    attention.relative_values = config.relative_values;
  }
  return block;
}

}  // namespace

struct TextClassifier::Saved::State {
  const RaggedBatch* batch = nullptr;
  ForwardOptions options;
  std::vector<Block::Saved> blocks;
  LayerNorm::Saved norm;
  Pooling::Saved pooling;
  GrowingTensor embedded, normed, pooled;
  GrowingTensor gradient{MemoryTag::kWorkspace}, pooled_gradient{MemoryTag::kWorkspace};
  Workspace workspace;
};

TextClassifier::Saved::Saved() : state_(std::make_unique<State>()) {}
TextClassifier::Saved::~Saved() = default;
TextClassifier::Saved::Saved(Saved&&) noexcept = default;
TextClassifier::Saved& TextClassifier::Saved::operator=(Saved&&) noexcept = default;

struct TextClassifier::Impl {
  Impl(const TextClassifierConfig& given, DType type, uint64_t seed);

  void Check(const RaggedBatch& batch, const ForwardOptions& options) const;
  bool DropsEmbedding(const ForwardOptions& options) const {
    return options.training && config.dropout > 0;
  }
  void DropEmbedding(const RaggedBatch& batch, const ForwardOptions& options, Tensor& y) const;
  const Tensor& Embed(const RaggedBatch& batch, Saved::State& state) const;
  const Tensor& Encode(const Tensor& embedded, Saved::State& state) const;
  Tensor Classify(const Tensor& encoded, Saved::State& state) const;
  void Collect(std::vector<Parameter*>& parameters);

  TextClassifierConfig config;
  DType dtype;
  Embedding embedding;
  std::vector<Block> blocks;
  LayerNorm norm;  // of pre-norm
  Pooling pooling;
  Linear classifier;
  mutable std::atomic<int64_t> replaced_scores{0};
};

TextClassifier::Impl::Impl(const TextClassifierConfig& given, DType type, uint64_t seed)
    : config(given), dtype(type) {
  ValidateConfig(config);
  embedding = Embedding({.name = "embedding",
                         .vocabulary = config.vocabulary,
                         .max_len = config.max_len,
                         .dim = config.dim,
                         .positions = config.positions,
                         .standard_deviation = config.embedding_std},
                        dtype, seed);
  for (int layer = 0; layer < config.layers; ++layer) {
    blocks.emplace_back(MakeBlockConfig(config, layer), dtype, seed);
  }
  if (config.norm == NormPlacement::kPre) {
    norm = LayerNorm("norm", config.dim, config.norm_epsilon, dtype);
  }
  pooling = Pooling("pooling", config.pooling, config.dim, dtype);
  classifier = Linear(
      {.parts = {{"classifier", config.classes}}, .in = config.dim, .precision = config.precision},
      dtype, seed);
}

void TextClassifier::Impl::Check(const RaggedBatch& batch, const ForwardOptions& options) const {
  CheckBatch(batch, config.vocabulary);
  for (int64_t i = 0; i < batch.batch(); ++i) {
    if (batch.layout().length(i) > config.max_len) {
      throw Error(ErrorKind::kShape, "model: a text may have {} tokens (max-len), found {}",
                  config.max_len, batch.layout().length(i));
    }
  }
  const bool drops = config.dropout > 0 || config.attention_dropout > 0;
  if (options.training && drops && batch.sample_ids.empty() && batch.batch() > 0) {
    throw Error(ErrorKind::kShape, "model: dropout needs sample ids, found none");
  }
}

void TextClassifier::Impl::DropEmbedding(const RaggedBatch& batch, const ForwardOptions& options,
                                         Tensor& y) const {
  Dropout(y,
          {.rate = config.dropout,
           .seed = options.seed,
           .layer = kEmbeddingDropoutPlace,
           .step = options.step,
           .offsets = batch.offsets,
           .sample_ids = batch.sample_ids},
          y);
}

const Tensor& TextClassifier::Impl::Embed(const RaggedBatch& batch, Saved::State& state) const {
  const Zone zone(ZoneKind::kEmbedding, ZonePass::kForward);
  Tensor& embedded = state.embedded.Get({batch.tokens(), config.dim}, dtype);
  embedding.Forward(batch.ids, batch.layout(), embedded);
  if (DropsEmbedding(state.options)) DropEmbedding(batch, state.options, embedded);
  return embedded;
}

const Tensor& TextClassifier::Impl::Encode(const Tensor& embedded, Saved::State& state) const {
  const bool keep = state.options.for_backward;
  if (state.blocks.size() < (keep ? blocks.size() : 1)) state.blocks.resize(blocks.size());
  const RaggedLayout layout = state.batch->layout();
  const Tensor* x = &embedded;
  for (size_t i = 0; i < blocks.size(); ++i) {
    Block::Saved& saved = state.blocks[keep ? i : 0];
    x = &blocks[i].Forward(*x, layout, state.options, saved, state.workspace);
    replaced_scores.fetch_add(blocks[i].replaced_scores(saved), std::memory_order_relaxed);
  }
  if (config.norm == NormPlacement::kPost) return *x;
  const Zone zone(ZoneKind::kNorm, ZonePass::kForward);
  Tensor input = *x;
  Tensor& normed = state.normed.Get(x->shape(), dtype);
  norm.Forward(input, nullptr, state.norm, normed);
  return normed;
}

Tensor TextClassifier::Impl::Classify(const Tensor& encoded, Saved::State& state) const {
  const RaggedLayout layout = state.batch->layout();
  Tensor& pooled = state.pooled.Get({layout.batch(), config.dim}, dtype);
  {
    const Zone zone(ZoneKind::kPooling, ZonePass::kForward);
    pooling.Forward(encoded, layout, state.pooling, pooled);
  }
  const Zone zone(ZoneKind::kClassifier, ZonePass::kForward, -1, classifier.Flops(layout.batch()));
  Tensor logits =
      Tensor::Uninitialized({layout.batch(), config.classes}, dtype, MemoryTag::kActivations);
  classifier.Forward(pooled, {}, logits);
  return logits;
}

void TextClassifier::Impl::Collect(std::vector<Parameter*>& parameters) {
  embedding.Collect(parameters);
  for (Block& block : blocks) block.Collect(parameters);
  if (config.norm == NormPlacement::kPre) norm.Collect(parameters);
  pooling.Collect(parameters);
  classifier.Collect(parameters);
}

TextClassifier::TextClassifier(const TextClassifierConfig& config, DType dtype, uint64_t seed)
    : impl_(std::make_unique<Impl>(config, dtype, seed)) {}
TextClassifier::~TextClassifier() = default;
TextClassifier::TextClassifier(TextClassifier&&) noexcept = default;
TextClassifier& TextClassifier::operator=(TextClassifier&&) noexcept = default;

const TextClassifierConfig& TextClassifier::config() const { return impl_->config; }
DType TextClassifier::dtype() const { return impl_->dtype; }

Tensor TextClassifier::Forward(const RaggedBatch& batch, const ForwardOptions& options,
                               Saved* saved) const {
  impl_->Check(batch, options);
  Saved own;
  Saved::State& state = saved != nullptr ? saved->state() : own.state();
  state.batch = &batch;
  state.options = options;
  if (saved == nullptr) state.options.for_backward = false;
  const auto see = [&](const char* name, const Tensor& values) {
    if (options.probe != nullptr) options.probe->See(-1, name, values);
  };
  const Tensor& embedded = impl_->Embed(batch, state);
  see("embedding", embedded);
  const Tensor& encoded = impl_->Encode(embedded, state);
  if (impl_->config.norm == NormPlacement::kPre) see("norm", encoded);
  Tensor logits = impl_->Classify(encoded, state);
  see("pooled", state.pooled.tensor());
  see("logits", logits);
  return logits;
}

void TextClassifier::Backward(const Tensor& logits_gradient, Saved& saved) {
  Saved::State& state = saved.state();
  Impl& model = *impl_;
  if (state.batch == nullptr || !state.options.for_backward) {
    throw Error(ErrorKind::kUsage, "model: Backward needs a Forward for backward before it");
  }
  const RaggedBatch& batch = *state.batch;
  const RaggedLayout layout = batch.layout();
  Tensor& pooled = state.pooled_gradient.Get({layout.batch(), model.config.dim}, model.dtype);
  {
    const Zone zone(ZoneKind::kClassifier, ZonePass::kBackward, -1,
                    2 * model.classifier.Flops(layout.batch()));
    model.classifier.BackwardParameters(state.pooled.tensor(), logits_gradient);
    model.classifier.BackwardInput(logits_gradient, {}, pooled);
  }
  // One buffer carries the gradient through all layers.
  Tensor& gradient = state.gradient.Get({layout.tokens(), model.config.dim}, model.dtype);
  {
    const Zone zone(ZoneKind::kPooling, ZonePass::kBackward);
    model.pooling.Backward(pooled, layout, state.pooling, gradient);
  }
  if (model.config.norm == NormPlacement::kPre) {
    const Zone zone(ZoneKind::kNorm, ZonePass::kBackward);
    model.norm.Backward(gradient, nullptr, state.norm, gradient);
  }
  for (size_t i = model.blocks.size(); i-- > 0;) {
    model.blocks[i].Backward(gradient, state.blocks[i], state.workspace);
  }
  const Zone zone(ZoneKind::kEmbedding, ZonePass::kBackward);
  if (model.DropsEmbedding(state.options)) model.DropEmbedding(batch, state.options, gradient);
  model.embedding.Backward(batch.ids, layout, gradient);
}

std::vector<Parameter*> TextClassifier::Parameters() {
  std::vector<Parameter*> parameters;
  impl_->Collect(parameters);
  return parameters;
}

std::vector<const Parameter*> TextClassifier::Parameters() const {
  std::vector<Parameter*> parameters;
  impl_->Collect(parameters);
  return {parameters.begin(), parameters.end()};
}

void TextClassifier::PrepareWeights() {
  for (Block& block : impl_->blocks) block.PrepareWeights();
  impl_->classifier.PrepareWeights();
}

int64_t TextClassifier::NonfiniteScoresReplaced() const {
  return impl_->replaced_scores.load(std::memory_order_relaxed);
}

}  // namespace headlight
