#include "headlight/kernels/gemm/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headlight/base/error.h"
#include "headlight/kernels/bf16_rounding.h"
#include "headlight/kernels/gemm/linear_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

// Chains of up to 128 multiply-adds: their rounding errors, of random sign, grow as the square root
// of 128 (11) times half a unit; the worst of many elements lies a few times above the usual one.
constexpr double kSumFactor = 12;

struct Size {
  int64_t rows, in, out;
};

const Size kSizes[] = {{1, 1, 1},     {0, 5, 3},      {1, 256, 256}, {6, 16, 64},   {7, 17, 65},
                       {63, 31, 15},  {64, 32, 16},   {65, 33, 17},  {97, 127, 63}, {95, 128, 128},
                       {193, 129, 7}, {1009, 19, 37}, {5, 1000, 3},  {40, 1, 300},  {128, 64, 64}};

// A tile's sum of 1009 rows is one chain of pairs: the same, with the square root of 505.
constexpr double kPairSumFactor = 24;

// Each precision; bf16 by the unit that HEADLIGHT_BF16 names (cmake/Tests.cmake runs all of them).
class LinearOf : public testing::TestWithParam<Precision> {
 protected:
  // What multiplies: rounded, as the kernels do while packing.
  static Tensor Operand(const Tensor& tensor) {
    return GetParam() == Precision::kBF16 ? RoundedToBf16(tensor) : tensor;
  }
  static Tensor WideOperand(const Tensor& tensor) { return Wide(Operand(tensor)); }
  static double SumFactor() { return GetParam() == Precision::kBF16 ? kPairSumFactor : kSumFactor; }
  static PackedLinear Packed(const Tensor& weight) {
    PackedLinear packed;
    packed.Prepare(weight, PackedLinear::Use::kForwardAndBackward, GetParam());
    return packed;
  }
};

INSTANTIATE_TEST_SUITE_P(, LinearOf, testing::Values(Precision::kF32, Precision::kBF16),
                         [](const auto& value) {
                           return value.param == Precision::kF32 ? "f32" : "bf16";
                         });

Tensor Result(int64_t rows, int64_t columns, int64_t gap, DType dtype = DType::kF32) {
  return RandomMatrix(rows, columns, 999, gap, dtype);
}

TEST_P(LinearOf, ForwardMatchesTheReference) {
  for (const Size& size : kSizes) {
    for (int64_t gap : {0, 5}) {
      SCOPED_TRACE(fmt::format("{} x {} -> {}, gap {}", size.rows, size.in, size.out, gap));
      const Tensor x = RandomMatrix(size.rows, size.in, 1, gap);
      const Tensor w = RandomMatrix(size.out, size.in, 2, gap);
      const Tensor b = RandomVector(size.out, 3);
      const Tensor residual = RandomMatrix(size.rows, size.out, 4, gap);
      const PackedLinear packed = Packed(w);
      const Tensor wide_b = Wide(b), wide_residual = Wide(residual), size_b = Magnitude(b);
      const Tensor size_residual = Magnitude(residual);
      for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu, Epilogue::kGelu}) {
        Tensor y = Result(size.rows, size.out, gap), pre = Result(size.rows, size.out, gap);
        LinearForward(x, packed, &b, {epilogue, &pre, &residual}, y);
        Tensor wanted = Result(size.rows, size.out, 0, DType::kF64);
        Tensor wanted_pre = wanted.Clone(MemoryTag::kOther);
        reference::LinearForward(WideOperand(x), WideOperand(w), &wide_b,
                                 {epilogue, &wanted_pre, &wide_residual}, wanted);
        Tensor magnitude = wanted.Clone(MemoryTag::kOther);
        reference::LinearForward(Magnitude(x), Magnitude(w), &size_b,
                                 {Epilogue::kNone, nullptr, &size_residual}, magnitude);
        ExpectWithin(y, wanted, magnitude, SumFactor());
        ExpectWithin(pre, wanted_pre, magnitude, SumFactor());
      }
    }
  }
}

TEST(LinearForward, WorksWithoutBias) {
  const Tensor x = RandomMatrix(9, 20, 1), w = RandomMatrix(33, 20, 2);
  PackedLinear packed;
  packed.Prepare(w, PackedLinear::Use::kForward);
  Tensor y = Result(9, 33, 0), wanted = Result(9, 33, 0, DType::kF64);
  Tensor magnitude = wanted.Clone(MemoryTag::kOther);
  LinearForward(x, packed, nullptr, {}, y);
  reference::LinearForward(Wide(x), Wide(w), nullptr, {}, wanted);
  reference::LinearForward(Magnitude(x), Magnitude(w), nullptr, {}, magnitude);
  ExpectWithin(y, wanted, magnitude, kSumFactor);
}

TEST_P(LinearOf, BackwardInputMatchesTheReference) {
  for (const Size& size : kSizes) {
    for (int64_t gap : {0, 5}) {
      SCOPED_TRACE(fmt::format("{} x {} -> {}, gap {}", size.rows, size.in, size.out, gap));
      const Tensor dy = RandomMatrix(size.rows, size.out, 1, gap);
      const Tensor w = RandomMatrix(size.out, size.in, 2, gap);
      const Tensor hidden = RandomMatrix(size.rows, size.in, 3, gap);
      const Tensor wide_hidden = Wide(hidden);
      const PackedLinear packed = Packed(w);
      for (int activation : {0, 1, 2}) {
        for (Update update : {Update::kOverwrite, Update::kAdd}) {
          Tensor dx = Result(size.rows, size.in, gap);
          Tensor wanted = Wide(dx), magnitude = Magnitude(dx);
          const auto options = [&](const Tensor* h) {
            return LinearBackwardInputOptions{update, activation == 1 ? h : nullptr,
                                              activation == 2 ? h : nullptr};
          };
          LinearBackwardInput(dy, packed, options(&hidden), dx);
          reference::LinearBackwardInput(WideOperand(dy), WideOperand(w), options(&wide_hidden),
                                         wanted);
          // GELU's derivative is at most 1.13.
          reference::LinearBackwardInput(Magnitude(dy), Magnitude(w), {update, nullptr, nullptr},
                                         magnitude);
          ExpectWithin(dx, wanted, magnitude, SumFactor());
        }
      }
    }
  }
}

TEST_P(LinearOf, BackwardWeightMatchesTheReferenceAndAccumulates) {
  for (const Size& size : kSizes) {
    for (int64_t gap : {0, 5}) {
      SCOPED_TRACE(fmt::format("{} x {} -> {}, gap {}", size.rows, size.in, size.out, gap));
      const Tensor x = RandomMatrix(size.rows, size.in, 1, gap);
      const Tensor dy = RandomMatrix(size.rows, size.out, 2, gap);
      Tensor dw = RandomMatrix(size.out, size.in, 3, gap), db = RandomVector(size.out, 4);
      Tensor wanted_dw = Wide(dw), wanted_db = Wide(db);
      Tensor size_dw = Magnitude(dw), size_db = Magnitude(db), unused = Wide(dw);
      LinearBackwardWeight(x, dy, dw, &db, GetParam());
      reference::LinearBackwardWeight(WideOperand(x), WideOperand(dy), wanted_dw, nullptr);
      reference::LinearBackwardWeight(Wide(x), Wide(dy), unused, &wanted_db);
      reference::LinearBackwardWeight(Magnitude(x), Magnitude(dy), size_dw, &size_db);
      ExpectWithin(dw, wanted_dw, size_dw, SumFactor());
      ExpectWithin(db, wanted_db, size_db, SumFactor());
    }
  }
}

// The guard against a transposed gradient where the shapes would let it pass.
TEST(LinearBackwardWeight, IsNotTransposedForASquareWeight) {
  Tensor x = Tensor::Zeros({2, 3}, DType::kF32, MemoryTag::kOther), dy = x.Clone(MemoryTag::kOther);
  x.view<float>()(1, 2) = 5;
  dy.view<float>()(1, 0) = 7;
  Tensor dw = Tensor::Zeros({3, 3}, DType::kF32, MemoryTag::kOther);
  LinearBackwardWeight(x, dy, dw, nullptr);
  EXPECT_EQ(dw.view<float>()(0, 2), 35);  // [out 0, in 2]
  EXPECT_EQ(dw.view<float>()(2, 0), 0);
}

// Nothing outside of the outputs may be written: their surroundings are NaN, and must stay so.
TEST_P(LinearOf, WritesNothingBesideItsOutputs) {
  Tensor whole = Tensor::Zeros({20, 40}, DType::kF32, MemoryTag::kOther);
  for (int64_t i = 0; i < whole.elements(); ++i) whole.data<float>()[i] = 1234;
  Tensor y = whole.Slice(0, 1, 19).Slice(1, 3, 36);  // [18, 33]
  const Tensor x = RandomMatrix(18, 21, 1), w = RandomMatrix(33, 21, 2);
  const PackedLinear packed = Packed(w);
  LinearForward(x, packed, nullptr, {}, y);
  Tensor dx = whole.Slice(0, 1, 19).Slice(1, 3, 24);
  LinearBackwardInput(RandomMatrix(18, 33, 3), packed, {}, dx);
  Tensor dw = whole.Slice(0, 1, 19).Slice(1, 3, 36);
  LinearBackwardWeight(RandomMatrix(30, 33, 4), RandomMatrix(30, 18, 5), dw, nullptr, GetParam());
  for (int64_t r = 0; r < 20; ++r) {
    for (int64_t c = 0; c < 40; ++c) {
      const bool inside = r >= 1 && r < 19 && c >= 3 && c < 36;
      if (!inside) {
        ASSERT_EQ(whole.view<float>()(r, c), 1234) << r << ", " << c;
      }
    }
  }
}

TEST(Linear, GradientsAgreeWithCentralDifferences) {
  Tensor x = RandomMatrix(5, 4, 1, 0, DType::kF64), w = RandomMatrix(3, 4, 2, 0, DType::kF64);
  Tensor b = RandomVector(3, 3, DType::kF64);
  const Tensor dy = RandomMatrix(5, 3, 4, 0, DType::kF64);
  const auto loss = [&] {
    PackedLinear packed;
    packed.Prepare(w);
    Tensor y = Result(5, 3, 0, DType::kF64);
    LinearForward(x, packed, &b, {}, y);
    return Dot(y, dy);
  };
  PackedLinear packed;
  packed.Prepare(w);
  Tensor dx = Result(5, 4, 0, DType::kF64);
  Tensor dw = Tensor::Zeros({3, 4}, DType::kF64, MemoryTag::kOther);
  Tensor db = Tensor::Zeros({3}, DType::kF64, MemoryTag::kOther);
  LinearBackwardInput(dy, packed, {}, dx);
  LinearBackwardWeight(x, dy, dw, &db);
  ExpectGradient(x, dx, loss);
  ExpectGradient(w, dw, loss);
  ExpectGradient(b, db, loss);
}

TEST(Linear, ActivationGradientsAgreeWithCentralDifferences) {
  for (Epilogue epilogue : {Epilogue::kRelu, Epilogue::kGelu}) {
    Tensor hidden = RandomMatrix(5, 4, 1, 0, DType::kF64);  // before the activation
    const Tensor identity = [] {
      Tensor eye = Tensor::Zeros({4, 4}, DType::kF64, MemoryTag::kOther);
      for (int64_t i = 0; i < 4; ++i) eye.view<double>()(i, i) = 1;
      return eye;
    }();
    const Tensor w = RandomMatrix(3, 4, 2, 0, DType::kF64);
    const Tensor dy = RandomMatrix(5, 3, 4, 0, DType::kF64);
    PackedLinear eye, packed;
    eye.Prepare(identity);
    packed.Prepare(w);
    Tensor activated = Result(5, 4, 0, DType::kF64), y = Result(5, 3, 0, DType::kF64);
    const auto loss = [&] {
      LinearForward(hidden, eye, nullptr, {epilogue, nullptr, nullptr}, activated);
      LinearForward(activated, packed, nullptr, {}, y);
      return Dot(y, dy);
    };
    loss();
    Tensor dhidden = Result(5, 4, 0, DType::kF64);
    LinearBackwardInputOptions options;
    if (epilogue == Epilogue::kRelu) options.relu_output = &activated;
    if (epilogue == Epilogue::kGelu) options.gelu_input = &hidden;
    LinearBackwardInput(dy, packed, options, dhidden);
    ExpectGradient(hidden, dhidden, loss);
  }
}

TEST_P(LinearOf, SameBitsForAnyThreads) {
  for (const Size& size : {Size{203, 129, 70}, Size{900, 128, 256}, Size{7, 300, 5}}) {
    const Tensor x = RandomMatrix(size.rows, size.in, 1), w = RandomMatrix(size.out, size.in, 2);
    const Tensor dy = RandomMatrix(size.rows, size.out, 3), b = RandomVector(size.out, 4);
    const PackedLinear packed = Packed(w);
    ExpectSameForAnyThreads([&] {
      Tensor y = Result(size.rows, size.out, 0);
      LinearForward(x, packed, &b, {Epilogue::kGelu, nullptr, nullptr}, y);
      return y;
    });
    ExpectSameForAnyThreads([&] {
      Tensor dx = Result(size.rows, size.in, 0);
      LinearBackwardInput(dy, packed, {}, dx);
      return dx;
    });
    ExpectSameForAnyThreads([&] {
      Tensor dw = RandomMatrix(size.out, size.in, 5);
      LinearBackwardWeight(x, dy, dw, nullptr, GetParam());
      return dw;
    });
    ExpectSameForAnyThreads([&] {
      Tensor dw = RandomMatrix(size.out, size.in, 5), db = RandomVector(size.out, 6);
      LinearBackwardWeight(x, dy, dw, &db, GetParam());
      return db;
    });
  }
}

TEST_P(LinearOf, ARowDoesNotDependOnTheOthers) {
  const Tensor x = RandomMatrix(200, 130, 1), w = RandomMatrix(75, 130, 2);
  const Tensor dy = RandomMatrix(200, 75, 3), b = RandomVector(75, 4);
  const PackedLinear packed = Packed(w);
  Tensor y = Result(200, 75, 0), dx = Result(200, 130, 0);
  LinearForward(x, packed, &b, {}, y);
  LinearBackwardInput(dy, packed, {}, dx);
  for (int64_t begin : {0, 1, 5, 63, 64, 95, 96, 199}) {
    for (int64_t count : {1, 2, 7}) {
      const int64_t end = std::min<int64_t>(200, begin + count);
      Tensor part = Result(end - begin, 75, 0), dpart = Result(end - begin, 130, 0);
      LinearForward(x.Slice(0, begin, end), packed, &b, {}, part);
      ExpectSameBits(part, y.Slice(0, begin, end));
      LinearBackwardInput(dy.Slice(0, begin, end), packed, {}, dpart);
      ExpectSameBits(dpart, dx.Slice(0, begin, end));
    }
  }
}

TEST_P(LinearOf, NotANumberStaysInItsRow) {
  Tensor x = RandomMatrix(12, 40, 1);
  x.view<float>()(5, 3) = std::numeric_limits<float>::quiet_NaN();
  const Tensor w = RandomMatrix(20, 40, 2);
  const PackedLinear packed = Packed(w);
  Tensor y = Result(12, 20, 0);
  LinearForward(x, packed, nullptr, {Epilogue::kRelu, nullptr, nullptr}, y);
  for (int64_t r = 0; r < 12; ++r) {
    for (int64_t c = 0; c < 20; ++c) EXPECT_EQ(std::isnan(y.view<float>()(r, c)), r == 5);
  }
}

TEST(PackedLinear, SeesNewValuesAfterPrepare) {
  Tensor w = RandomMatrix(5, 6, 1);
  const Tensor x = RandomMatrix(3, 6, 2);
  PackedLinear packed;
  packed.Prepare(w);
  Tensor before = Result(3, 5, 0), after = Result(3, 5, 0);
  LinearForward(x, packed, nullptr, {}, before);
  for (int64_t i = 0; i < w.elements(); ++i) w.data<float>()[i] *= 2;
  packed.Prepare(w);
  LinearForward(x, packed, nullptr, {}, after);
  for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(after.data<float>()[i], 2 * before.data<float>()[i]);
}

// bf16 rounds its operands: to nearest, and not by cutting.
TEST_P(LinearOf, RoundsOperandsToNearest) {
  Tensor x = Tensor::Zeros({1, 1}, DType::kF32, MemoryTag::kOther), w = x.Clone(MemoryTag::kOther);
  x.data<float>()[0] = 1 + 3.0f / 512;  // between 1 + 1 / 128 and 1, nearer to the former
  w.data<float>()[0] = 1;
  const PackedLinear packed = Packed(w);
  Tensor y = Result(1, 1, 0);
  LinearForward(x, packed, nullptr, {}, y);
  EXPECT_EQ(y.data<float>()[0], GetParam() == Precision::kBF16 ? 1 + 1.0f / 128 : 1 + 3.0f / 512);
}

TEST(Linear, RefusesBf16OfDoubles) {
  PackedLinear packed;
  const Tensor w = RandomMatrix(5, 6, 1, 0, DType::kF64);
  EXPECT_THROW(packed.Prepare(w, PackedLinear::Use::kForward, Precision::kBF16), Error);
}

TEST(Linear, RefusesWhatDoesNotFit) {
  PackedLinear packed;
  Tensor y = Result(3, 5, 0);
  EXPECT_THROW(LinearForward(Result(3, 6, 0), packed, nullptr, {}, y), Error);  // not prepared
  const Tensor w = RandomMatrix(5, 6, 1);
  packed.Prepare(w, PackedLinear::Use::kForward);
  EXPECT_THROW(LinearForward(Result(3, 7, 0), packed, nullptr, {}, y), Error);
  EXPECT_THROW(LinearForward(Result(4, 6, 0), packed, nullptr, {}, y), Error);
  EXPECT_THROW(LinearForward(Result(3, 6, 0, DType::kF64), packed, nullptr, {}, y), Error);
  const Tensor bias = RandomVector(6, 1);
  EXPECT_THROW(LinearForward(Result(3, 6, 0), packed, &bias, {}, y), Error);
  Tensor dx = Result(3, 6, 0), dw = Result(6, 5, 0);
  EXPECT_THROW(LinearBackwardInput(y, packed, {}, dx), Error);  // forward alone
  EXPECT_THROW(LinearBackwardWeight(dx, y, dw, nullptr), Error);
  const Tensor turned = Result(6, 3, 0).Transpose(0, 1);
  EXPECT_THROW(LinearForward(turned, packed, nullptr, {}, y), Error);
}

}  // namespace
}  // namespace headlight
