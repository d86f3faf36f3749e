#include "headlight/tensor/tensor.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/tensor/growing_tensor.h"

namespace headlight {
namespace {

Tensor Counting(const Shape& shape) {
  Tensor tensor = Tensor::Zeros(shape, DType::kF32, MemoryTag::kOther);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(Tensor, BufferIsAlignedAndCharged) {
  const int64_t before = MemoryOf(MemoryTag::kOptimizer).now;
  {
    Tensor tensor = Tensor::Zeros({3, 5}, DType::kF64, MemoryTag::kOptimizer);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes()) % 64, 0u);
    Tensor shared = tensor;
    EXPECT_EQ(MemoryOf(MemoryTag::kOptimizer).now - before, 3 * 5 * 8);
  }
  EXPECT_EQ(MemoryOf(MemoryTag::kOptimizer).now, before);
}

TEST(Tensor, SelectDropsAnAxis) {
  const Tensor tensor = Counting({2, 3, 4});
  const Tensor middle = tensor.Select(1, 2);
  ASSERT_EQ(middle.shape(), (Shape{2, 4}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(middle.view<float>()(i, j), tensor.view<float>()(i, 2, j));
    }
  }
  EXPECT_EQ(tensor.Select(2, 1).view<float>()(1, 2), tensor.view<float>()(1, 2, 1));
  EXPECT_THROW(tensor.Select(1, 3), Error);
  EXPECT_THROW(tensor.Select(3, 0), Error);
}

TEST(GrowingTensor, ReusesItsBuffer) {
  GrowingTensor tensor;
  const std::byte* large = tensor.Get({10, 4}, DType::kF32).bytes();
  EXPECT_EQ(tensor.Get({3, 5}, DType::kF32).bytes(), large);
  EXPECT_TRUE(tensor.tensor().IsContiguous());
  EXPECT_EQ(tensor.Get({40}, DType::kF32).bytes(), large);
  EXPECT_EQ(tensor.Get({0, 5}, DType::kF32).elements(), 0);
  EXPECT_EQ(tensor.Get({5, 4}, DType::kF64).dtype(), DType::kF64);
}

TEST(Tensor, CopyKeepsToItsWindow) {
  const Tensor source = Counting({4, 3, 6});
  for (const bool rows_are_whole : {true, false}) {
    Tensor target = Tensor::Zeros({4, 2, 5}, DType::kF32, MemoryTag::kOther);
    Tensor from = source.Select(1, 2).Slice(1, 1, 5);  // [4, 4]
    if (!rows_are_whole) from = from.Transpose(0, 1);
    Tensor to = target.Select(1, 1).Slice(1, 0, 4);
    to.CopyFrom(from);
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        EXPECT_EQ(target.view<float>()(i, 0, j), 0);
        EXPECT_EQ(target.view<float>()(i, 1, j), j == 4 ? 0 : from.view<float>()(i, j));
      }
    }
  }
  Tensor none = Tensor::Zeros({4, 0}, DType::kF32, MemoryTag::kOther);
  none.CopyFrom(source.Select(1, 0).Slice(1, 2, 2));  // no columns, and apart
}

TEST(Tensor, WindowsShareTheBuffer) {
  Tensor tensor = Counting({4, 6});
  const Tensor heads = tensor.SplitAxis(1, 3);  // [4, 3, 2]
  EXPECT_EQ(heads.shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(heads.view<float>()(2, 1, 1), 15.0f);
  const Tensor part = heads.Slice(1, 1, 3).Transpose(0, 1);  // [2, 4, 2]
  EXPECT_EQ(part.view<float>()(1, 3, 0), 22.0f);
  tensor.data<float>()[22] = -1.0f;
  EXPECT_EQ(part.view<float>()(1, 3, 0), -1.0f);
  EXPECT_EQ(part.Clone(MemoryTag::kOther).data<float>()[14], -1.0f);
}

TEST(Tensor, RepeatedAxesHaveStrideZero) {
  const Tensor tensor = Counting({4, 1, 6}).Repeat(1, 3);
  EXPECT_EQ(tensor.shape(), (Shape{4, 3, 6}));
  EXPECT_EQ(tensor.stride(1), 0);
  EXPECT_EQ(tensor.view<float>()(2, 1, 5), 17.0f);
  EXPECT_EQ(tensor.Clone(MemoryTag::kOther).data<float>()[1 * 18 + 2 * 6 + 3], 9.0f);
  EXPECT_THROW(tensor.Repeat(0, 2), Error);
  EXPECT_THROW(tensor.Repeat(3, 2), Error);
}

TEST(Tensor, CastConverts) {
  const Tensor wide = Counting({2, 3}).Transpose(0, 1).CastTo(DType::kF64, MemoryTag::kOther);
  EXPECT_EQ(wide.view<double>()(2, 1), 5.0);
}

TEST(Tensor, RefusesWhatDoesNotFit) {
  Tensor tensor = Counting({4, 6});
  EXPECT_THROW(tensor.Slice(1, 3, 7), Error);
  EXPECT_THROW(tensor.Reshape({5, 5}), Error);
  EXPECT_THROW(tensor.Transpose(0, 1).Reshape({24}), Error);
  EXPECT_THROW(tensor.SplitAxis(1, 4), Error);
  EXPECT_THROW(tensor.data<double>(), Error);
  EXPECT_THROW((Shape{-1, 2}), Error);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW((Shape{0, int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_EQ((Shape{int64_t{1} << 40, 0}).elements(), 0);
}

}  // namespace
}  // namespace headlight
