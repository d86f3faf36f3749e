#include "headlight/kernels/peak/peak.h"

#include <gtest/gtest.h>

#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"

namespace headlight {
namespace {

TEST(Peak, FmaRateIsOfAPlausibleSize) {
  const int before = NumThreads();
  const double one = MeasureFmaPeak(1);
  RecordProperty("gflops", static_cast<int>(one * 1e-9));
  // From a slow emulated core to 64 lanes of FMA at 6 GHz.
  EXPECT_GT(one, 1e8);
  EXPECT_LT(one, 8e11);
  EXPECT_EQ(NumThreads(), before);
}

TEST(Peak, Bf16RateIsOfAPlausibleSize) {
  const double one = MeasurePeak(Precision::kBF16, 1);
  EXPECT_GT(one, 1e8);
  EXPECT_LT(one, 2e13);  // tiles: a few thousand operations a cycle
}

TEST(Peak, BandwidthIsOfAPlausibleSize) {
  const double rate = MeasureReadBandwidth(1);
  EXPECT_GT(rate, 1e8);
  EXPECT_LT(rate, 2e12);
}

TEST(Peak, RefusesNoThreads) {
  EXPECT_THROW(MeasureFmaPeak(0), Error);
  EXPECT_THROW(MeasurePeak(Precision::kBF16, 0), Error);
  EXPECT_THROW(MeasureReadBandwidth(-1), Error);
}

}  // namespace
}  // namespace headlight
