#include "headlight/kernels/loss/cross_entropy.h"

#include <gtest/gtest.h>

#include <vector>

#include "headlight/base/error.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

const std::vector<int32_t> kLabels = {2, 0, 1};

TEST(CrossEntropy, KnownValues) {
  Tensor logits = Tensor::Zeros({1, 4}, DType::kF64, MemoryTag::kOther);
  Tensor losses = RandomVector(1, 1, DType::kF64);
  const std::vector<int32_t> label = {1};
  EXPECT_DOUBLE_EQ(CrossEntropyForward(logits, label, {0}, losses), std::log(4.0));
  EXPECT_DOUBLE_EQ(CrossEntropyForward(logits, label, {0.1}, losses), std::log(4.0));
  // log p = (x - log(3 + e^x)) for the label's logit x = log 5.
  logits.data<double>()[1] = std::log(5.0);
  EXPECT_NEAR(CrossEntropyForward(logits, label, {0}, losses), std::log(8.0 / 5), 1e-14);
  // Smoothing 0.4 gives each class 0.1: -(0.7 log(5/8) + 3 * 0.1 log(1/8)).
  EXPECT_NEAR(CrossEntropyForward(logits, label, {0.4}, losses),
              0.7 * std::log(8.0 / 5) + 0.3 * std::log(8.0), 1e-14);
}

TEST(CrossEntropy, GradientAgreesWithCentralDifferences) {
  Tensor logits = RandomMatrix(3, 4, 1, 0, DType::kF64), gradient = logits.Clone(MemoryTag::kOther);
  Tensor losses = RandomVector(3, 2, DType::kF64);
  for (double smoothing : {0.0, 0.1}) {
    const auto loss = [&] { return CrossEntropyForward(logits, kLabels, {smoothing}, losses); };
    CrossEntropyBackward(logits, kLabels, {smoothing}, 1.0 / 3, gradient);
    ExpectGradient(logits, gradient, loss);
  }
}

TEST(CrossEntropy, SurvivesHugeLogitsAndCarriesNotANumber) {
  Tensor logits = Tensor::Zeros({3, 4}, DType::kF32, MemoryTag::kOther);
  Tensor losses = RandomVector(3, 2), gradient = logits.Clone(MemoryTag::kOther);
  logits.view<float>()(0, 0) = 1e30f;
  logits.view<float>()(1, 0) = 1e30f;
  logits.view<float>()(2, 3) = std::numeric_limits<float>::quiet_NaN();
  CrossEntropyForward(logits, kLabels, {0}, losses);
  EXPECT_FLOAT_EQ(losses.data<float>()[0], 1e30f);
  EXPECT_EQ(losses.data<float>()[1], 0);
  EXPECT_TRUE(std::isnan(losses.data<float>()[2]));
  CrossEntropyBackward(logits, kLabels, {0}, 1, gradient);
  EXPECT_EQ(gradient.view<float>()(0, 2), -1);
  EXPECT_EQ(gradient.view<float>()(1, 0), 0);
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const Tensor logits = RandomMatrix(3, 4, 1);
  Tensor losses = RandomVector(3, 2);
  const std::vector<int32_t> outside = {0, 4, 1}, few = {0, 1};
  EXPECT_THROW(CrossEntropyForward(logits, outside, {0}, losses), Error);
  EXPECT_THROW(CrossEntropyForward(logits, few, {0}, losses), Error);
  EXPECT_THROW(CrossEntropyForward(logits, kLabels, {1}, losses), Error);
}

}  // namespace
}  // namespace headlight
