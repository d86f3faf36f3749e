#include "headlight/experiment/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

TEST(Interval, StudentPointsAreThoseOfTheTables) {
  EXPECT_NEAR(StudentPoint95(1), 12.7062, 1e-4);
  EXPECT_NEAR(StudentPoint95(2), 4.30265, 1e-5);
  EXPECT_NEAR(StudentPoint95(4), 2.77645, 1e-5);
  EXPECT_NEAR(StudentPoint95(9), 2.26216, 1e-5);
  EXPECT_NEAR(StudentPoint95(1000000), 1.95996, 1e-4);
  EXPECT_THROW(StudentPoint95(0), Error);
}

TEST(Interval, CdfIsSymmetricAndExactForOneDegree) {
  for (double t : {-3.0, -0.5, 0.0, 0.7, 5.0}) {
    EXPECT_NEAR(StudentCdf(t, 1), 0.5 + std::atan(t) / std::acos(-1.0), 1e-12);  // Cauchy
    EXPECT_NEAR(StudentCdf(t, 7) + StudentCdf(-t, 7), 1, 1e-12);
  }
}

TEST(Interval, MeanOfThreeSeeds) {
  const std::vector<double> values = {0.80, 0.82, 0.84};
  const MeanInterval interval = MeanWithInterval(values);
  EXPECT_NEAR(interval.mean, 0.82, 1e-12);
  EXPECT_NEAR(interval.half_width, 4.30265 * 0.02 / std::sqrt(3.0), 1e-6);
  EXPECT_EQ(FormatInterval(interval, 100, 1), "82.0 ± 5.0");
}

TEST(Interval, OneSeedHasNoInterval) {
  const std::vector<double> values = {0.5};
  EXPECT_TRUE(std::isnan(MeanWithInterval(values).half_width));
  EXPECT_EQ(FormatInterval(MeanWithInterval(values), 100, 1), "50.0");
  EXPECT_THROW(MeanWithInterval({}), Error);
}

TEST(Interval, WelchSeparatesWhatIsApart) {
  const std::vector<double> a = {0.80, 0.81, 0.79}, b = {0.90, 0.91, 0.92}, c = {0.79, 0.83, 0.80};
  EXPECT_LT(WelchPValue(a, b), 0.01);
  EXPECT_GT(WelchPValue(a, c), 0.2);
  EXPECT_EQ(WelchPValue(std::vector<double>{1, 1}, std::vector<double>{1, 1}), 1.0);
  EXPECT_EQ(WelchPValue(std::vector<double>{1, 1}, std::vector<double>{2, 2}), 0.0);
}

}  // namespace
}  // namespace headlight
