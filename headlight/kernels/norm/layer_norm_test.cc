#include "headlight/kernels/norm/layer_norm.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/kernels/norm/layer_norm_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

// A few roundings each of values of size 1 (normalised), and row sums whose errors average out.
constexpr double kFactor = 16;

struct Case {
  Case(int64_t rows, int64_t features, int64_t gap, DType dtype = DType::kF32)
      : x(RandomMatrix(rows, features, 1, gap, dtype)),
        residual(RandomMatrix(rows, features, 2, gap, dtype)),
        dy(RandomMatrix(rows, features, 3, gap, dtype)),
        add(RandomMatrix(rows, features, 4, gap, dtype)),
        gamma(RandomVector(features, 5, dtype)),
        beta(RandomVector(features, 6, dtype)),
        y(RandomMatrix(rows, features, 7, gap, dtype)),
        sum(RandomMatrix(rows, features, 8, gap, dtype)),
        dx(RandomMatrix(rows, features, 9, gap, dtype)),
        mean(RandomVector(rows, 10, dtype)),
        inverse(RandomVector(rows, 11, dtype)),
        dgamma(RandomVector(features, 12, dtype)),
        dbeta(RandomVector(features, 13, dtype)) {}

  LayerNormInput Input() const { return {x, &residual, gamma, beta, 1e-5}; }
  LayerNormOutput Output() { return {y, &sum, &mean, &inverse}; }
  LayerNormBackwardInput BackwardInput() const { return {dy, sum, gamma, mean, inverse, &add}; }
  LayerNormGradient Gradient() { return {dx, dgamma, dbeta}; }

  Tensor x, residual, dy, add, gamma, beta, y, sum, dx, mean, inverse, dgamma, dbeta;
};

// What |y| is made of, per element: |gamma| (|s| + |mean|) inverse + |beta|, in the f64 case.
Tensor OutputMagnitude(const Case& c) {
  Tensor m = Magnitude(c.sum);
  for (int64_t r = 0; r < m.size(0); ++r) {
    for (int64_t i = 0; i < m.size(1); ++i) {
      double& value = m.view<double>()(r, i);
      value = std::fabs(At(c.gamma, i)) * (value + 1) * At(c.inverse, r) + std::fabs(At(c.beta, i));
    }
  }
  return m;
}

Tensor Constant(const Tensor& like, double value) {
  Tensor result = Wide(like);
  std::fill_n(result.data<double>(), result.elements(), value);
  return result;
}

TEST(LayerNorm, MatchesTheReferenceForwardAndBackward) {
  for (int64_t features : {1, 2, 7, 8, 15, 16, 17, 31, 64, 65, 256, 1009}) {
    for (int64_t rows : {0, 1, 3, 63, 64, 65, 300}) {
      if (rows > 70 && features > 70) continue;
      SCOPED_TRACE(fmt::format("{} x {}", rows, features));
      Case fast(rows, features, 3), wide(rows, features, 0, DType::kF64);
      LayerNormForward(fast.Input(), fast.Output());
      reference::LayerNormForward(wide.Input(), wide.Output());
      ExpectWithin(fast.sum, wide.sum, Magnitude(wide.sum), 1);
      if (features < 3) continue;  // variances of next to nothing: 1 / sqrt blows roundings up
      const Tensor magnitude = OutputMagnitude(wide);
      ExpectWithin(fast.y, wide.y, magnitude, kFactor);
      ExpectWithin(fast.mean, wide.mean, Constant(wide.mean, 2), kFactor);
      ExpectWithin(fast.inverse, wide.inverse, wide.inverse, kFactor);
      LayerNormBackward(fast.BackwardInput(), fast.Gradient());
      reference::LayerNormBackward(wide.BackwardInput(), wide.Gradient());
      // |dx| stays within a few |dy gamma| inverse; |dgamma| adds up |dy| |n| over the rows.
      ExpectWithin(fast.dx, wide.dx, Constant(wide.dx, 30), kFactor);
      const double count = static_cast<double>(rows) + 1;
      ExpectWithin(fast.dgamma, wide.dgamma, Constant(wide.dgamma, count), kFactor);
      ExpectWithin(fast.dbeta, wide.dbeta, Constant(wide.dbeta, count), kFactor);
    }
  }
}

TEST(LayerNorm, GradientsAgreeWithCentralDifferences) {
  Case c(4, 5, 0, DType::kF64);
  const auto loss = [&] {
    LayerNormForward(c.Input(), c.Output());
    return Dot(c.y, c.dy) + Dot(c.sum, c.add);
  };
  loss();
  c.dgamma.FillZero();
  c.dbeta.FillZero();
  LayerNormBackward(c.BackwardInput(), c.Gradient());
  const Tensor dx = c.dx.Clone(MemoryTag::kOther), dgamma = c.dgamma.Clone(MemoryTag::kOther);
  const Tensor dbeta = c.dbeta.Clone(MemoryTag::kOther);
  ExpectGradient(c.x, dx, loss, 1e-6);
  ExpectGradient(c.residual, dx, loss, 1e-6);
  ExpectGradient(c.gamma, dgamma, loss, 1e-6);
  ExpectGradient(c.beta, dbeta, loss, 1e-6);
}

TEST(LayerNorm, ParameterGradientsAccumulate) {
  Case once(70, 20, 0), twice(70, 20, 0);
  once.dgamma.FillZero();
  twice.dgamma.FillZero();
  LayerNormForward(once.Input(), once.Output());
  LayerNormForward(twice.Input(), twice.Output());
  LayerNormBackward(once.BackwardInput(), once.Gradient());
  LayerNormBackward(twice.BackwardInput(), twice.Gradient());
  LayerNormBackward(twice.BackwardInput(), twice.Gradient());
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_FLOAT_EQ(twice.dgamma.data<float>()[i], 2 * once.dgamma.data<float>()[i]);
  }
}

TEST(LayerNorm, SameBitsForAnyThreadsAndInAnyCompany) {
  Case c(700, 70, 0);
  ExpectSameForAnyThreads([&] {
    LayerNormForward(c.Input(), c.Output());
    return c.y;
  });
  for (int which : {0, 1, 2}) {
    ExpectSameForAnyThreads([&] {
      c.dgamma.FillZero();
      c.dbeta.FillZero();
      LayerNormBackward(c.BackwardInput(), c.Gradient());
      return (which == 0 ? c.dx : which == 1 ? c.dgamma : c.dbeta).Clone(MemoryTag::kOther);
    });
  }
  for (int64_t row : {0, 1, 127, 128, 699}) {
    const Tensor x = c.x.Slice(0, row, row + 1), residual = c.residual.Slice(0, row, row + 1);
    Tensor y = RandomMatrix(1, 70, 1);
    LayerNormForward({x, &residual, c.gamma, c.beta, 1e-5}, {y, nullptr, nullptr, nullptr});
    ExpectSameBits(y, c.y.Slice(0, row, row + 1));
  }
}

TEST(LayerNorm, WorksInPlace) {
  Case apart(9, 40, 0), same(9, 40, 0);
  LayerNormForward(apart.Input(), apart.Output());
  LayerNormForward(same.Input(), {same.residual, &same.x, nullptr, nullptr});
  ExpectSameBits(same.residual, apart.y);
  ExpectSameBits(same.x, apart.sum);
  LayerNormBackward(apart.BackwardInput(), apart.Gradient());
  LayerNormBackward({same.dy, same.x, same.gamma, apart.mean, apart.inverse, &same.add},
                    {same.dy, same.dgamma, same.dbeta});
  ExpectSameBits(same.dy, apart.dx);
}

TEST(LayerNorm, NotANumberStaysInItsRow) {
  Case c(5, 20, 0);
  c.x.view<float>()(2, 3) = std::numeric_limits<float>::quiet_NaN();
  LayerNormForward(c.Input(), c.Output());
  for (int64_t r = 0; r < 5; ++r) EXPECT_EQ(std::isnan(c.y.view<float>()(r, 7)), r == 2);
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  Case c(5, 20, 0);
  const Tensor gamma = RandomVector(19, 1);
  EXPECT_THROW(LayerNormForward({c.x, nullptr, gamma, c.beta, 1e-5}, c.Output()), Error);
  Tensor y = RandomMatrix(4, 20, 1);
  EXPECT_THROW(LayerNormForward(c.Input(), {y, nullptr, nullptr, nullptr}), Error);
  EXPECT_THROW(LayerNormBackward({y, c.sum, c.gamma, c.mean, c.inverse, nullptr}, c.Gradient()),
               Error);
}

}  // namespace
}  // namespace headlight
