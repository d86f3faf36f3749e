#include "headlight/kernels/pooling/pooling.h"

#include <gtest/gtest.h>

#include <vector>

#include "headlight/base/error.h"
#include "headlight/kernels/pooling/pooling_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

const std::vector<int64_t> kOffsets = {0, 3, 3, 100, 101, 203};
constexpr PoolingKind kKinds[] = {PoolingKind::kMean, PoolingKind::kFirst, PoolingKind::kMax};

Tensor Tokens(int64_t rows, int64_t columns) {
  return Tensor::Zeros({rows, columns}, DType::kI32, MemoryTag::kOther);
}

TEST(Pooling, MatchesTheReference) {
  for (int64_t features : {1, 7, 33, 256}) {
    const Tensor x = RandomMatrix(203, features, 1, 3), dy = RandomMatrix(5, features, 2, 3);
    for (PoolingKind kind : kKinds) {
      Tensor y = RandomMatrix(5, features, 3, 3), dx = RandomMatrix(203, features, 4, 3);
      Tensor largest = Tokens(5, features), wanted_largest = Tokens(5, features);
      Tensor wanted = Wide(y), wanted_dx = Wide(dx), magnitude = Wide(y);
      PoolingForward(kind, x, kOffsets, y, &largest);
      PoolingBackward(kind, dy, kOffsets, &largest, dx);
      reference::PoolingForward(kind, Wide(x), kOffsets, wanted, &wanted_largest);
      reference::PoolingBackward(kind, Wide(dy), kOffsets, &wanted_largest, wanted_dx);
      reference::PoolingForward(kind, Magnitude(x), kOffsets, magnitude, nullptr);
      if (kind == PoolingKind::kMax) {
        ExpectSameBits(largest, wanted_largest);
        magnitude = Magnitude(wanted);
      }
      ExpectWithin(y, wanted, magnitude, 8);  // a hundred additions, errors of random sign
      ExpectWithin(dx, wanted_dx, Magnitude(wanted_dx), 1);
    }
  }
}

TEST(AttentionPooling, MatchesTheReference) {
  for (int64_t features : {1, 7, 33, 256}) {
    const Tensor x = RandomMatrix(203, features, 1, 3), dy = RandomMatrix(5, features, 2, 3);
    Tensor query = RandomVector(features, 3);
    for (int64_t i = 0; i < features; ++i) query.data<float>()[i] *= 0.3f;
    Tensor y = RandomMatrix(5, features, 4, 3), dx = RandomMatrix(203, features, 5, 3);
    Tensor weights = RandomVector(203, 6), dquery = RandomVector(features, 7);
    Tensor wanted = Wide(y), wanted_dx = Wide(dx);
    Tensor wanted_weights = Wide(weights), wanted_dquery = Wide(dquery);
    const Tensor wide_x = Wide(x), wide_query = Wide(query);
    AttentionPoolingForward(x, query, kOffsets, weights, y);
    AttentionPoolingBackward({x, query, weights, kOffsets}, dy, {dx, dquery});
    reference::AttentionPoolingForward(wide_x, wide_query, kOffsets, wanted_weights, wanted);
    reference::AttentionPoolingBackward({wide_x, wide_query, wanted_weights, kOffsets}, Wide(dy),
                                        {wanted_dx, wanted_dquery});
    // A weight's relative error is the absolute error of its score, a dot product of size
    // 0.3 sqrt(features); gradients multiply further dot products of size sqrt(features).
    const auto scale = static_cast<double>(features);
    const auto sized = [&](const Tensor& like, double size) {
      Tensor magnitude = Wide(like);
      std::fill_n(magnitude.data<double>(), magnitude.elements(), size);
      return magnitude;
    };
    ExpectWithin(weights, wanted_weights, sized(weights, 1 + std::sqrt(scale)), 4);
    ExpectWithin(y, wanted, sized(y, 3 * (1 + std::sqrt(scale))), 4);
    ExpectWithin(dx, wanted_dx, sized(dx, 3 + scale), 4);
    ExpectWithin(dquery, wanted_dquery, sized(dquery, 10 + 10 * scale), 4);
  }
}

TEST(Pooling, GradientsAgreeWithCentralDifferences) {
  const std::vector<int64_t> offsets = {0, 4, 4, 6};
  Tensor x = RandomMatrix(6, 3, 1, 0, DType::kF64), y = RandomMatrix(3, 3, 2, 0, DType::kF64);
  const Tensor dy = RandomMatrix(3, 3, 3, 0, DType::kF64);
  Tensor dx = x.Clone(MemoryTag::kOther), largest = Tokens(3, 3);
  for (PoolingKind kind : kKinds) {
    const auto loss = [&] {
      PoolingForward(kind, x, offsets, y, &largest);
      return Dot(y, dy);
    };
    loss();
    PoolingBackward(kind, dy, offsets, &largest, dx);
    ExpectGradient(x, dx, loss);
  }
  Tensor query = RandomVector(3, 4, DType::kF64), weights = RandomVector(6, 5, DType::kF64);
  Tensor dquery = Tensor::Zeros({3}, DType::kF64, MemoryTag::kOther);
  const auto loss = [&] {
    AttentionPoolingForward(x, query, offsets, weights, y);
    return Dot(y, dy);
  };
  loss();
  AttentionPoolingBackward({x, query, weights, offsets}, dy, {dx, dquery});
  ExpectGradient(x, dx, loss);
  ExpectGradient(query, dquery, loss);
}

TEST(Pooling, EmptySequencesGiveZerosAndNotANumberIsLargest) {
  Tensor x = RandomMatrix(203, 3, 1), y = RandomMatrix(5, 3, 2), largest = Tokens(5, 3);
  x.view<float>()(50, 1) = std::numeric_limits<float>::quiet_NaN();
  for (PoolingKind kind : kKinds) {
    PoolingForward(kind, x, kOffsets, y, &largest);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(y.view<float>()(1, i), 0);
    EXPECT_EQ(std::isnan(y.view<float>()(2, 1)), kind != PoolingKind::kFirst);
    EXPECT_FALSE(std::isnan(y.view<float>()(4, 1)));
  }
  EXPECT_EQ(largest.view<int32_t>()(1, 0), -1);
  EXPECT_EQ(largest.view<int32_t>()(2, 1), 50);
}

TEST(Pooling, SameBitsForAnyThreadsAndInAnyCompany) {
  const Tensor x = RandomMatrix(203, 40, 1), query = RandomVector(40, 2);
  ExpectSameForAnyThreads([&] {
    Tensor weights = RandomVector(203, 3), y = RandomMatrix(5, 40, 4);
    AttentionPoolingForward(x, query, kOffsets, weights, y);
    Tensor dx = x.Clone(MemoryTag::kOther), dquery = query.Clone(MemoryTag::kOther);
    AttentionPoolingBackward({x, query, weights, kOffsets}, y, {dx, dquery});
    return dquery;
  });
  Tensor all = RandomMatrix(5, 40, 4), one = RandomMatrix(1, 40, 5);
  PoolingForward(PoolingKind::kMean, x, kOffsets, all, nullptr);
  const std::vector<int64_t> alone = {0, 97};
  PoolingForward(PoolingKind::kMean, x.Slice(0, 3, 100), alone, one, nullptr);
  ExpectSameBits(one, all.Slice(0, 2, 3));
}

TEST(Pooling, RefusesWhatDoesNotFit) {
  const Tensor x = RandomMatrix(203, 3, 1);
  Tensor y = RandomMatrix(4, 3, 2), dx = x.Clone(MemoryTag::kOther);
  EXPECT_THROW(PoolingForward(PoolingKind::kMean, x, kOffsets, y, nullptr), Error);
  const std::vector<int64_t> falling = {0, 5, 3, 100, 101, 203};
  Tensor right = RandomMatrix(5, 3, 2);
  EXPECT_THROW(PoolingForward(PoolingKind::kMean, x, falling, right, nullptr), Error);
  EXPECT_THROW(PoolingBackward(PoolingKind::kMax, right, kOffsets, nullptr, dx), Error);
}

}  // namespace
}  // namespace headlight
