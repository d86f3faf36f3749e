#include "headlight/models/text_classifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>

#include "headlight/base/error.h"
#include "headlight/base/memory.h"
#include "headlight/base/random.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/loss/cross_entropy.h"

namespace headlight {
namespace {

// Models of these sizes are done before a second worker has woken up; the tests of threads set
// their own number. Holds for all tests of this program.
class OneThread : public testing::Environment {
 public:
  void SetUp() override { SetNumThreads(1); }
};
const testing::Environment* const kOneThread =
    testing::AddGlobalTestEnvironment(std::make_unique<OneThread>().release());

TextClassifierConfig SmallConfig() {
  TextClassifierConfig config;
  config.vocabulary = 60;
  config.classes = 3;
  config.max_len = 96;
  config.dim = 32;
  config.heads = 4;
  return config;
}

RaggedBatch RandomBatch(const std::vector<int64_t>& lengths, uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<std::vector<int32_t>> texts;
  for (const int64_t length : lengths) {
    std::vector<int32_t>& text = texts.emplace_back(static_cast<size_t>(length));
    for (int32_t& id : text) id = static_cast<int32_t>(random.Below(60));
  }
  RaggedBatch batch = MakeRaggedBatch(texts);
  for (int64_t& id : batch.sample_ids) {
    id = 1000 + 7 * id;
    batch.labels.push_back(static_cast<int32_t>(random.Below(3)));
  }
  return batch;
}

// The one text of `batch` at `slot` as a batch of its own.
RaggedBatch Alone(const RaggedBatch& batch, int64_t slot) {
  const int32_t* ids = batch.ids.data<int32_t>();
  const int64_t begin = batch.layout().begin(slot), length = batch.layout().length(slot);
  RaggedBatch alone = MakeRaggedBatch({std::vector<int32_t>(ids + begin, ids + begin + length)});
  alone.sample_ids = {batch.sample_ids[static_cast<size_t>(slot)]};
  return alone;
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.elements()};
}

std::vector<float> Gradients(TextClassifier& model) {
  std::vector<float> all;
  for (const Parameter* parameter : model.Parameters()) {
    const std::vector<float> values = Values<float>(parameter->gradient);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// |a - b| / |b|, Euclidean.
double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Forward and backward of a mean cross entropy; the logits.
std::vector<float> Step(TextClassifier& model, const RaggedBatch& batch,
                        const ForwardOptions& options, TextClassifier::Saved& saved) {
  Tensor logits = model.Forward(batch, options, &saved);
  const std::vector<float> result = Values<float>(logits);
  CrossEntropyBackward(logits, batch.labels, {}, 1.0 / static_cast<double>(batch.batch()), logits);
  model.Backward(logits, saved);
  return result;
}

std::vector<TextClassifierConfig> ConfigsOfAllKinds() {
  std::vector<TextClassifierConfig> configs(3, SmallConfig());
  configs[1].norm = NormPlacement::kPre;
  configs[1].activation = HiddenActivation::kGelu;
  configs[1].positions = PositionKind::kRelative;
  configs[1].relative_values = true;
  configs[1].relative_distance = 8;
  configs[1].pooling = PoolingChoice::kAttention;
  configs[2].heads = 1;
  configs[2].causal = true;
  configs[2].output_projection = configs[2].projection_bias = false;
  configs[2].positions = PositionKind::kLearned;
  configs[2].pooling = PoolingChoice::kMax;
  configs.resize(8, configs[1]);
  for (size_t i = 3; i < 6; ++i) {
    configs[i].kv_heads = i == 4 ? 1 : 2;
    configs[i].qk_rank = 5;
    configs[i].window = {11, 7};
  }
  configs[4].attention = AttentionImplementation::kNaive;
  configs[5].attention = AttentionImplementation::kPerHead;
  configs[6] = configs[2];
  configs[6].precision = configs[7].precision = Precision::kBF16;
  return configs;
}

std::string UsageError(const TextClassifierConfig& config) {
  try {
    ValidateConfig(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(TextClassifierConfig, SaysWhatDoesNotFit) {
  const auto message = [](const std::function<void(TextClassifierConfig&)>& change) {
    TextClassifierConfig config = SmallConfig();
    change(config);
    return UsageError(config);
  };
  EXPECT_EQ(message([](auto& c) { c.heads = 3; }),
            "model: heads must divide dim 32: 3 does not; these do: 1, 2, 4, 8, 16, 32 (or give "
            "head-dim on its own)");
  EXPECT_EQ(message([](auto& c) { c.kv_heads = 3; }),
            "model: kv-heads must divide heads 4: 3 does not; these do: 1, 2, 4");
  EXPECT_EQ(message([](auto& c) { c.kv_heads = 8; }),
            "model: kv-heads must divide heads 4: 8 does not; these do: 1, 2, 4");
  EXPECT_EQ(message([](auto& c) { c.kv_heads = -1; }),
            "model: kv-heads must be at least 0, found -1");
  EXPECT_EQ(message([](auto& c) { c.qk_rank = -2; }),
            "model: qk-rank must be at least 0, found -2");
  EXPECT_EQ(message([](auto& c) {
              c.window = {3, -1};
            }),
            "model: window must be at least 0, found -1");
  EXPECT_EQ(message([](auto& c) { c.heads = 0; }), "model: heads must be at least 1, found 0");
  EXPECT_EQ(message([](auto& c) { c.classes = 1; }), "model: classes must be at least 2, found 1");
  EXPECT_EQ(message([](auto& c) { c.dropout = std::nan(""); }),
            "model: dropout must be at least 0 and below 1, found nan");
  EXPECT_EQ(message([](auto& c) { c.attention_dropout = 1; }),
            "model: attention-dropout must be at least 0 and below 1, found 1");
  EXPECT_EQ(message([](auto& c) { c.relative_values = true; }),
            "model: relative values need relative positions, found sinusoidal");
  EXPECT_EQ(message([](auto& c) { c.scale = ScaleKind::kGiven; }),
            "model: a given scale must be positive and finite, found 0");
  EXPECT_EQ(
      message([](auto& c) {
        c.output_projection = false;
        c.head_dim = 9;
      }),
      "model: without an output projection heads x head-dim must be dim 32, found 4 x 9 = 36");
  EXPECT_EQ(message([](auto& c) { c.dim = int64_t{1} << 40; }),
            "model: dim must be at most 16777216, found 1099511627776");
  EXPECT_EQ(message([](auto& c) {
              c.heads = 3;
              c.head_dim = 7;
            }),
            "no error");
}

TEST(TextClassifier, ParameterCountsByFormula) {
  // By hand: dim 32, F 128, two layers: embedding 60*32; a layer 4*(32*32+32) + 2*2*32 +
  // (128*32+128) + (32*128+32); classifier 3*32+3.
  EXPECT_EQ(ParameterCount(SmallConfig()), 1920 + 2 * (4224 + 128 + 4224 + 4128) + 99);
  for (TextClassifierConfig config : ConfigsOfAllKinds()) {
    for (const int64_t head_dim : {0, 5}) {
      if (head_dim > 0 && !config.output_projection) continue;
      config.head_dim = head_dim;
      TextClassifier model(config, DType::kF32, 1);
      EXPECT_EQ(ParameterCount(model.Parameters()), ParameterCount(config));
    }
  }
  // Grouped keys and values, and scores of low rank, by hand: dim 32, 4 heads of 8; queries 4 x 3,
  // keys 2 x 3, values 2 x 8.
  TextClassifierConfig grouped = SmallConfig();
  grouped.kv_heads = 2;
  grouped.qk_rank = 3;
  EXPECT_EQ(ParameterCount(SmallConfig()) - ParameterCount(grouped),
            2 * (3 * 32 - (12 + 6 + 16)) * 33);
  // With head_dim given, parameters grow with heads; with it split they do not.
  TextClassifierConfig one = SmallConfig(), eight = SmallConfig();
  one.heads = 1;
  eight.heads = 8;
  EXPECT_EQ(ParameterCount(one), ParameterCount(eight));
  one.head_dim = eight.head_dim = 16;
  EXPECT_LT(ParameterCount(one), ParameterCount(eight));
}

TEST(TextClassifier, ForwardFlopsByFormula) {
  // By hand: dim 32, F 128, two layers, 10 tokens, 37 pairs.
  EXPECT_EQ(ForwardFlops(SmallConfig(), 10, 37),
            2 * (2 * 10 * 32 * (3 * 32 + 2 * 128 + 32) + 37 * 2 * (32 + 32)));
  TextClassifierConfig grouped = SmallConfig();
  grouped.kv_heads = 2;
  grouped.qk_rank = 3;
  EXPECT_EQ(ForwardFlops(grouped, 10, 37),
            2 * (2 * 10 * 32 * (12 + 6 + 16 + 2 * 128 + 32) + 37 * 2 * (12 + 32)));
}

TEST(TextClassifier, ParametersHaveTheDocumentedNames) {
  TextClassifierConfig config = ConfigsOfAllKinds()[1];
  config.layers = 1;
  TextClassifier model(config, DType::kF32, 1);
  std::vector<std::string> names;
  for (const Parameter* parameter : model.Parameters()) {
    names.push_back(parameter->name);
    const bool vector = parameter->name.ends_with(".bias") ||
                        parameter->name.find("norm.weight") != std::string::npos;
    EXPECT_EQ(parameter->decay, !vector) << parameter->name;
    EXPECT_TRUE(parameter->value.IsContiguous());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"embedding.token.weight",
                                             "encoder.0.attention.query.weight",
                                             "encoder.0.attention.query.bias",
                                             "encoder.0.attention.key.weight",
                                             "encoder.0.attention.key.bias",
                                             "encoder.0.attention.value.weight",
                                             "encoder.0.attention.value.bias",
                                             "encoder.0.attention.relative_key",
                                             "encoder.0.attention.relative_value",
                                             "encoder.0.attention.output.weight",
                                             "encoder.0.attention.output.bias",
                                             "encoder.0.attention_norm.weight",
                                             "encoder.0.attention_norm.bias",
                                             "encoder.0.feed_forward.up.weight",
                                             "encoder.0.feed_forward.up.bias",
                                             "encoder.0.feed_forward.down.weight",
                                             "encoder.0.feed_forward.down.bias",
                                             "encoder.0.feed_forward_norm.weight",
                                             "encoder.0.feed_forward_norm.bias",
                                             "norm.weight",
                                             "norm.bias",
                                             "pooling.query",
                                             "classifier.weight",
                                             "classifier.bias"}));
}

TEST(TextClassifier, SameBitsForAnyNumberOfThreads) {
  const int before = NumThreads();
  const RaggedBatch batch = RandomBatch({31, 0, 7, 64, 96, 1, 50, 90, 96, 96, 77, 33}, 1);
  for (const TextClassifierConfig& config : ConfigsOfAllKinds()) {
    std::vector<float> logits, gradients;
    for (const int threads : {1, 2, 3}) {
      SetNumThreads(threads);
      TextClassifier model(config, DType::kF32, 2);
      TextClassifier::Saved saved;
      ForwardOptions options;
      options.training = true;
      options.seed = 5;
      const std::vector<float> found = Step(model, batch, options, saved);
      if (threads == 1) {
        logits = found;
        gradients = Gradients(model);
        continue;
      }
      EXPECT_TRUE(SameBits(found, logits)) << threads;
      EXPECT_TRUE(SameBits(Gradients(model), gradients)) << threads;
    }
  }
  SetNumThreads(before);
}

TEST(TextClassifier, ATextScoresTheSameAloneAndInAnyBatch) {
  const RaggedBatch batch = RandomBatch({31, 0, 7, 64, 96, 1, 50}, 3);
  for (const TextClassifierConfig& config : ConfigsOfAllKinds()) {
    const TextClassifier model(config, DType::kF32, 2);
    ForwardOptions options;
    for (const bool training : {false, true}) {
      options.training = training;
      options.step = 9;
      const std::vector<float> together = Values<float>(model.Forward(batch, options, nullptr));
      for (int64_t slot = 0; slot < batch.batch(); ++slot) {
        const RaggedBatch alone = Alone(batch, slot);
        const std::vector<float> row(together.begin() + 3 * slot, together.begin() + 3 * slot + 3);
        EXPECT_TRUE(SameBits(Values<float>(model.Forward(alone, options, nullptr)), row)) << slot;
      }
    }
  }
}

// An operand of bf16 is off by at most 2^-9 of itself. A logit and a gradient went through a dozen
// products of them, whose errors have random signs.
TEST(TextClassifier, Bf16IsNearF32) {
  const RaggedBatch batch = RandomBatch({31, 7, 64, 96, 1, 50, 96, 12}, 3);
  for (TextClassifierConfig config : ConfigsOfAllKinds()) {
    std::vector<float> logits[2], gradients[2];
    for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
      config.precision = precision;
      TextClassifier model(config, DType::kF32, 2);
      TextClassifier::Saved saved;
      const auto i = static_cast<size_t>(precision);
      logits[i] = Step(model, batch, {}, saved);
      gradients[i] = Gradients(model);
    }
    EXPECT_LT(RelativeDistance(logits[1], logits[0]), 0.02);
    // The largest of a feature may be another token's.
    if (config.pooling != PoolingChoice::kMax) {
      EXPECT_LT(RelativeDistance(gradients[1], gradients[0]), 0.04);
    }
    EXPECT_GT(RelativeDistance(logits[1], logits[0]), 1e-5) << "nothing was rounded";
  }
}

TEST(TextClassifier, BuffersSharedOrKeptGiveTheSameBits) {
  const RaggedBatch large = RandomBatch({31, 64, 96}, 4), small = RandomBatch({5, 0, 17}, 5);
  for (const TextClassifierConfig& config : ConfigsOfAllKinds()) {
    TextClassifier model(config, DType::kF32, 2);
    ForwardOptions keep, share;
    share.for_backward = false;
    TextClassifier::Saved kept, shared;
    for (const RaggedBatch* batch : {&large, &small, &large}) {
      const std::vector<float> logits = Values<float>(model.Forward(*batch, keep, &kept));
      EXPECT_TRUE(SameBits(Values<float>(model.Forward(*batch, share, &shared)), logits));
      EXPECT_TRUE(SameBits(Values<float>(model.Forward(*batch, keep, nullptr)), logits));
    }
    Tensor gradient = Tensor::Zeros({3, 3}, DType::kF32, MemoryTag::kOther);
    EXPECT_THROW(model.Backward(gradient, shared), Error);
  }
}

TEST(TextClassifier, ASavedFromALargerBatchLeavesNoTrace) {
  const RaggedBatch large = RandomBatch({31, 64, 96}, 4), small = RandomBatch({5, 0, 17}, 5);
  ForwardOptions options;
  options.training = true;
  for (const TextClassifierConfig& config : ConfigsOfAllKinds()) {
    TextClassifier fresh(config, DType::kF32, 2), used(config, DType::kF32, 2);
    TextClassifier::Saved fresh_saved, used_saved;
    Step(used, large, options, used_saved);
    ZeroGradients(used.Parameters());
    const std::vector<float> logits = Step(fresh, small, options, fresh_saved);
    EXPECT_TRUE(SameBits(Step(used, small, options, used_saved), logits));
    EXPECT_TRUE(SameBits(Gradients(used), Gradients(fresh)));
    // Gradients accumulate: a second pass of the same batch doubles them exactly.
    Step(used, small, options, used_saved);
    std::vector<float> doubled = Gradients(fresh);
    const std::vector<float> twice = Gradients(used);
    for (size_t i = 0; i < twice.size(); ++i) {
      ASSERT_NEAR(twice[i], 2 * doubled[i], 1e-5 * (1e-3 + std::abs(doubled[i])));
    }
  }
}

TEST(TextClassifier, TakesNoMemoryOnceWarm) {
  TextClassifier model(SmallConfig(), DType::kF32, 2);
  const RaggedBatch batch = RandomBatch({31, 64, 96}, 4), smaller = RandomBatch({30, 60}, 4);
  TextClassifier::Saved saved;
  Step(model, batch, {}, saved);
  const int64_t now = MemoryTotal().now;
  Step(model, smaller, {}, saved);
  Step(model, batch, {}, saved);
  EXPECT_EQ(MemoryTotal().now, now);
}

TEST(TextClassifier, DropoutIsOnInTrainingOnlyAndFollowsSeedAndStep) {
  const TextClassifier model(SmallConfig(), DType::kF32, 2);
  RaggedBatch batch = RandomBatch({31, 64}, 4);
  const auto run = [&](const ForwardOptions& options) {
    return Values<float>(model.Forward(batch, options, nullptr));
  };
  ForwardOptions training;
  training.training = true;
  const std::vector<float> first = run(training);
  EXPECT_FALSE(SameBits(first, run({})));
  EXPECT_TRUE(SameBits(first, run(training)));
  ForwardOptions later = training, other = training;
  later.step = 1;
  other.seed = 1;
  EXPECT_FALSE(SameBits(first, run(later)));
  EXPECT_FALSE(SameBits(first, run(other)));
  batch.sample_ids.clear();
  EXPECT_THROW(run(training), Error);

  TextClassifierConfig none = SmallConfig();
  none.dropout = none.attention_dropout = 0;
  const TextClassifier undropped(none, DType::kF32, 2);
  EXPECT_TRUE(SameBits(Values<float>(undropped.Forward(batch, training, nullptr)), run({})));
}

TEST(TextClassifier, AProbeSeesAllLayersAndChangesNothing) {
  TextClassifier model(SmallConfig(), DType::kF32, 2);
  const RaggedBatch batch = RandomBatch({31, 0, 7}, 4);
  TextClassifier::Saved saved;
  ForwardOptions options;
  options.training = true;
  const std::vector<float> plain = Step(model, batch, options, saved);
  const std::vector<float> gradients = Gradients(model);
  ZeroGradients(model.Parameters());
  Probe probe;
  probe.want_weights = true;
  std::vector<std::string> names;
  probe.on_tensor = [&](int layer, const char* name, const Tensor&) {
    names.push_back(std::to_string(layer) + " " + name);
  };
  options.probe = &probe;
  EXPECT_TRUE(SameBits(Step(model, batch, options, saved), plain));
  EXPECT_TRUE(SameBits(Gradients(model), gradients));
  EXPECT_EQ(probe.weights.size(), 2u * 3u * 4u);
  EXPECT_EQ(probe.weights.back().layer, 1);
  EXPECT_EQ(names.front(), "-1 embedding");
  EXPECT_EQ(names.back(), "-1 logits");
  EXPECT_NE(std::find(names.begin(), names.end(), "1 attention"), names.end());
}

TEST(TextClassifier, EmptyBatchesAndTexts) {
  for (const TextClassifierConfig& config : ConfigsOfAllKinds()) {
    TextClassifier model(config, DType::kF32, 2);
    TextClassifier::Saved saved;
    RaggedBatch nothing = MakeRaggedBatch({});
    EXPECT_EQ(model.Forward(nothing, {}, &saved).shape(), (Shape{0, 3}));
    RaggedBatch empty = MakeRaggedBatch({{}, {}});
    empty.labels = {0, 1};
    const std::vector<float> logits = Step(model, empty, {}, saved);
    for (const float value : logits) EXPECT_EQ(value, 0);  // the classifier's bias
    for (const float value : Gradients(model)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(TextClassifier, RefusesWhatDoesNotFit) {
  const TextClassifier model(SmallConfig(), DType::kF32, 2);
  EXPECT_THROW(model.Forward(RandomBatch({97}, 1), {}, nullptr), Error);
  RaggedBatch outside = MakeRaggedBatch({{60}});
  EXPECT_THROW(model.Forward(outside, {}, nullptr), Error);
  EXPECT_THROW(TextClassifier(SmallConfig(), DType::kI32, 1), Error);
}

TEST(TextClassifier, F32AgreesWithF64) {
  const RaggedBatch batch = RandomBatch({31, 5, 64}, 8);
  for (const TextClassifierConfig& config : ConfigsOfAllKinds()) {
    if (config.precision != Precision::kF32) continue;
    TextClassifier fast(config, DType::kF32, 2), exact(config, DType::kF64, 2);
    for (size_t i = 0; i < fast.Parameters().size(); ++i) {
      exact.Parameters()[i]->value.CopyFrom(fast.Parameters()[i]->value);
    }
    exact.PrepareWeights();
    TextClassifier::Saved fast_saved, exact_saved;
    ForwardOptions options;
    options.training = true;
    const std::vector<float> logits = Step(fast, batch, options, fast_saved);
    Tensor truth = exact.Forward(batch, options, &exact_saved);
    // Logits are of magnitude 1 and come out of sums of at most a few hundred terms.
    for (size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(logits[i], truth.data<double>()[i], 2e-5);
    }
    CrossEntropyBackward(truth, batch.labels, {}, 1.0 / 3, truth);
    exact.Backward(truth, exact_saved);
    for (size_t i = 0; i < fast.Parameters().size(); ++i) {
      const Tensor& found = fast.Parameters()[i]->gradient;
      const Tensor& wanted = exact.Parameters()[i]->gradient;
      double scale = 1e-3;
      for (const double value : Values<double>(wanted)) scale = std::max(scale, std::abs(value));
      for (int64_t k = 0; k < found.elements(); ++k) {
        ASSERT_NEAR(found.data<float>()[k], wanted.data<double>()[k], 1e-4 * scale)
            << fast.Parameters()[i]->name;
      }
    }
  }
}

TEST(TextClassifier, NamesTheFirstNonfiniteTensor) {
  TextClassifier model(SmallConfig(), DType::kF32, 2);
  const RaggedBatch batch = RandomBatch({9, 0, 7}, 4);
  NonfiniteReport report;
  EXPECT_FALSE(model.FindFirstNonfinite(batch, {}, &report));
  EXPECT_FALSE(model.FindFirstNonfiniteGradient(&report));

  Parameter* query = nullptr;
  for (Parameter* parameter : model.Parameters()) {
    if (parameter->name == "encoder.1.attention.query.weight") query = parameter;
  }
  ASSERT_NE(query, nullptr);
  const Tensor before = query->value.Clone(MemoryTag::kOther);
  // Rows 8 to 15 are head 1's.
  query->value.view<float>()(9, 0) = std::numeric_limits<float>::quiet_NaN();
  model.PrepareWeights();
  ASSERT_TRUE(model.FindFirstNonfinite(batch, {}, &report));
  EXPECT_EQ(report.ToString(),
            "layer 1, head 1, tensor encoder.1.attention.query.weight, row 9: nan");

  // Finite weights whose scores overflow: queries of 1e30 times keys of 1e30.
  query->value.CopyFrom(before);
  for (Parameter* parameter : model.Parameters()) {
    const bool chosen = parameter->name == "encoder.1.attention.query.bias" ||
                        parameter->name == "encoder.1.attention.key.bias";
    if (chosen) parameter->value.data<float>()[17] = 1e30F;
  }
  model.PrepareWeights();
  ASSERT_TRUE(model.FindFirstNonfinite(batch, {}, &report));
  EXPECT_EQ(report.layer, 1);
  EXPECT_EQ(report.head, 2);
  EXPECT_EQ(report.tensor, "attention");
  EXPECT_EQ(report.sequence, 0);

  ForwardOptions zero;
  zero.nonfinite = NonfinitePolicy::kZero;
  EXPECT_FALSE(model.FindFirstNonfinite(batch, zero, &report));
  EXPECT_EQ(model.NonfiniteScoresReplaced(), 9 * 9 + 7 * 7);

  query->gradient.view<float>()(25, 3) = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(model.FindFirstNonfiniteGradient(&report));
  EXPECT_EQ(report.ToString(),
            "layer 1, head 3, tensor gradient of encoder.1.attention.query.weight, row 25: inf");
}

}  // namespace
}  // namespace headlight
