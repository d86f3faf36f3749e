// The text classifier against PyTorch's f64 results (classifier_*.safetensors, made by
// generate.py): logits, every gradient, the losses of ten Adam steps and the parameters after them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "headlight/kernels/loss/cross_entropy.h"
#include "headlight/models/text_classifier.h"
#include "headlight/train/optimizer.h"
#include "tests/goldens/golden.h"

namespace headlight {
namespace {

TextClassifierConfig ConfigOf(const nlohmann::json& golden) {
  TextClassifierConfig config;
  config.vocabulary = golden["vocabulary"];
  config.classes = golden["classes"];
  config.max_len = golden["max_len"];
  config.dim = golden["dim"];
  config.layers = golden["layers"];
  config.heads = golden["heads"];
  config.head_dim = golden["head_dim"];
  config.feed_forward = golden["feed_forward"];
  config.positions = Parse<PositionKind>(golden["positions"].get<std::string>());
  config.relative_distance = golden["relative_distance"];
  config.relative_values = golden["relative_values"];
  config.norm = Parse<NormPlacement>(golden["norm"].get<std::string>());
  config.activation = Parse<HiddenActivation>(golden["activation"].get<std::string>());
  config.pooling = Parse<PoolingChoice>(golden["pooling"].get<std::string>());
  config.norm_epsilon = golden["norm_epsilon"];
  config.causal = golden["causal"];
  config.projection_bias = golden["projection_bias"];
  config.output_projection = golden["output_projection"];
  config.scale = Parse<ScaleKind>(golden["scale"].get<std::string>());
  config.dropout = golden["dropout"];
  config.attention_dropout = golden["attention_dropout"];
  return config;
}

RaggedBatch BatchOf(const Golden& golden) {
  RaggedBatch batch;
  batch.ids = golden.At("ids");
  const Tensor& offsets = golden.At("offsets");
  const Tensor& labels = golden.At("labels");
  batch.offsets.assign(offsets.data<int64_t>(), offsets.data<int64_t>() + offsets.elements());
  batch.labels.assign(labels.data<int32_t>(), labels.data<int32_t>() + labels.elements());
  return batch;
}

// Every bound is a multiple of the dtype's epsilon; values and gradients are of magnitude 1 to 10.
struct Bounds {
  double forward;   // logits and losses: some tens of operations in a row
  double gradient;  // twice as many, through two norms a layer
  // Adam divides a gradient by its own size, so where one is small its relative error becomes an
  // error of the step: bounds on the loss curve and on values after ten steps are wider.
  double curve;
  double final_value;
};
constexpr double kDouble = std::numeric_limits<double>::epsilon();
constexpr double kFloat = std::numeric_limits<float>::epsilon();
constexpr Bounds kDoubleBounds{50 * kDouble, 100 * kDouble, 1000 * kDouble, 2e6 * kDouble};
constexpr Bounds kFloatBounds{20 * kFloat, 40 * kFloat, 100 * kFloat, 400 * kFloat};

class ClassifierGoldens : public testing::TestWithParam<std::string> {
 protected:
  void Check(DType dtype) {
    const Bounds& bounds = dtype == DType::kF64 ? kDoubleBounds : kFloatBounds;
    const Golden golden = ReadGolden("classifier_" + GetParam() + ".safetensors");
    const RaggedBatch batch = BatchOf(golden);
    TextClassifier model(ConfigOf(golden.settings["config"]), dtype, 1);
    SetInitialValues(golden, model);
    OptimizerConfig adam;
    adam.weight_decay = golden.settings["weight_decay"];
    adam.kind = adam.weight_decay > 0 ? OptimizerKind::kAdamW : OptimizerKind::kAdam;
    Optimizer optimizer(adam, model.Parameters());

    const Tensor& losses = golden.At("losses");
    TextClassifier::Saved saved;
    for (int64_t step = 0; step < losses.elements(); ++step) {
      ZeroGradients(model.Parameters());
      const Tensor logits = model.Forward(batch, {.training = true}, &saved);
      if (step == 0) ExpectNear(logits, golden.At("logits"), bounds.forward, "logits");
      const double loss = Backward(golden, batch, logits, saved, model);
      EXPECT_NEAR(loss, losses.data<double>()[step], step == 0 ? bounds.forward : bounds.curve)
          << "loss at step " << step;
      if (step == 0) ExpectParameters(golden, "gradient.", bounds.gradient, dtype, model);
      optimizer.Step(golden.settings["learning_rate"], 1);
      model.PrepareWeights();
    }
    ExpectParameters(golden, "final.", bounds.final_value, dtype, model);
  }

 private:
  static void SetInitialValues(const Golden& golden, TextClassifier& model) {
    size_t initial = 0;
    for (const auto& [name, tensor] : golden.tensors) initial += name.starts_with("initial.");
    ASSERT_EQ(initial, model.Parameters().size());
    for (Parameter* parameter : model.Parameters()) {
      parameter->value.CopyFrom(golden.At("initial." + parameter->name));
    }
    model.PrepareWeights();
  }

  // Adds the gradients of the mean loss, which it returns.
  static double Backward(const Golden& golden, const RaggedBatch& batch, const Tensor& logits,
                         TextClassifier::Saved& saved, TextClassifier& model) {
    const CrossEntropyOptions options{golden.settings["label_smoothing"]};
    const auto count = static_cast<double>(batch.batch());
    Tensor losses = Tensor::Uninitialized({batch.batch()}, logits.dtype(), MemoryTag::kWorkspace);
    Tensor gradient = Tensor::Uninitialized(logits.shape(), logits.dtype(), MemoryTag::kWorkspace);
    const double loss = CrossEntropyForward(logits, batch.labels, options, losses);
    CrossEntropyBackward(logits, batch.labels, options, 1 / count, gradient);
    model.Backward(gradient, saved);
    return loss;
  }

  static void ExpectParameters(const Golden& golden, const std::string& kind, double bound,
                               DType dtype, TextClassifier& model) {
    for (const Parameter* parameter : model.Parameters()) {
      const bool is_key_bias = parameter->name.ends_with("attention.key.bias");
      // Softmax does not see a shift of all its scores, so the true gradient of a key bias is 0 and
      // what is computed is rounding, which Adam makes steps of. In f64 they vanish in epsilon.
      if (is_key_bias && kind == "final." && dtype == DType::kF32) continue;
      const Tensor& actual = kind == "final." ? parameter->value : parameter->gradient;
      ExpectNear(actual, golden.At(kind + parameter->name), bound, kind + parameter->name);
    }
  }
};

TEST_P(ClassifierGoldens, InDouble) { Check(DType::kF64); }
TEST_P(ClassifierGoldens, InFloat) { Check(DType::kF32); }

INSTANTIATE_TEST_SUITE_P(All, ClassifierGoldens,
                         testing::Values("post_relu_mean_sinusoidal", "pre_gelu_mean_learned",
                                         "post_gelu_first_none", "pre_relu_max_causal_bare",
                                         "post_relu_attention_wide_heads",
                                         "pre_gelu_mean_relative"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace headlight
