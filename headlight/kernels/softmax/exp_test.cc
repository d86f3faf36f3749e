#include "headlight/kernels/softmax/exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace headlight {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Sweep(float from, float to, int count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    x[static_cast<size_t>(i)] =
        from + (to - from) * static_cast<float>(i) / static_cast<float>(count - 1);
  }
  return x;
}

// Largest error in units in the last place of the true value.
template <typename Truth>
double WorstUlp(const std::vector<float>& x, const std::vector<float>& y, const Truth& truth) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = truth(static_cast<double>(x[i]));
    const double ulp = std::ldexp(1.0, std::ilogb(wanted) - 23);
    worst = std::fmax(worst, std::fabs(static_cast<double>(y[i]) - wanted) / ulp);
  }
  return worst;
}

TEST(Exp, StaysWithinItsBoundOverTheWholeRange) {
  std::vector<float> x = Sweep(-86.64f, 88.72f, 2000003), y(x.size());
  ExpArray(x.data(), static_cast<int64_t>(x.size()), y.data());
  EXPECT_LE(WorstUlp(x, y, [](double v) { return std::exp(v); }), 1.5);
  EXPECT_GT(WorstUlp(x, y, [](double v) { return std::exp(v * (1 + 1e-6)); }), 1.5);
}

TEST(ExpNonPositive, StaysWithinItsBoundOverTheWholeRange) {
  std::vector<float> x = Sweep(-87.33f, 0, 2000003), y(x.size());
  ExpNonPositiveArray(x.data(), static_cast<int64_t>(x.size()), y.data());
  EXPECT_LE(WorstUlp(x, y, [](double v) { return std::exp(v); }), 1.5);
  x = Sweep(-126, 0, 2000003);
  Exp2NonPositiveArray(x.data(), static_cast<int64_t>(x.size()), y.data());
  EXPECT_LE(WorstUlp(x, y, [](double v) { return std::exp2(v); }), 1.5);
}

TEST(Exp, HandlesTheEdges) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{0, -0.0f, -kInfinity, kInfinity, nan, -1e30f, 1e30f, 89, -88};
  std::vector<float> y(x.size());
  ExpArray(x.data(), 9, y.data());
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], kInfinity);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], 0);
  EXPECT_EQ(y[6], kInfinity);
  EXPECT_EQ(y[7], kInfinity);
  EXPECT_EQ(y[8], 0);
  const std::vector<float> low{0, -0.0f, -kInfinity, nan, -1e30f, -1000};
  for (auto* function : {ExpNonPositiveArray, Exp2NonPositiveArray}) {
    function(low.data(), 6, y.data());
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], 0);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 0);
    EXPECT_EQ(y[5], 0);
  }
}

TEST(Exp, AnElementDoesNotDependOnItsPlace) {
  const std::vector<float> x = Sweep(-20, 20, 40);
  std::vector<float> all(40), one(1), guarded(42, 7.0f);
  ExpArray(x.data(), 40, all.data());
  for (size_t i = 0; i < x.size(); ++i) {
    ExpArray(&x[i], 1, one.data());
    EXPECT_EQ(one[0], all[i]);
  }
  for (int64_t count = 0; count <= 40; ++count) {
    guarded.assign(42, 7.0f);
    ExpArray(x.data(), count, guarded.data() + 1);
    EXPECT_EQ(guarded[0], 7.0f);
    EXPECT_EQ(guarded[static_cast<size_t>(count) + 1], 7.0f);
  }
}

}  // namespace
}  // namespace headlight
