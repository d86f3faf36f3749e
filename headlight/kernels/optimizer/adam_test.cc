#include "headlight/kernels/optimizer/adam.h"

#include <gtest/gtest.h>

#include <vector>

#include "headlight/base/error.h"
#include "headlight/kernels/optimizer/adam_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

struct State {
  explicit State(int64_t size, DType dtype = DType::kF32)
      : value(RandomVector(size, 1, dtype)),
        gradient(RandomVector(size, 2, dtype)),
        first(Tensor::Zeros({size}, dtype, MemoryTag::kOther)),
        second(Tensor::Zeros({size}, dtype, MemoryTag::kOther)) {}
  AdamTensors Tensors() { return {value, gradient, first, second}; }
  Tensor value, gradient, first, second;
};

// One element, two steps, by hand: m = 0.1 g, v = 0.001 g^2, so the first step is lr g / (|g| +
// eps) whatever g is; the second, with the same g, likewise.
TEST(Adam, FirstStepsAreThoseOfThePaper) {
  State s(1, DType::kF64);
  s.value.data<double>()[0] = 1;
  s.gradient.data<double>()[0] = -4;
  AdamOptions options;
  options.learning_rate = 0.5;
  options.epsilon = 1;
  AdamStep(options, 1, 1, s.Tensors(), AfterStep::kKeepGradient);
  EXPECT_NEAR(s.value.data<double>()[0], 1 + 0.5 * 4 / 5, 1e-12);
  AdamStep(options, 2, 1, s.Tensors(), AfterStep::kKeepGradient);
  EXPECT_NEAR(s.value.data<double>()[0], 1 + 2 * 0.5 * 4 / 5, 1e-12);
  // The scale acts on the gradient before all else.
  State t(1, DType::kF64);
  t.value.data<double>()[0] = 1;
  t.gradient.data<double>()[0] = -8;
  AdamStep(options, 1, 0.5, t.Tensors(), AfterStep::kClearGradient);
  EXPECT_NEAR(t.value.data<double>()[0], 1 + 0.5 * 4 / 5, 1e-12);
  EXPECT_EQ(t.gradient.data<double>()[0], 0);
}

TEST(Adam, DecayIsCoupledOrNot) {
  AdamOptions options;
  options.learning_rate = 0.5;
  options.weight_decay = 0.1;
  State decoupled(1, DType::kF64), coupled(1, DType::kF64);
  for (State* s : {&decoupled, &coupled}) {
    s->value.data<double>()[0] = 2;
    s->gradient.FillZero();
  }
  AdamStep(options, 1, 1, decoupled.Tensors(), AfterStep::kKeepGradient);
  EXPECT_NEAR(decoupled.value.data<double>()[0], 2 * (1 - 0.05), 1e-12);
  options.decay = WeightDecay::kCoupled;
  AdamStep(options, 1, 1, coupled.Tensors(), AfterStep::kKeepGradient);
  EXPECT_NEAR(coupled.value.data<double>()[0], 2 - 0.5, 1e-6);  // g = 0.2, a whole step
}

TEST(Adam, MatchesTheReferenceOverTenSteps) {
  for (int64_t size : {1, 7, 16, 17, 100, 1009}) {
    for (WeightDecay decay : {WeightDecay::kCoupled, WeightDecay::kDecoupled}) {
      State fast(size), wide(size, DType::kF64);
      AdamOptions options;
      options.weight_decay = 0.01;
      options.decay = decay;
      for (int step = 1; step <= 10; ++step) {
        const Tensor gradient = RandomVector(size, static_cast<uint64_t>(step));
        fast.gradient.CopyFrom(gradient);
        wide.gradient.CopyFrom(gradient);
        AdamStep(options, step, 0.7, fast.Tensors(), AfterStep::kClearGradient);
        reference::AdamStep(options, step, 0.7, wide.Tensors(), AfterStep::kKeepGradient);
      }
      // Each step rounds value, moments and ratio a few times; values are of size 1.
      Tensor magnitude = Magnitude(wide.value);
      for (int64_t i = 0; i < size; ++i) magnitude.data<double>()[i] += 0.1;
      ExpectWithin(fast.value, wide.value, magnitude, 10);
      for (int64_t i = 0; i < size; ++i) EXPECT_EQ(fast.gradient.data<float>()[i], 0);
    }
  }
}

TEST(Adam, SameBitsForAnyThreads) {
  ExpectSameForAnyThreads([] {
    State s(100003);
    AdamStep({}, 1, 1, s.Tensors(), AfterStep::kKeepGradient);
    return s.value;
  });
}

TEST(SumOfSquares, MatchesTheReferenceForAnyThreads) {
  for (int64_t size : {0, 1, 15, 16, 17, 33, 100003}) {
    const Tensor x = RandomVector(size, 1);
    const double wanted = reference::SumOfSquares(x);
    EXPECT_NEAR(SumOfSquares(x), wanted, 1e-12 * wanted);
  }
  const Tensor x = RandomVector(1000003, 1);
  ExpectSameForAnyThreads([&] {
    Tensor sum = Tensor::Zeros({1}, DType::kF64, MemoryTag::kOther);
    sum.data<double>()[0] = SumOfSquares(x);
    return sum;
  });
}

TEST(SumOfSquares, OfNamedRows) {
  const Tensor x = RandomMatrix(50, 19, 1, 3);
  const std::vector<int32_t> rows = {0, 7, 49}, outside = {50};
  double wanted = 0;
  for (int32_t row : rows) {
    wanted += reference::SumOfSquares(x.Slice(0, row, row + 1).Clone(MemoryTag::kOther));
  }
  EXPECT_NEAR(SumOfSquares(x, rows), wanted, 1e-12 * wanted);
  EXPECT_THROW(SumOfSquares(x, outside), Error);
}

TEST(Adam, RefusesWhatDoesNotFit) {
  State s(5);
  EXPECT_THROW(AdamStep({}, 0, 1, s.Tensors(), AfterStep::kKeepGradient), Error);
  State other(6);
  EXPECT_THROW(
      AdamStep({}, 1, 1, {s.value, other.gradient, s.first, s.second}, AfterStep::kKeepGradient),
      Error);
}

}  // namespace
}  // namespace headlight
