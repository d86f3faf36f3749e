// A few dozen random problems; attention_property_long_test.cc draws many more.
#include <gtest/gtest.h>

#include "headlight/kernels/attention/attention_property_test-inl.h"

namespace headlight {
namespace {

TEST(AttentionProperty, RandomCombinations) {
  const int threads = NumThreads();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    EXPECT_EQ(attention_test::CheckRandomProblem(seed), "");
  }
  SetNumThreads(threads);
}

}  // namespace
}  // namespace headlight
