#include "headlight/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headlight {
namespace {

TEST(Schedule, ConstantIsConstantAfterTheWarmUp) {
  const Schedule schedule{ScheduleKind::kConstant, 0.5, 4, 0};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 0), 0.125);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 3), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1000000), 0.5);
}

TEST(Schedule, LinearFallsToZeroAtTheEnd) {
  const Schedule schedule{ScheduleKind::kLinear, 1.0, 2, 12};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 0), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 2), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 7), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 11), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 12), 0.0);
}

TEST(Schedule, CosineFollowsItsFormula) {
  const Schedule schedule{ScheduleKind::kCosine, 2.0, 0, 8};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 0), 2.0);
  EXPECT_NEAR(LearningRate(schedule, 2), 1 + std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(LearningRate(schedule, 4), 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 8), 0.0);
}

TEST(Schedule, AllWarmUpNeverDividesByZero) {
  const Schedule schedule{ScheduleKind::kLinear, 1.0, 10, 10};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 9), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 10), 0.0);
}

}  // namespace
}  // namespace headlight
