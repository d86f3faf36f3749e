#include "headlight/nn/multi_head_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/profiler.h"
#include "headlight/kernels/attention/attention.h"
#include "headlight/nn/dropout_places.h"
#include "headlight/nn/init.h"

namespace headlight {
namespace {

Parameter MakeRelativeTable(const std::string& name, const Shape& shape, DType dtype,
                            uint64_t seed) {
  Parameter table = MakeParameter(name, shape, dtype, true);
  // Scores then start with a deviation of about 1 / sqrt(width) from positions.
  InitNormal(table, 1 / std::sqrt(static_cast<double>(shape[2])), seed);
  return table;
}

// Features [begin, begin + heads * width) of a [tokens, features] tensor as [tokens, heads, width].
Tensor Heads(const Tensor& features, int64_t begin, int64_t heads, int64_t width) {
  return features.Slice(1, begin, begin + heads * width).SplitAxis(1, heads);
}

void AskProbe(const Probe& probe, const MultiHeadAttentionConfig& config, int64_t batch,
              AttentionOutputs& outputs) {
  if (!probe.WantsLayer(config.layer)) return;
  std::vector<int64_t> heads;
  for (int64_t head = 0; head < config.heads; ++head) {
    if (probe.WantsHead(static_cast<int>(head))) heads.push_back(head);
  }
  if (heads.empty()) return;
  if (probe.want_weights) {
    for (int64_t sequence = 0; sequence < batch; ++sequence) {
      for (const int64_t head : heads) outputs.weights.push_back({sequence, head, {}});
    }
  }
  if (probe.want_statistics) {
    outputs.statistics.emplace();
    outputs.statistics->heads = heads;
    outputs.statistics->key_set = probe.key_set;
  }
}

void AnswerProbe(int layer, AttentionOutputs& outputs, Probe& probe) {
  for (HeadWeights& seen : outputs.weights) {
    probe.weights.push_back(
        {layer, static_cast<int>(seen.head), seen.sequence, std::move(seen.weights)});
  }
  if (!outputs.statistics) return;
  HeadStatistics& seen = *outputs.statistics;
  ProbedStatistics answer;
  answer.layer = layer;
  for (const int64_t head : seen.heads) answer.heads.push_back(static_cast<int>(head));
  answer.entropy = std::move(seen.entropy);
  answer.distance = std::move(seen.distance);
  answer.absolute_distance = std::move(seen.absolute_distance);
  answer.largest_weight = std::move(seen.largest_weight);
  answer.largest_key = std::move(seen.largest_key);
  answer.set_mass = std::move(seen.set_mass);
  probe.statistics.push_back(std::move(answer));
}

void AddTo(Tensor& y, const Tensor& x) {
  DispatchFloat(y.dtype(), [&]<typename T>() {
    const View<T> to = y.view<T>();
    const View<const T> from = x.view<T>();
    for (int64_t i = 0; i < y.size(0); ++i) {
      for (int64_t j = 0; j < y.size(1); ++j) to(i, j) += from(i, j);
    }
  });
}

MultiHeadAttentionConfig Resolved(MultiHeadAttentionConfig config) {
  if (config.heads < 1) {
    throw Error(ErrorKind::kUsage, "attention: heads must be at least 1, found {}", config.heads);
  }
  if (config.head_dim == 0) {
    if (config.dim % config.heads != 0) {
      throw Error(ErrorKind::kUsage,
                  "attention: heads must divide dim {}: {} does not; these do: {} (or give a head "
                  "dim on its own)",
                  config.dim, config.heads, HeadCountsThatDivide(config.dim));
    }
    config.head_dim = config.dim / config.heads;
  }
  if (config.qk_dim == 0) config.qk_dim = config.head_dim;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  CheckKeyValueHeads("attention", config.heads, config.kv_heads);
  if (!config.output_projection && config.heads * config.head_dim != config.dim) {
    throw Error(ErrorKind::kUsage,
                "attention: without an output projection heads x head dim must be dim {}, found {} "
                "x {} = {}",
                config.dim, config.heads, config.head_dim, config.heads * config.head_dim);
  }
  return config;
}

}  // namespace

struct MultiHeadAttention::Pass {
  AttentionProblem problem;
  AttentionInputs inputs;
};

std::string HeadCountsThatDivide(int64_t dim) {
  std::vector<int64_t> divisors;
  for (int64_t count = 1; count <= dim; ++count) {
    if (dim % count == 0) divisors.push_back(count);
  }
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t i = 0; i < divisors.size(); ++i) {
    if (i + 1 == kMost && divisors.size() > kMost) {
      text += ", ...";
      i = divisors.size() - 1;
    }
    text += (i == 0 ? "" : ", ") + std::to_string(divisors[i]);
  }
  return text;
}

double KeptPairs(const RaggedLayout& queries, const RaggedLayout& keys, bool causal,
                 const std::optional<AttentionWindow>& window) {
  double pairs = 0;
  for (int64_t s = 0; s < keys.batch(); ++s) {
    const int64_t rows = queries.length(s), columns = keys.length(s);
    if (!causal && !window) {
      pairs += static_cast<double>(rows) * static_cast<double>(columns);
      continue;
    }
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t place = i + (causal ? columns - rows : 0);
      const int64_t right = causal ? 0 : window->right;
      const int64_t begin = window ? std::max<int64_t>(place - window->left, 0) : 0;
      const int64_t end = std::min(place + right + 1, columns);
      pairs += static_cast<double>(std::max<int64_t>(end - begin, 0));
    }
  }
  return pairs;
}

void CheckKeyValueHeads(const char* operation, int64_t heads, int64_t kv_heads) {
  if (kv_heads >= 1 && heads % kv_heads == 0) return;
  throw Error(ErrorKind::kUsage, "{}: kv-heads must divide heads {}: {} does not; these do: {}",
              operation, heads, kv_heads, HeadCountsThatDivide(heads));
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionConfig& config, DType dtype,
                                       uint64_t seed)
    : config_(Resolved(config)) {
  const std::string &name = config_.name, query = name + ".query", key = name + ".key",
                    value = name + ".value";
  LinearConfig projection{.parts = {{query, queries()}, {key, keys()}, {value, values()}},
                          .in = config_.dim,
                          .bias = config_.projection_bias,
                          .precision = config_.precision};
  if (cross()) {
    projection.parts = {{query, queries()}};
    key_value_ = Linear({.parts = {{key, keys()}, {value, values()}},
                         .in = config_.memory_dim,
                         .bias = config_.projection_bias,
                         .precision = config_.precision},
                        dtype, seed);
  }
  projection_ = Linear(projection, dtype, seed);
  if (config_.output_projection) {
    output_ = Linear({.parts = {{name + ".output", config_.dim}},
                      .in = inner(),
                      .bias = config_.output_bias,
                      .precision = config_.precision},
                     dtype, seed);
  }
  if (config_.relative_distance > 0) {
    const int64_t rows = 2 * config_.relative_distance - 1;
    relative_key_ = MakeRelativeTable(name + ".relative_key", {config_.heads, rows, config_.qk_dim},
                                      dtype, seed);
    if (config_.relative_values) {
      relative_value_ = MakeRelativeTable(name + ".relative_value",
                                          {config_.heads, rows, config_.head_dim}, dtype, seed);
    }
  }
}

double MultiHeadAttention::Flops(const Saved& saved, double query_products,
                                 double value_products) const {
  const RaggedLayout& keys = cross() ? saved.memory_layout : saved.layout;
  const double pairs = KeptPairs(saved.layout, keys, config_.causal, config_.window);
  return 2 * pairs *
         (query_products * static_cast<double>(queries()) +
          value_products * static_cast<double>(inner()));
}

MultiHeadAttention::Pass MultiHeadAttention::MakePass(Saved& saved) const {
  Pass pass;
  AttentionProblem& problem = pass.problem;
  const RaggedLayout& keys = cross() ? saved.memory_layout : saved.layout;
  problem.query_offsets.assign(saved.layout.offsets.begin(), saved.layout.offsets.end());
  problem.key_offsets.assign(keys.offsets.begin(), keys.offsets.end());
  problem.heads = config_.heads;
  problem.kv_heads = config_.kv_heads;
  problem.head_dim = config_.qk_dim;
  problem.value_dim = config_.head_dim;
  problem.dtype = saved.projected.tensor().dtype();
  problem.precision = config_.precision;
  problem.scale = config_.scale;
  if (config_.causal) problem.mask.causal = Mask::Causal::kAlignedToEnd;
  if (config_.window) problem.mask.window = {config_.window->left, config_.window->right};
  problem.mask.key_lengths.assign(saved.key_lengths.begin(), saved.key_lengths.end());
  problem.mask.keep = saved.keep;
  if (config_.alibi) problem.bias.alibi_slopes = AlibiSlopes(config_.heads);
  problem.relative.keys = relative_key_.value;
  problem.relative.values = relative_value_.value;
  const ForwardOptions& options = saved.options;
  if (options.training && config_.dropout > 0) {
    problem.dropout.rate = config_.dropout;
    problem.dropout.seed = options.seed;
    problem.dropout.layer = static_cast<uint32_t>(DropoutPlace(config_.layer, kDropWeights));
    problem.dropout.step = static_cast<uint64_t>(options.step);
    problem.dropout.sample_ids.assign(saved.layout.sample_ids.begin(),
                                      saved.layout.sample_ids.end());
  }
  if (options.nonfinite == NonfinitePolicy::kZero) {
    problem.nonfinite = NonFiniteScores::kReplaceByZero;
  }
  const Tensor& projected = saved.projected.tensor();
  const Tensor& memory = cross() ? saved.key_value.tensor() : projected;
  pass.inputs = {Queries(projected), Keys(memory), Values(memory)};
  return pass;
}

Tensor MultiHeadAttention::Queries(const Tensor& projected) const {
  return Heads(projected, 0, config_.heads, config_.qk_dim);
}
Tensor MultiHeadAttention::Keys(const Tensor& memory) const {
  return Heads(memory, cross() ? 0 : queries(), config_.kv_heads, config_.qk_dim);
}
Tensor MultiHeadAttention::Values(const Tensor& memory) const {
  return Heads(memory, (cross() ? 0 : queries()) + keys(), config_.kv_heads, config_.head_dim);
}

void MultiHeadAttention::Forward(const Input& input, const ForwardOptions& options,
                                 const Tensor* residual, Saved& saved, Tensor& y) const {
  saved.input = input.x;
  saved.layout = input.layout;
  saved.key_lengths = input.key_lengths;
  saved.keep = input.keep;
  saved.options = options;
  const int64_t tokens = input.x.size(0);
  const DType dtype = input.x.dtype();
  {
    const Zone zone(ZoneKind::kQkvProjection, ZonePass::kForward, config_.layer,
                    projection_.Flops(tokens));
    projection_.Forward(input.x, {}, saved.projected.Get({tokens, projection_.out()}, dtype));
    if (cross()) {
      saved.memory = *input.memory;
      saved.memory_layout = input.memory_layout;
      key_value_.Forward(saved.memory, {},
                         saved.key_value.Get({saved.memory.size(0), keys() + values()}, dtype));
    }
  }
  Pass pass = MakePass(saved);
  AttentionOutputs outputs;
  outputs.out =
      Heads(saved.attention.Get({tokens, inner()}, dtype), 0, config_.heads, config_.head_dim);
  {
    const Zone zone(ZoneKind::kAttention, ZonePass::kForward, config_.layer, Flops(saved, 1, 1));
    if (options.probe != nullptr) {
      options.probe->See(config_.layer, "query", pass.inputs.query);
      options.probe->See(config_.layer, "key", pass.inputs.key);
      options.probe->See(config_.layer, "value", pass.inputs.value);
      AskProbe(*options.probe, config_, input.layout.batch(), outputs);
    }
    saved.pass.Forward(config_.implementation, pass.problem, pass.inputs, outputs);
    saved.replaced_scores = outputs.replaced_scores;
    if (options.probe != nullptr) {
      AnswerProbe(config_.layer, outputs, *options.probe);
      options.probe->See(config_.layer, "attention", outputs.out);
    }
  }
  const Zone zone(ZoneKind::kOutputProjection, ZonePass::kForward, config_.layer,
                  output_.empty() ? 0 : output_.Flops(tokens));
  if (!output_.empty()) {
    output_.Forward(saved.attention.tensor(), {.residual = residual}, y);
    return;
  }
  y.CopyFrom(saved.attention.tensor());
  if (residual != nullptr) AddTo(y, *residual);
}

void MultiHeadAttention::Backward(const Tensor& dy, Saved& saved, Workspace& workspace,
                                  const Gradients& gradients) {
  const int64_t tokens = dy.size(0);
  const DType dtype = dy.dtype();
  Tensor dattention = dy;
  if (!output_.empty()) {
    const Zone zone(ZoneKind::kOutputProjection, ZonePass::kBackward, config_.layer,
                    2 * output_.Flops(tokens));
    dattention = workspace.attention.Get({tokens, inner()}, dtype);
    output_.BackwardParameters(saved.attention.tensor(), dy);
    output_.BackwardInput(dy, {}, dattention);
  }
  const Tensor& dprojected = workspace.projected.Get({tokens, projection_.out()}, dtype);
  Tensor dmemory = dprojected;
  if (cross()) dmemory = workspace.memory.Get({saved.memory.size(0), keys() + values()}, dtype);
  {
    // Those of queries, keys and values; fused, the scores are computed again.
    const bool again = config_.implementation == AttentionImplementation::kFused;
    const Zone zone(ZoneKind::kAttention, ZonePass::kBackward, config_.layer,
                    Flops(saved, again ? 3 : 2, 2));
    const Pass pass = MakePass(saved);
    AttentionGradients attention{Queries(dprojected), Keys(dmemory), Values(dmemory),
                                 relative_key_.gradient, relative_value_.gradient};
    const auto join = [&](const Tensor& features) {
      return Heads(features, 0, config_.heads, config_.head_dim);
    };
    saved.pass.Backward(pass.problem, pass.inputs, join(saved.attention.tensor()), join(dattention),
                        attention);
  }
  const Zone zone(ZoneKind::kQkvProjection, ZonePass::kBackward, config_.layer,
                  2 * projection_.Flops(tokens));
  projection_.BackwardParameters(saved.input, dprojected);
  projection_.BackwardInput(dprojected, {.update = gradients.update}, gradients.dx);
  if (!cross()) return;
  key_value_.BackwardParameters(saved.memory, dmemory);
  if (gradients.dmemory != nullptr) key_value_.BackwardInput(dmemory, {}, *gradients.dmemory);
}

void MultiHeadAttention::PrepareWeights() {
  projection_.PrepareWeights();
  if (cross()) key_value_.PrepareWeights();
  if (!output_.empty()) output_.PrepareWeights();
}

void MultiHeadAttention::Collect(std::vector<Parameter*>& parameters) {
  projection_.Collect(parameters);
  key_value_.Collect(parameters);
  for (Parameter* table : {&relative_key_, &relative_value_}) {
    if (!table->value.empty()) parameters.push_back(table);
  }
  output_.Collect(parameters);
}

}  // namespace headlight
