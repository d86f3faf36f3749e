#include "headlight/tensor/tensor.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"

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
}

}  // namespace
}  // namespace headlight
