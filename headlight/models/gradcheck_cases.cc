// The cases of gradcheck: small layers in f64 on ragged sequences with an empty one among them.
#include <cmath>
#include <memory>
#include <utility>

#include "headlight/base/random.h"
#include "headlight/kernels/loss/cross_entropy.h"
#include "headlight/models/gradcheck.h"
#include "headlight/models/text_classifier.h"
#include "headlight/nn/block.h"
#include "headlight/nn/embedding.h"
#include "headlight/nn/init.h"
#include "headlight/nn/pooling.h"

namespace headlight {
namespace {

constexpr int64_t kDim = 6;

struct Sequences {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sample_ids;
  RaggedLayout layout() const { return {offsets, sample_ids}; }
};

const Sequences& Queries() {
  static const Sequences kSequences{{0, 3, 3, 8, 9}, {7, 3, 11, 4}};
  return kSequences;
}
const Sequences& Keys() {
  static const Sequences kSequences{{0, 2, 4, 8, 13}, {7, 3, 11, 4}};
  return kSequences;
}

Tensor RandomTensor(const Shape& shape, uint64_t seed, const std::string& name) {
  Parameter drawn{name, Tensor::Zeros(shape, DType::kF64, MemoryTag::kOther), {}, false};
  InitNormal(drawn, 1, seed);
  return drawn.value;
}

double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

// Moves parameters off their initial values, so that biases of 0 and norms of 1 hide nothing.
void Disturb(const std::vector<Parameter*>& parameters, uint64_t seed) {
  for (Parameter* parameter : parameters) {
    RandomStream random(seed, StreamOfName(parameter->name + " disturbed"));
    double* values = parameter->value.data<double>();
    for (int64_t i = 0; i < parameter->value.elements(); ++i) values[i] += 0.3 * random.Normal();
  }
}

// What layers with [tokens, dim] in and out share; the loss is the sum of y times fixed weights.
struct LayerState {
  LayerState(uint64_t seed, int64_t tokens, int64_t in, int64_t out)
      : x(RandomTensor({tokens, in}, seed, "x")),
        dx(Tensor::Zeros({tokens, in}, DType::kF64, MemoryTag::kOther)),
        y(Tensor::Zeros({tokens, out}, DType::kF64, MemoryTag::kOther)),
        dy(RandomTensor({tokens, out}, seed, "dy")) {}

  GradCheckInput Input() const { return {"x", x, dx}; }

  Tensor x, dx, y, dy;
  Workspace workspace;
};

// forward(state) computes state.y; backward(state) follows it and uses state.dy and state.dx.
template <typename State, typename Forward, typename Backward>
GradCheckCase MakeCase(std::string layer, std::shared_ptr<State> state, Forward forward,
                       Backward backward) {
  GradCheckCase check;
  check.layer = std::move(layer);
  check.loss = [state, forward] {
    forward(*state);
    return Dot(state->y, state->dy);
  };
  check.backward = [state, forward, backward] {
    forward(*state);
    backward(*state);
  };
  check.inputs = {state->Input()};
  state->layer.Collect(check.parameters);
  return check;
}

void AddLinear(uint64_t seed, std::vector<GradCheckCase>& cases) {
  struct State : LayerState {
    using LayerState::LayerState;
    Linear layer;
  };
  for (const bool bias : {true, false}) {
    auto state = std::make_shared<State>(seed, 5, 4, 6);
    state->layer =
        Linear({.parts = {{"a", 2}, {"b", 4}}, .in = 4, .bias = bias}, DType::kF64, seed);
    cases.push_back(MakeCase(
        bias ? "linear: two parts" : "linear: no bias", state,
        [](State& s) {
          s.layer.PrepareWeights();
          s.layer.Forward(s.x, {}, s.y);
        },
        [](State& s) {
          s.layer.BackwardParameters(s.x, s.dy);
          s.layer.BackwardInput(s.dy, {}, s.dx);
        }));
  }
}

void AddLayerNorm(uint64_t seed, std::vector<GradCheckCase>& cases) {
  struct State : LayerState {
    using LayerState::LayerState;
    LayerNorm layer;
    LayerNorm::Saved saved;
    Tensor residual, sum;
  };
  for (const bool residual : {false, true}) {
    auto state = std::make_shared<State>(seed, 5, kDim, kDim);
    state->layer = LayerNorm("norm", kDim, 1e-5, DType::kF64);
    state->residual = RandomTensor({5, kDim}, seed, "residual");
    GradCheckCase check = MakeCase(
        residual ? "layer_norm: with residual" : "layer_norm", state,
        [residual](State& s) {
          s.sum = s.x.Clone(MemoryTag::kOther);
          s.layer.Forward(s.sum, residual ? &s.residual : nullptr, s.saved, s.y);
        },
        [](State& s) { s.layer.Backward(s.dy, nullptr, s.saved, s.dx); });
    // The sum's gradient is that of both.
    if (residual) check.inputs.push_back({"residual", state->residual, state->dx});
    Disturb(check.parameters, seed);
    cases.push_back(std::move(check));
  }
}

void AddFeedForward(uint64_t seed, std::vector<GradCheckCase>& cases) {
  struct State : LayerState {
    using LayerState::LayerState;
    FeedForward layer;
    FeedForward::Saved saved;
  };
  for (const HiddenActivation activation : {HiddenActivation::kRelu, HiddenActivation::kGelu}) {
    auto state = std::make_shared<State>(seed, 7, kDim, kDim);
    state->layer =
        FeedForward({.name = "feed_forward", .dim = kDim, .hidden = 11, .activation = activation},
                    DType::kF64, seed);
    GradCheckCase check = MakeCase(
        std::string("feed_forward: ") + Name(activation), state,
        [](State& s) {
          s.layer.PrepareWeights();
          s.layer.Forward(s.x, &s.x, &s.saved, s.workspace, s.y);
        },
        [](State& s) {
          // The residual's gradient is dy itself; the branch adds to it.
          s.dx.CopyFrom(s.dy);
          s.layer.Backward(s.dy, Update::kAdd, s.saved, s.workspace, s.dx);
        });
    Disturb(check.parameters, seed);
    cases.push_back(std::move(check));
  }
}

void AddEmbedding(uint64_t seed, std::vector<GradCheckCase>& cases) {
  struct State : LayerState {
    using LayerState::LayerState;
    Embedding layer;
    RaggedBatch batch;
  };
  for (const PositionKind positions :
       {PositionKind::kNone, PositionKind::kLearned, PositionKind::kSinusoidal}) {
    auto state = std::make_shared<State>(seed, 6, 1, kDim);
    state->batch = MakeRaggedBatch({{1, 4, 1}, {}, {0, 4, 2}});
    state->layer = Embedding(
        {.name = "embedding", .vocabulary = 5, .max_len = 4, .dim = kDim, .positions = positions},
        DType::kF64, seed);
    GradCheckCase check = MakeCase(
        std::string("embedding: positions ") + Name(positions), state,
        [](State& s) { s.layer.Forward(s.batch.ids, s.batch.layout(), s.y); },
        [](State& s) { s.layer.Backward(s.batch.ids, s.batch.layout(), s.dy); });
    check.inputs.clear();
    cases.push_back(std::move(check));
  }
}

void AddPooling(uint64_t seed, std::vector<GradCheckCase>& cases) {
  struct State : LayerState {
    State(uint64_t seed, int64_t tokens, int64_t batch) : LayerState(seed, tokens, kDim, kDim) {
      y = Tensor::Zeros({batch, kDim}, DType::kF64, MemoryTag::kOther);
      dy = RandomTensor({batch, kDim}, seed, "dy");
    }
    Pooling layer;
    Pooling::Saved saved;
  };
  for (const PoolingChoice choice : {PoolingChoice::kMean, PoolingChoice::kFirst,
                                     PoolingChoice::kMax, PoolingChoice::kAttention}) {
    auto state =
        std::make_shared<State>(seed, Queries().layout().tokens(), Queries().layout().batch());
    state->layer = Pooling("pooling", choice, kDim, DType::kF64);
    GradCheckCase check = MakeCase(
        std::string("pooling: ") + Name(choice), state,
        [](State& s) { s.layer.Forward(s.x, Queries().layout(), s.saved, s.y); },
        [](State& s) { s.layer.Backward(s.dy, Queries().layout(), s.saved, s.dx); });
    Disturb(check.parameters, seed);
    cases.push_back(std::move(check));
  }
}

struct AttentionCase {
  std::string name;
  MultiHeadAttentionConfig config;
  std::vector<int64_t> key_lengths = {};
  bool keep = false;
};

std::vector<AttentionCase> AttentionCases() {
  const MultiHeadAttentionConfig base{.name = "attention", .layer = 2, .dim = kDim, .heads = 3};
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, auto change) {
    AttentionCase added{name, base};
    change(added);
    cases.push_back(std::move(added));
  };
  add("3 heads", [](AttentionCase&) {});
  add("1 head", [](AttentionCase& c) { c.config.heads = 1; });
  add("no biases",
      [](AttentionCase& c) { c.config.projection_bias = c.config.output_bias = false; });
  add("no output projection", [](AttentionCase& c) { c.config.output_projection = false; });
  add("head_dim 5", [](AttentionCase& c) { c.config.head_dim = 5; });
  add("scale given", [](AttentionCase& c) { c.config.scale = 1.3; });
  add("causal", [](AttentionCase& c) { c.config.causal = true; });
  add("key lengths", [](AttentionCase& c) { c.key_lengths = {2, 0, 4, 0}; });
  add("keep matrix", [](AttentionCase& c) { c.keep = true; });
  add("dropout", [](AttentionCase& c) { c.config.dropout = 0.4; });
  add("relative keys", [](AttentionCase& c) { c.config.relative_distance = 3; });
  add("relative keys and values", [](AttentionCase& c) {
    c.config.relative_distance = 4;
    c.config.relative_values = true;
  });
  add("ALiBi", [](AttentionCase& c) { c.config.alibi = true; });
  add("cross", [](AttentionCase& c) { c.config.memory_dim = 4; });
  add("2 key/value heads of 4", [](AttentionCase& c) {
    c.config.heads = 4;
    c.config.head_dim = 3;
    c.config.kv_heads = 2;
  });
  add("1 key/value head, relative", [](AttentionCase& c) {
    c.config.kv_heads = 1;
    c.config.relative_values = true;
    c.config.relative_distance = 3;
  });
  add("rank 4 scores, relative", [](AttentionCase& c) {
    c.config.qk_dim = 4;
    c.config.relative_values = true;
    c.config.relative_distance = 3;
  });
  add("window", [](AttentionCase& c) { c.config.window = {1, 2}; });
  add("window, causal", [](AttentionCase& c) {
    c.config.window = {1, 1};
    c.config.causal = true;
  });
  add("cross, causal, relative, dropout, keep", [](AttentionCase& c) {
    c.config.memory_dim = 4;
    c.config.causal = c.config.relative_values = true;
    c.config.relative_distance = 3;
    c.config.dropout = 0.3;
    c.keep = true;
  });
  add("cross, 1 key/value head, rank 5, window, dropout", [](AttentionCase& c) {
    c.config.memory_dim = 4;
    c.config.kv_heads = 1;
    c.config.qk_dim = 5;
    c.config.window = {2, 1};
    c.config.dropout = 0.3;
  });
  // Everything again, by whole matrices.
  const size_t fused = cases.size();
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kNaive, AttentionImplementation::kPerHead}) {
    for (size_t i = 0; i < fused; ++i) {
      AttentionCase again = cases[i];
      again.config.implementation = implementation;
      again.name += std::string(", ") + Name(implementation);
      cases.push_back(std::move(again));
    }
  }
  return cases;
}

struct AttentionState : LayerState {
  AttentionState(const AttentionCase& given, uint64_t seed)
      : LayerState(seed, Queries().layout().tokens(), kDim, kDim),
        chosen(given),
        layer(given.config, DType::kF64, seed) {
    options.training = true;
    options.seed = seed;
    options.step = 5;
    if (given.config.memory_dim > 0) {
      const Shape shape{Keys().layout().tokens(), given.config.memory_dim};
      memory = RandomTensor(shape, seed, "memory");
      dmemory = Tensor::Zeros(shape, DType::kF64, MemoryTag::kOther);
    }
    // [batch, heads, 5, 5], two of three kept.
    RandomStream random(seed, 9);
    kept.resize(static_cast<size_t>(4 * given.config.heads * 5 * 5));
    for (uint8_t& keep : kept) keep = random.Below(3) > 0 ? 1 : 0;
  }

  MultiHeadAttention::Input Input() {
    MultiHeadAttention::Input input{.x = x, .layout = Queries().layout()};
    if (!memory.empty()) {
      input.memory = &memory;
      input.memory_layout = Keys().layout();
    }
    input.key_lengths = chosen.key_lengths;
    if (chosen.keep) {
      const Shape shape{4, chosen.config.heads, 5, 5};
      input.keep = {kept.data(), shape, ContiguousStrides(shape)};
    }
    return input;
  }

  AttentionCase chosen;
  MultiHeadAttention layer;
  MultiHeadAttention::Saved saved;
  ForwardOptions options;
  Tensor memory, dmemory;
  std::vector<uint8_t> kept;
};

void AddAttention(uint64_t seed, std::vector<GradCheckCase>& cases) {
  for (const AttentionCase& chosen : AttentionCases()) {
    auto state = std::make_shared<AttentionState>(chosen, seed);
    GradCheckCase check;
    check.layer = "multi_head_attention: " + chosen.name;
    const auto forward = [](AttentionState& s) {
      s.layer.PrepareWeights();
      s.layer.Forward(s.Input(), s.options, nullptr, s.saved, s.y);
    };
    check.loss = [state, forward] {
      forward(*state);
      return Dot(state->y, state->dy);
    };
    check.backward = [state, forward] {
      AttentionState& s = *state;
      forward(s);
      s.layer.Backward(s.dy, s.saved, s.workspace,
                       {.dx = s.dx, .dmemory = s.memory.empty() ? nullptr : &s.dmemory});
    };
    state->layer.Collect(check.parameters);
    check.inputs = {{"x", state->x, state->dx}};
    if (!state->memory.empty()) check.inputs.push_back({"memory", state->memory, state->dmemory});
    Disturb(check.parameters, seed);
    cases.push_back(std::move(check));
  }
}

void AddBlock(uint64_t seed, std::vector<GradCheckCase>& cases) {
  struct State : LayerState {
    using LayerState::LayerState;
    Block layer;
    Block::Saved saved;
    ForwardOptions options;
  };
  for (const NormPlacement norm : {NormPlacement::kPost, NormPlacement::kPre}) {
    for (const double dropout : {0.0, 0.3}) {
      auto state = std::make_shared<State>(seed, Queries().layout().tokens(), kDim, kDim);
      BlockConfig config{
          .name = "block", .attention = {.layer = 1, .heads = 2}, .dim = kDim, .hidden = 9};
      config.norm = norm;
      config.dropout = dropout;
      state->layer = Block(config, DType::kF64, seed);
      state->options.training = true;
      GradCheckCase check = MakeCase(
          std::string("block: ") + Name(norm) + (dropout > 0 ? ", dropout" : ""), state,
          [](State& s) {
            s.layer.PrepareWeights();
            s.y = s.layer.Forward(s.x, Queries().layout(), s.options, s.saved, s.workspace);
          },
          [](State& s) {
            s.dx.CopyFrom(s.dy);
            s.layer.Backward(s.dx, s.saved, s.workspace);
          });
      Disturb(check.parameters, seed);
      cases.push_back(std::move(check));
    }
  }
}

struct ModelState {
  ModelState(const TextClassifierConfig& config, uint64_t seed)
      : model(config, DType::kF64, seed),
        batch(MakeRaggedBatch({{1, 5, 2, 1}, {}, {3, 8, 0, 6, 7}, {4}})) {
    batch.labels = {0, 2, 1, 2};
    options.training = true;
    options.step = 3;
    losses = Tensor::Zeros({batch.batch()}, DType::kF64, MemoryTag::kOther);
  }

  double Loss() {
    model.PrepareWeights();
    logits = model.Forward(batch, options, &saved);
    return CrossEntropyForward(logits, batch.labels, {.label_smoothing = 0.1}, losses);
  }
  void Backward() {
    Loss();
    CrossEntropyBackward(logits, batch.labels, {.label_smoothing = 0.1},
                         1.0 / static_cast<double>(batch.batch()), logits);
    model.Backward(logits, saved);
  }

  TextClassifier model;
  RaggedBatch batch;
  ForwardOptions options;
  TextClassifier::Saved saved;
  Tensor logits, losses;
};

void AddModel(const std::string& name, uint64_t seed, std::vector<GradCheckCase>& cases,
              const std::function<void(TextClassifierConfig&)>& change) {
  TextClassifierConfig config;
  config.vocabulary = 9;
  config.classes = 3;
  config.max_len = 5;
  config.dim = 6;
  config.heads = 2;
  config.feed_forward = 8;
  config.dropout = config.attention_dropout = 0;
  change(config);
  auto state = std::make_shared<ModelState>(config, seed);
  GradCheckCase check;
  check.layer = "text_classifier: " + name;
  check.loss = [state] { return state->Loss(); };
  check.backward = [state] { state->Backward(); };
  check.parameters = state->model.Parameters();
  Disturb(check.parameters, seed);
  cases.push_back(std::move(check));
}

void AddModels(uint64_t seed, std::vector<GradCheckCase>& cases) {
  AddModel("defaults", seed, cases, [](TextClassifierConfig&) {});
  AddModel("pre, gelu, learned, max, dropout", seed, cases, [](TextClassifierConfig& c) {
    c.norm = NormPlacement::kPre;
    c.activation = HiddenActivation::kGelu;
    c.positions = PositionKind::kLearned;
    c.pooling = PoolingChoice::kMax;
    c.dropout = c.attention_dropout = 0.2;
  });
  AddModel("relative keys and values, head_dim 4, attention pooling", seed, cases,
           [](TextClassifierConfig& c) {
             c.positions = PositionKind::kRelative;
             c.relative_distance = 3;
             c.relative_values = true;
             c.head_dim = 4;
             c.pooling = PoolingChoice::kAttention;
             c.dropout = 0.2;
           });
  AddModel("4 heads, 2 key/value heads, rank 2, window, relative", seed, cases,
           [](TextClassifierConfig& c) {
             c.heads = 4;
             c.kv_heads = 2;
             c.head_dim = 3;
             c.qk_rank = 2;
             c.window = {2, 1};
             c.positions = PositionKind::kRelative;
             c.attention_dropout = 0.2;
           });
  AddModel("ALiBi, 3 heads", seed, cases, [](TextClassifierConfig& c) {
    c.heads = 3;
    c.head_dim = 4;
    c.positions = PositionKind::kAlibi;
  });
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kNaive, AttentionImplementation::kPerHead}) {
    AddModel(std::string("dropout, ") + Name(implementation), seed, cases,
             [&](TextClassifierConfig& c) {
               c.attention = implementation;
               c.attention_dropout = 0.2;
             });
  }
  AddModel("causal, 1 head, bare, first", seed, cases, [](TextClassifierConfig& c) {
    c.heads = 1;
    c.causal = true;
    c.projection_bias = c.output_projection = false;
    c.scale = ScaleKind::kInverseFourthRoot;
    c.positions = PositionKind::kNone;
    c.pooling = PoolingChoice::kFirst;
  });
}

}  // namespace

std::vector<GradCheckCase> AllGradCheckCases(uint64_t seed) {
  std::vector<GradCheckCase> cases;
  AddLinear(seed, cases);
  AddLayerNorm(seed, cases);
  AddFeedForward(seed, cases);
  AddEmbedding(seed, cases);
  AddPooling(seed, cases);
  AddAttention(seed, cases);
  AddBlock(seed, cases);
  AddModels(seed, cases);
  return cases;
}

}  // namespace headlight
