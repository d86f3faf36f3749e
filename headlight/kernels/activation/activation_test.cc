#include "headlight/kernels/activation/activation.h"

#include <gtest/gtest.h>

#include <vector>

#include "headlight/base/error.h"
#include "headlight/kernels/activation/activation_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

Tensor Sweep(double from, double to, int64_t count) {
  Tensor x = Tensor::Zeros({1, count}, DType::kF32, MemoryTag::kOther);
  for (int64_t i = 0; i < count; ++i) {
    x.data<float>()[i] = static_cast<float>(from + (to - from) * static_cast<double>(i) /
                                                       static_cast<double>(count - 1));
  }
  return x;
}

TEST(Relu, MatchesTheReferenceBitForBit) {
  for (int64_t columns : {1, 7, 16, 33, 100}) {
    const Tensor x = RandomMatrix(9, columns, 1, 3), dy = RandomMatrix(9, columns, 2, 3);
    Tensor y = RandomMatrix(9, columns, 3, 3), dx = RandomMatrix(9, columns, 4, 3);
    Tensor wanted = y.Clone(MemoryTag::kOther), wanted_dx = dx.Clone(MemoryTag::kOther);
    ReluForward(x, y);
    reference::ReluForward(x, wanted);
    ExpectSameBits(y, wanted);
    ReluBackward(y, dy, dx);
    reference::ReluBackward(wanted, dy, wanted_dx);
    ExpectSameBits(dx, wanted_dx);
  }
}

TEST(Gelu, StaysWithinItsBoundOverTheWholeRange) {
  const Tensor x = Sweep(-16, 16, 500001);
  const Tensor wide = Wide(x);
  Tensor y = x.Clone(MemoryTag::kOther), wanted = wide.Clone(MemoryTag::kOther);
  GeluForward(x, y);
  reference::GeluForward(wide, wanted);
  // Two roundings above 0, and below it a tail whose exponent -x^2 / 2 carries x^2 / 2 of its own
  // rounding: under 20 where the value is 1e-8 already, in all below 4 units of (|value| + 0.1).
  Tensor magnitude = Magnitude(wanted);
  for (int64_t i = 0; i < magnitude.elements(); ++i) magnitude.data<double>()[i] += 0.1;
  ExpectWithin(y, wanted, magnitude, 4);
  Tensor ones = x.Clone(MemoryTag::kOther), slope = ones.Clone(MemoryTag::kOther);
  std::fill_n(ones.data<float>(), ones.elements(), 1.0f);
  Tensor wanted_slope = wide.Clone(MemoryTag::kOther);
  GeluBackward(x, ones, slope);
  reference::GeluBackward(wide, Wide(ones), wanted_slope);
  magnitude = Magnitude(wanted_slope);
  for (int64_t i = 0; i < magnitude.elements(); ++i) magnitude.data<double>()[i] += 0.5;
  ExpectWithin(slope, wanted_slope, magnitude, 4);
}

TEST(Activation, HandlesTheEdges) {
  const float infinity = std::numeric_limits<float>::infinity();
  Tensor x = Tensor::Zeros({1, 4}, DType::kF32, MemoryTag::kOther), y = x.Clone(MemoryTag::kOther);
  x.data<float>()[0] = infinity;
  x.data<float>()[1] = -infinity;
  x.data<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  for (auto* forward : {ReluForward, GeluForward}) {
    forward(x, y);
    EXPECT_EQ(y.data<float>()[0], infinity);
    EXPECT_EQ(y.data<float>()[1], 0);
    EXPECT_TRUE(std::isnan(y.data<float>()[2]));
    EXPECT_EQ(y.data<float>()[3], 0);
  }
}

TEST(Activation, GradientsAgreeWithCentralDifferences) {
  Tensor x = RandomMatrix(3, 7, 1, 0, DType::kF64);
  const Tensor dy = RandomMatrix(3, 7, 2, 0, DType::kF64);
  Tensor y = x.Clone(MemoryTag::kOther), dx = x.Clone(MemoryTag::kOther);
  const auto relu = [&] {
    ReluForward(x, y);
    return Dot(y, dy);
  };
  relu();
  ReluBackward(y, dy, dx);
  ExpectGradient(x, dx, relu);
  const auto gelu = [&] {
    GeluForward(x, y);
    return Dot(y, dy);
  };
  GeluBackward(x, dy, dx);
  ExpectGradient(x, dx, gelu);
}

const std::vector<int64_t> kOffsets = {0, 3, 3, 70, 75};
const std::vector<int64_t> kIds = {7, 8, (int64_t{1} << 40) + 3, 1};

DropoutOptions Options(double rate) {
  return {rate, 0x1234567890abcdefu, 3, (int64_t{1} << 33) + 5, kOffsets, kIds};
}

TEST(Dropout, MatchesTheReferenceBitForBit) {
  for (int64_t columns : {1, 5, 16, 31, 127, 128, 129, 300}) {
    const Tensor x = RandomMatrix(75, columns, 1, 3);
    Tensor y = RandomMatrix(75, columns, 2, 3), wanted = y.Clone(MemoryTag::kOther);
    for (double rate : {0.1, 0.5, 0.9999999}) {
      Dropout(x, Options(rate), y);
      reference::Dropout(x, Options(rate), wanted);
      ExpectSameBits(y, wanted);
    }
  }
}

TEST(Dropout, KeepsTheRateAndTheMean) {
  Tensor x = Tensor::Zeros({75, 512}, DType::kF32, MemoryTag::kOther);
  std::fill_n(x.data<float>(), x.elements(), 1.0f);
  Tensor y = x.Clone(MemoryTag::kOther);
  Dropout(x, Options(0.1), y);
  int64_t dropped = 0;
  double sum = 0;
  for (int64_t i = 0; i < y.elements(); ++i) {
    dropped += y.data<float>()[i] == 0;
    sum += static_cast<double>(y.data<float>()[i]);
  }
  const auto count = static_cast<double>(y.elements());
  // Six standard deviations of the share of 38,400 draws.
  EXPECT_NEAR(static_cast<double>(dropped) / count, 0.1, 6 * std::sqrt(0.09 / count));
  EXPECT_NEAR(sum / count, 1, 6 * std::sqrt(0.09 / count) / 0.9);
}

TEST(Dropout, DependsOnSeedLayerStepSampleAndPositionAlone) {
  const Tensor x = RandomMatrix(75, 40, 1);
  Tensor y = x.Clone(MemoryTag::kOther), other = x.Clone(MemoryTag::kOther);
  Dropout(x, Options(0.5), y);
  // The third sample alone, in another slot.
  const std::vector<int64_t> offsets = {0, 67}, ids = {kIds[2]};
  DropoutOptions alone = Options(0.5);
  alone.offsets = offsets;
  alone.sample_ids = ids;
  Tensor part = RandomMatrix(67, 40, 2);
  Dropout(x.Slice(0, 3, 70), alone, part);
  ExpectSameBits(part, y.Slice(0, 3, 70));
  const auto differs = [&](const DropoutOptions& options) {
    Dropout(x, options, other);
    return std::memcmp(y.bytes(), other.bytes(), 75 * 40 * 4) != 0;
  };
  DropoutOptions changed = Options(0.5);
  EXPECT_FALSE(differs(changed));
  changed.seed ^= uint64_t{1} << 63;
  EXPECT_TRUE(differs(changed));
  changed = Options(0.5);
  changed.layer = 4;
  EXPECT_TRUE(differs(changed));
  changed = Options(0.5);
  changed.step = 5;  // the same low word
  EXPECT_TRUE(differs(changed));
  changed = Options(0.5);
  const std::vector<int64_t> other_ids = {7, 8, 3, 1};  // the same low word
  changed.sample_ids = other_ids;
  EXPECT_TRUE(differs(changed));
  ExpectSameForAnyThreads([&] {
    Tensor result = x.Clone(MemoryTag::kOther);
    Dropout(x, Options(0.3), result);
    return result;
  });
}

TEST(Dropout, RateZeroCopiesTheBits) {
  const Tensor x = RandomMatrix(75, 9, 1);
  Tensor y = RandomMatrix(75, 9, 2);
  Dropout(x, Options(0), y);
  ExpectSameBits(y, x);
}

TEST(Dropout, RefusesWhatDoesNotFit) {
  Tensor x = RandomMatrix(75, 9, 1), y = x.Clone(MemoryTag::kOther);
  EXPECT_THROW(Dropout(x, Options(1), y), Error);
  EXPECT_THROW(Dropout(x, Options(std::numeric_limits<double>::quiet_NaN()), y), Error);
  DropoutOptions options = Options(0.1);
  options.sample_ids = options.sample_ids.subspan(1);
  EXPECT_THROW(Dropout(x, options, y), Error);
  options = Options(0.1);
  options.offsets = options.offsets.first(4);
  EXPECT_THROW(Dropout(x, options, y), Error);
}

}  // namespace
}  // namespace headlight
