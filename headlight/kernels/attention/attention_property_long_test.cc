// Random problems for HEADLIGHT_PROPERTY_SECONDS (60 unless given), from
// HEADLIGHT_PROPERTY_SEED (1000 unless given) on.
#include <gtest/gtest.h>

#include <cstdlib>

#include "headlight/base/clock.h"
#include "headlight/kernels/attention/attention_property_test-inl.h"

namespace headlight {
namespace {

double FromEnvironment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atof(text);
}

TEST(AttentionPropertyLong, RandomCombinations) {
  const int threads = NumThreads();
  const double end = MonotonicSeconds() + FromEnvironment("HEADLIGHT_PROPERTY_SECONDS", 60);
  uint64_t seed = static_cast<uint64_t>(FromEnvironment("HEADLIGHT_PROPERTY_SEED", 1000));
  int64_t drawn = 0;
  for (; MonotonicSeconds() < end; ++seed, ++drawn) {
    ASSERT_EQ(attention_test::CheckRandomProblem(seed), "");
  }
  RecordProperty("problems", std::to_string(drawn));
  EXPECT_GT(drawn, 0);
  SetNumThreads(threads);
}

}  // namespace
}  // namespace headlight
