#include "headlight/train/metrics.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

TEST(Metrics, CountsByHand) {
  MetricsSum sum(3);
  sum.Add(0, 0, 0.1);
  sum.Add(0, 1, 0.9);
  sum.Add(1, 1, 0.2);
  sum.Add(1, 1, 0.4);
  const ClassificationMetrics metrics = sum.Result();
  EXPECT_EQ(metrics.count, 4);
  EXPECT_DOUBLE_EQ(metrics.loss, 0.4);
  EXPECT_DOUBLE_EQ(metrics.accuracy, 0.75);
  // Class 0: tp 1, fn 1: 2/3. Class 1: tp 2, fp 1: 4/5. Class 2 does not occur.
  EXPECT_DOUBLE_EQ(metrics.macro_f1, (2.0 / 3 + 4.0 / 5) / 2);
  EXPECT_EQ(metrics.confusion[0][1], 1);
  EXPECT_EQ(metrics.confusion[1][0], 0);
}

TEST(Metrics, APredictedClassWithoutLabelsCountsAsZero) {
  MetricsSum sum(2);
  sum.Add(0, 1, 1.0);
  EXPECT_DOUBLE_EQ(sum.Result().macro_f1, 0.0);
}

TEST(Metrics, NothingIsZero) {
  const ClassificationMetrics metrics = MetricsSum(2).Result();
  EXPECT_EQ(metrics.count, 0);
  EXPECT_EQ(metrics.accuracy, 0);
}

TEST(Metrics, RefusesClassesOutOfRange) {
  MetricsSum sum(2);
  EXPECT_THROW(sum.Add(2, 0, 0), Error);
  EXPECT_THROW(sum.Add(0, -1, 0), Error);
}

}  // namespace
}  // namespace headlight
