// What gradient checks (models/gradcheck) do not see: initial values, parameters by name, errors,
// probes, the f32 path of single layers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "headlight/base/error.h"
#include "headlight/nn/block.h"
#include "headlight/nn/embedding.h"
#include "headlight/nn/init.h"
#include "headlight/nn/pooling.h"

namespace headlight {
namespace {

Tensor RandomF32(const Shape& shape, uint64_t seed) {
  Parameter drawn = MakeParameter("drawn", shape, DType::kF32, false);
  InitNormal(drawn, 1, seed);
  return drawn.value;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.bytes(), b.bytes(),
                     static_cast<size_t>(a.elements()) * DTypeSize(a.dtype())) == 0;
}

std::string ErrorOf(const std::function<void()>& call, ErrorKind kind) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Init, XavierBoundAndMoments) {
  Parameter weight = MakeParameter("w", {200, 100}, DType::kF64, true);
  InitXavierUniform(weight, 3);
  const double bound = std::sqrt(6.0 / 300);
  double largest = 0, sum = 0, square = 0;
  for (int64_t i = 0; i < weight.value.elements(); ++i) {
    const double value = weight.value.data<double>()[i];
    largest = std::max(largest, std::abs(value));
    sum += value;
    square += value * value;
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.999 * bound);
  // Uniform: variance bound^2 / 3; 20000 values, so the mean's deviation is bound / 245.
  EXPECT_NEAR(sum / 20000, 0, 5 * bound / 245);
  EXPECT_NEAR(square / 20000, bound * bound / 3, 0.03 * bound * bound);
}

TEST(Init, DependsOnNameAndSeedAlone) {
  Parameter a = MakeParameter("a", {4, 4}, DType::kF32, true), b = a, c = a;
  b.value = Tensor::Zeros({4, 4}, DType::kF32, MemoryTag::kOther);
  c.value = Tensor::Zeros({4, 4}, DType::kF32, MemoryTag::kOther);
  InitXavierUniform(a, 5);
  InitXavierUniform(b, 5);
  EXPECT_TRUE(SameBits(a.value, b.value));
  InitXavierUniform(b, 6);
  EXPECT_FALSE(SameBits(a.value, b.value));
  c.name = "c";
  InitXavierUniform(c, 5);
  EXPECT_FALSE(SameBits(a.value, c.value));
}

TEST(Options, NamesGoBothWays) {
  for (const char* name : {"none", "learned", "sinusoidal", "relative"}) {
    EXPECT_STREQ(Name(Parse<PositionKind>(name)), name);
  }
  for (const char* name : {"mean", "first", "max", "attention"}) {
    EXPECT_STREQ(Name(Parse<PoolingChoice>(name)), name);
  }
  for (const char* name : {"sqrt", "fourth-root", "given"}) {
    EXPECT_STREQ(Name(Parse<ScaleKind>(name)), name);
  }
  EXPECT_EQ(Parse<NormPlacement>("pre"), NormPlacement::kPre);
  EXPECT_EQ(Parse<HiddenActivation>("gelu"), HiddenActivation::kGelu);
  EXPECT_EQ(Parse<NonfinitePolicy>("zero"), NonfinitePolicy::kZero);
  EXPECT_EQ(ErrorOf([] { Parse<PoolingChoice>("median"); }, ErrorKind::kUsage),
            "pooling: must be one of mean, first, max, attention, found 'median'");
}

TEST(RaggedBatch, ChecksWhatItHolds) {
  RaggedBatch batch = MakeRaggedBatch({{1, 2}, {}, {3}});
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(batch.layout().longest(), 2);
  EXPECT_EQ(batch.layout().pairs(), 5);
  CheckBatch(batch, 4);
  EXPECT_EQ(ErrorOf([&] { CheckBatch(batch, 3); }, ErrorKind::kShape),
            "batch: token 2 must lie in [0, 3), found 3");
  batch.labels = {1};
  ErrorOf([&] { CheckBatch(batch, 4); }, ErrorKind::kShape);
  batch.labels.clear();
  batch.sample_ids.pop_back();
  ErrorOf([&] { CheckBatch(batch, 4); }, ErrorKind::kShape);
  batch.offsets = {0, 2, 1, 3};
  ErrorOf([&] { CheckLayout(batch.layout()); }, ErrorKind::kShape);
  batch.offsets.clear();
  ErrorOf([&] { CheckLayout(batch.layout()); }, ErrorKind::kShape);
}

TEST(Linear, PartsAreSeparateParametersOfOneProduct) {
  Linear both({.parts = {{"a", 3}, {"b", 4}}, .in = 8}, DType::kF32, 1);
  Linear second({.parts = {{"b", 4}}, .in = 8}, DType::kF32, 1);
  std::vector<Parameter*> parameters;
  both.Collect(parameters);
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0]->name, "a.weight");
  EXPECT_EQ(parameters[1]->name, "a.bias");
  EXPECT_EQ(parameters[2]->name, "b.weight");
  EXPECT_TRUE(parameters[0]->decay);
  EXPECT_FALSE(parameters[1]->decay);

  const Tensor x = RandomF32({5, 8}, 2);
  Tensor y = Tensor::Zeros({5, 7}, DType::kF32, MemoryTag::kOther);
  Tensor y_second = Tensor::Zeros({5, 4}, DType::kF32, MemoryTag::kOther);
  both.Forward(x, {}, y);
  second.Forward(x, {}, y_second);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(y.view<float>()(i, 3 + j), y_second.view<float>()(i, j), 1e-6);
    }
  }
  // Gradients accumulate over calls.
  both.BackwardParameters(x, y);
  const float once = parameters[2]->gradient.data<float>()[3];
  both.BackwardParameters(x, y);
  EXPECT_FLOAT_EQ(parameters[2]->gradient.data<float>()[3], 2 * once);
  ZeroGradients(parameters);
  EXPECT_EQ(parameters[2]->gradient.data<float>()[3], 0);
}

TEST(MultiHeadAttention, HeadCountsThatDoNotDivideAreExplained) {
  MultiHeadAttentionConfig config{.dim = 256, .heads = 7};
  const std::string message =
      ErrorOf([&] { MultiHeadAttention(config, DType::kF32, 1); }, ErrorKind::kUsage);
  EXPECT_EQ(message,
            "attention: heads must divide dim 256: 7 does not; these do: 1, 2, 4, 8, 16, 32, 64, "
            "128, 256 (or give a head dim on its own)");
  EXPECT_EQ(HeadCountsThatDivide(7), "1, 7");
  EXPECT_EQ(HeadCountsThatDivide(5040),
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, ..., 5040");
  config.heads = 0;
  ErrorOf([&] { MultiHeadAttention(config, DType::kF32, 1); }, ErrorKind::kUsage);
  config.heads = 3;
  config.head_dim = 10;
  config.output_projection = false;
  ErrorOf([&] { MultiHeadAttention(config, DType::kF32, 1); }, ErrorKind::kUsage);
}

TEST(MultiHeadAttention, KeyValueHeadsMustDivideHeads) {
  MultiHeadAttentionConfig config{.dim = 32, .heads = 8, .kv_heads = 3};
  EXPECT_EQ(ErrorOf([&] { MultiHeadAttention(config, DType::kF32, 1); }, ErrorKind::kUsage),
            "attention: kv-heads must divide heads 8: 3 does not; these do: 1, 2, 4, 8");
  config.kv_heads = 16;
  ErrorOf([&] { MultiHeadAttention(config, DType::kF32, 1); }, ErrorKind::kUsage);
}

TEST(MultiHeadAttention, ShapesFollowKeyValueHeadsAndRank) {
  MultiHeadAttention layer({.dim = 32,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = 8,
                            .qk_dim = 3,
                            .relative_distance = 5,
                            .relative_values = true},
                           DType::kF32, 1);
  std::vector<Parameter*> parameters;
  layer.Collect(parameters);
  std::vector<std::pair<std::string, Shape>> found;
  for (const Parameter* parameter : parameters) {
    found.emplace_back(parameter->name, parameter->value.shape());
  }
  const std::vector<std::pair<std::string, Shape>> wanted{
      {"attention.query.weight", {12, 32}},  {"attention.query.bias", {12}},
      {"attention.key.weight", {6, 32}},     {"attention.key.bias", {6}},
      {"attention.value.weight", {16, 32}},  {"attention.value.bias", {16}},
      {"attention.relative_key", {4, 9, 3}}, {"attention.relative_value", {4, 9, 8}},
      {"attention.output.weight", {32, 32}}, {"attention.output.bias", {32}}};
  EXPECT_TRUE(found == wanted);
}

// Grouped-query attention is multi-head attention whose heads of a group have equal keys and
// values.
TEST(MultiHeadAttention, GroupsShareKeysAndValues) {
  const MultiHeadAttentionConfig grouped_config{.dim = 16, .heads = 4, .kv_heads = 2};
  MultiHeadAttentionConfig full_config = grouped_config;
  full_config.kv_heads = 4;
  MultiHeadAttention grouped(grouped_config, DType::kF64, 3), full(full_config, DType::kF64, 3);
  std::vector<Parameter*> from, to;
  grouped.Collect(from);
  full.Collect(to);
  for (const size_t part : {2, 4}) {  // key.weight, value.weight; biases are 0
    for (int64_t row = 0; row < 16; ++row) {
      const int64_t group_row = row / 8 * 4 + row % 4;  // of head row / 4
      for (int64_t c = 0; c < 16; ++c) {
        to[part]->value.view<double>()(row, c) = from[part]->value.view<double>()(group_row, c);
      }
    }
  }
  const std::vector<int64_t> offsets{0, 6, 11};
  const Tensor x = RandomF32({11, 16}, 9).CastTo(DType::kF64, MemoryTag::kOther);
  Tensor y = Tensor::Zeros({11, 16}, DType::kF64, MemoryTag::kOther);
  Tensor want = Tensor::Zeros({11, 16}, DType::kF64, MemoryTag::kOther);
  MultiHeadAttention::Saved saved, full_saved;
  grouped.PrepareWeights();
  full.PrepareWeights();
  grouped.Forward({.x = x, .layout = {offsets, {}}}, {}, nullptr, saved, y);
  full.Forward({.x = x, .layout = {offsets, {}}}, {}, nullptr, full_saved, want);
  for (int64_t i = 0; i < 11; ++i) {
    for (int64_t c = 0; c < 16; ++c) {
      EXPECT_NEAR(y.view<double>()(i, c), want.view<double>()(i, c), 1e-14);
    }
  }
}

TEST(MultiHeadAttention, KeptPairsAreCounted) {
  const std::vector<int64_t> queries{0, 4, 4, 9}, keys{0, 6, 8, 13};
  const RaggedLayout rows{queries, {}}, columns{keys, {}};
  EXPECT_EQ(KeptPairs(rows, columns, false, std::nullopt), 4 * 6 + 5 * 5);
  EXPECT_EQ(KeptPairs(rows, columns, true, std::nullopt), (3 + 4 + 5 + 6) + (1 + 2 + 3 + 4 + 5));
  EXPECT_EQ(KeptPairs(rows, columns, false, AttentionWindow{1, 0}), (1 + 2 + 2 + 2) + 9);
  EXPECT_EQ(KeptPairs(rows, columns, false, AttentionWindow{1, 1}), (2 + 3 + 3 + 3) + 13);
  EXPECT_EQ(KeptPairs(rows, columns, true, AttentionWindow{1, 1}), 8 + 9);
}

struct AttentionRun {
  Tensor y;
  Probe probe;
};

AttentionRun RunAttention(const MultiHeadAttentionConfig& config, const Tensor& x,
                          const RaggedLayout& layout, const ForwardOptions& given, Probe probe) {
  const MultiHeadAttention layer(config, DType::kF32, 4);
  MultiHeadAttention::Saved saved;
  AttentionRun run{Tensor::Zeros({x.size(0), config.dim}, DType::kF32, MemoryTag::kOther),
                   std::move(probe)};
  ForwardOptions options = given;
  if (run.probe.want_weights || run.probe.want_statistics) options.probe = &run.probe;
  layer.Forward({.x = x, .layout = layout}, options, nullptr, saved, run.y);
  return run;
}

TEST(MultiHeadAttention, ScoresOfLowRankAreScaledByTheirRank) {
  MultiHeadAttentionConfig config{.dim = 16, .heads = 2, .qk_dim = 3};
  const std::vector<int64_t> offsets{0, 9};
  const Tensor x = RandomF32({9, 16}, 5);
  const auto run = [&] { return RunAttention(config, x, {offsets, {}}, {}, {}).y; };
  const Tensor unsaid = run();
  config.scale = 1 / std::sqrt(3.0);
  EXPECT_TRUE(SameBits(unsaid, run()));
  config.scale = 1 / std::sqrt(8.0);
  EXPECT_FALSE(SameBits(unsaid, run()));
}

// All implementations give the same up to rounding, and what a probe sees to the bit.
TEST(MultiHeadAttention, ImplementationsAgree) {
  MultiHeadAttentionConfig config{.layer = 1,
                                  .dim = 32,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .qk_dim = 5,
                                  .window = AttentionWindow{5, 3},
                                  .dropout = 0.3,
                                  .relative_distance = 4};
  const std::vector<int64_t> offsets{0, 6, 6, 17}, ids{4, 9, 2};
  const Tensor x = RandomF32({17, 32}, 7);
  ForwardOptions options;
  options.training = true;
  Probe asked;
  asked.want_weights = asked.want_statistics = true;
  const AttentionRun fused = RunAttention(config, x, {offsets, ids}, options, asked);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kNaive, AttentionImplementation::kPerHead}) {
    config.implementation = implementation;
    const AttentionRun run = RunAttention(config, x, {offsets, ids}, options, asked);
    for (int64_t i = 0; i < x.elements(); ++i) {
      EXPECT_NEAR(run.y.data<float>()[i], fused.y.data<float>()[i], 1e-5);
    }
    ASSERT_EQ(run.probe.weights.size(), 12u);
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_TRUE(SameBits(run.probe.weights[i].weights, fused.probe.weights[i].weights));
    }
    EXPECT_TRUE(SameBits(run.probe.statistics[0].entropy, fused.probe.statistics[0].entropy));
  }
}

// One head is the textbook formula: y = softmax(q k^T / sqrt(d)) v, with no output projection.
TEST(MultiHeadAttention, OneHeadIsTheTextbookFormula) {
  constexpr int64_t kDim = 8, kTokens = 5;
  MultiHeadAttentionConfig config{.dim = kDim, .heads = 1, .output_projection = false};
  MultiHeadAttention layer(config, DType::kF64, 4);
  std::vector<Parameter*> parameters;
  layer.Collect(parameters);
  ASSERT_EQ(parameters.size(), 6u);
  const Tensor x = RandomF32({kTokens, kDim}, 9).CastTo(DType::kF64, MemoryTag::kOther);
  const std::vector<int64_t> offsets{0, kTokens};
  Tensor y = Tensor::Zeros({kTokens, kDim}, DType::kF64, MemoryTag::kOther);
  MultiHeadAttention::Saved saved;
  layer.Forward({.x = x, .layout = {offsets, {}}}, {}, nullptr, saved, y);

  const auto project = [&](int part, int64_t token, int64_t feature) {
    const View<double> weight = parameters[static_cast<size_t>(2 * part)]->value.view<double>();
    double sum = 0;
    for (int64_t i = 0; i < kDim; ++i) sum += weight(feature, i) * x.view<double>()(token, i);
    return sum;
  };
  for (int64_t query = 0; query < kTokens; ++query) {
    std::vector<double> weights(kTokens);
    double total = 0;
    for (int64_t key = 0; key < kTokens; ++key) {
      double score = 0;
      for (int64_t i = 0; i < kDim; ++i) score += project(0, query, i) * project(1, key, i);
      weights[static_cast<size_t>(key)] = std::exp(score / std::sqrt(8.0));
      total += weights[static_cast<size_t>(key)];
    }
    for (int64_t i = 0; i < kDim; ++i) {
      double mixed = 0;
      for (int64_t key = 0; key < kTokens; ++key) {
        mixed += weights[static_cast<size_t>(key)] / total * project(2, key, i);
      }
      EXPECT_NEAR(y.view<double>()(query, i), mixed, 1e-12);
    }
  }
}

TEST(MultiHeadAttention, AProbeSeesChosenHeadsAndChangesNothing) {
  const MultiHeadAttentionConfig config{.layer = 1, .dim = 32, .heads = 4, .dropout = 0.3};
  const std::vector<int64_t> offsets{0, 6, 6, 17}, ids{4, 9, 2};
  const RaggedLayout layout{offsets, ids};
  const Tensor x = RandomF32({17, 32}, 7);
  ForwardOptions options;
  options.training = true;
  const AttentionRun plain = RunAttention(config, x, layout, options, {});
  Probe asked;
  asked.heads = {3, 1};
  asked.want_weights = asked.want_statistics = true;
  const AttentionRun probed = RunAttention(config, x, layout, options, asked);
  EXPECT_TRUE(SameBits(plain.y, probed.y));
  EXPECT_TRUE(plain.probe.weights.empty());

  ASSERT_EQ(probed.probe.weights.size(), 6u);  // 3 sequences x 2 heads
  ASSERT_EQ(probed.probe.statistics.size(), 1u);
  const ProbedStatistics& statistics = probed.probe.statistics[0];
  EXPECT_EQ(statistics.layer, 1);
  for (const ProbedWeights& seen : probed.probe.weights) {
    EXPECT_EQ(seen.layer, 1);
    EXPECT_TRUE(seen.head == 1 || seen.head == 3);
    const int64_t length = layout.length(seen.sequence);
    ASSERT_EQ(seen.weights.shape(), (Shape{length, length}));
    const auto slot = static_cast<int64_t>(
        std::find(statistics.heads.begin(), statistics.heads.end(), seen.head) -
        statistics.heads.begin());
    for (int64_t query = 0; query < length; ++query) {
      double sum = 0, entropy = 0, distance = 0;
      for (int64_t key = 0; key < length; ++key) {
        const double weight = seen.weights.view<float>()(query, key);
        sum += weight;
        if (weight > 0) entropy -= weight * std::log(weight);
        distance += weight * std::abs(static_cast<double>(key - query));
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      const int64_t token = layout.begin(seen.sequence) + query;
      EXPECT_NEAR(statistics.entropy.view<float>()(slot, token), entropy, 1e-4);
      EXPECT_NEAR(statistics.absolute_distance.view<float>()(slot, token), distance, 1e-4);
    }
  }
  asked.layers = {0};
  EXPECT_TRUE(RunAttention(config, x, layout, options, asked).probe.weights.empty());
}

TEST(Embedding, TooLongATextIsAnError) {
  const Embedding layer({.name = "e",
                         .vocabulary = 3,
                         .max_len = 2,
                         .dim = 4,
                         .positions = PositionKind::kSinusoidal},
                        DType::kF32, 1);
  const RaggedBatch batch = MakeRaggedBatch({{0, 1, 2}});
  Tensor y = Tensor::Zeros({3, 4}, DType::kF32, MemoryTag::kOther);
  ErrorOf([&] { layer.Forward(batch.ids, batch.layout(), y); }, ErrorKind::kShape);
}

}  // namespace
}  // namespace headlight
