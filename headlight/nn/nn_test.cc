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

TEST(GrowingTensor, ReusesItsBuffer) {
  GrowingTensor tensor;
  const std::byte* large = tensor.Get({10, 4}, DType::kF32).bytes();
  EXPECT_EQ(tensor.Get({3, 5}, DType::kF32).bytes(), large);
  EXPECT_TRUE(tensor.tensor().IsContiguous());
  EXPECT_EQ(tensor.Get({40}, DType::kF32).bytes(), large);
  EXPECT_EQ(tensor.Get({0, 5}, DType::kF32).elements(), 0);
  EXPECT_EQ(tensor.Get({5, 4}, DType::kF64).dtype(), DType::kF64);
}

TEST(Linear, PartsAreSeparateParametersOfOneProduct) {
  Linear both({.parts = {"a", "b"}, .in = 8, .out = 4}, DType::kF32, 1);
  Linear second({.parts = {"b"}, .in = 8, .out = 4}, DType::kF32, 1);
  std::vector<Parameter*> parameters;
  both.Collect(parameters);
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0]->name, "a.weight");
  EXPECT_EQ(parameters[1]->name, "a.bias");
  EXPECT_EQ(parameters[2]->name, "b.weight");
  EXPECT_TRUE(parameters[0]->decay);
  EXPECT_FALSE(parameters[1]->decay);

  const Tensor x = RandomF32({5, 8}, 2);
  Tensor y = Tensor::Zeros({5, 8}, DType::kF32, MemoryTag::kOther);
  Tensor y_second = Tensor::Zeros({5, 4}, DType::kF32, MemoryTag::kOther);
  both.Forward(x, {}, y);
  second.Forward(x, {}, y_second);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(y.view<float>()(i, 4 + j), y_second.view<float>()(i, j), 1e-6);
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
