#include "headlight/kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/kernels/softmax/softmax_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Softmax, MatchesTheReference) {
  for (int64_t columns : {1, 2, 7, 16, 17, 64, 1009}) {
    Tensor x = RandomMatrix(11, columns, 1, 3);
    // Large scores: without subtracting the maximum these overflow.
    for (int64_t r = 0; r < 11; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        x.view<float>()(r, c) = 50 * x.view<float>()(r, c) + 300;
    }
    Tensor y = RandomMatrix(11, columns, 2, 3), lse = RandomVector(11, 3);
    Tensor wanted = Wide(y), wanted_lse = Wide(lse);
    Softmax(x, y);
    LogSumExp(x, lse);
    reference::Softmax(Wide(x), wanted);
    reference::LogSumExp(Wide(x), wanted_lse);
    // The exponential's 1.5 units and the sum's; what lies below 2^-126 comes out as 0.
    Tensor magnitude = Wide(wanted);
    for (int64_t i = 0; i < magnitude.elements(); ++i) magnitude.data<double>()[i] += 1e-31;
    ExpectWithin(y, wanted, magnitude, 24);
    ExpectWithin(lse, wanted_lse, wanted_lse, 1);
    Softmax(x, x);  // in place
    ExpectSameBits(x, y);
  }
}

TEST(Softmax, HandlesTheEdges) {
  Tensor x = RandomMatrix(4, 21, 1), y = x.Clone(MemoryTag::kOther), lse = RandomVector(4, 2);
  for (int64_t c = 0; c < 21; ++c) x.view<float>()(0, c) = -kInfinity;
  x.view<float>()(1, 3) = std::numeric_limits<float>::quiet_NaN();
  x.view<float>()(2, 20) = kInfinity;
  x.view<float>()(3, 5) = -kInfinity;
  Softmax(x, y);
  LogSumExp(x, lse);
  for (int64_t c = 0; c < 21; ++c) {
    EXPECT_EQ(y.view<float>()(0, c), 0);
    EXPECT_TRUE(std::isnan(y.view<float>()(1, c)));
    EXPECT_TRUE(std::isnan(y.view<float>()(2, c)));
    EXPECT_EQ(y.view<float>()(3, c) == 0, c == 5);
  }
  EXPECT_EQ(lse.data<float>()[0], -kInfinity);
  EXPECT_TRUE(std::isnan(lse.data<float>()[1]));
  EXPECT_TRUE(std::isnan(lse.data<float>()[2]));
  const Tensor none = Tensor::Zeros({4, 0}, DType::kF32, MemoryTag::kOther);
  LogSumExp(none, lse);
  EXPECT_EQ(lse.data<float>()[3], -kInfinity);
}

TEST(Softmax, RowsSumToOne) {
  const Tensor x = RandomMatrix(5, 300, 1);
  Tensor y = x.Clone(MemoryTag::kOther);
  Softmax(x, y);
  for (int64_t r = 0; r < 5; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < 300; ++c) sum += static_cast<double>(y.view<float>()(r, c));
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(Softmax, SameBitsForAnyThreads) {
  const Tensor x = RandomMatrix(70, 300, 1);
  ExpectSameForAnyThreads([&] {
    Tensor y = x.Clone(MemoryTag::kOther);
    Softmax(x, y);
    return y;
  });
}

TEST(Softmax, RefusesWhatDoesNotFit) {
  const Tensor x = RandomMatrix(3, 4, 1);
  Tensor y = RandomMatrix(4, 3, 1), lse = RandomVector(4, 1);
  EXPECT_THROW(Softmax(x, y), Error);
  EXPECT_THROW(LogSumExp(x, lse), Error);
}

}  // namespace
}  // namespace headlight
