#include "headlight/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headlight {
namespace {

// Known answers published with the Random123 library (kat_vectors, philox4x32-10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0}, {0, 0, 0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, MomentsOfUniformAndNormal) {
  RandomStream random(7, 0);
  const int count = 100000;
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < count; ++i) {
    uniform += random.Uniform();
    const double value = random.Normal();
    normal += value;
    square += value * value;
  }
  // Five standard errors of each mean.
  EXPECT_NEAR(uniform / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(normal / count, 0.0, 5 * std::sqrt(1.0 / count));
  EXPECT_NEAR(square / count, 1.0, 5 * std::sqrt(2.0 / count));
}

TEST(RandomStream, ShuffleIsAPermutationAndDependsOnSeedAndStream) {
  std::vector<int> a(100), b(100), c(100);
  std::iota(a.begin(), a.end(), 0);
  b = c = a;
  RandomStream(1, 0).Shuffle(a);
  RandomStream(1, 0).Shuffle(b);
  RandomStream(1, 1).Shuffle(c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  std::sort(c.begin(), c.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(c[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace headlight
