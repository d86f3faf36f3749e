// Tensors in bf16 and f16: bitwise what the same numbers in f32 give, rounded to the format.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace {

using namespace attention_test;

// A copy in another format; both of rank 3.
Tensor Narrowed(const Tensor& tensor, DType dtype) {
  Tensor narrow = Tensor::Zeros(tensor.shape(), dtype, MemoryTag::kOther);
  if (tensor.empty()) return narrow;
  const Tensor from = tensor.Clone(MemoryTag::kOther);
  for (int64_t i = 0; i < from.elements(); ++i) {
    const float value = from.data<float>()[i];
    if (dtype == DType::kBF16) {
      narrow.data<BFloat16>()[i] = ToBFloat16(value);
    } else {
      narrow.data<Float16>()[i] = ToFloat16(value);
    }
  }
  return narrow;
}

Tensor Widened(const Tensor& tensor) {
  Tensor wide = Tensor::Zeros(tensor.shape(), DType::kF32, MemoryTag::kOther);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    wide.data<float>()[i] = tensor.dtype() == DType::kBF16 ? ToFloat(tensor.data<BFloat16>()[i])
                                                           : ToFloat(tensor.data<Float16>()[i]);
  }
  return wide;
}

struct Formats {
  Case stored, wide;  // the same numbers
};

Formats InFormat(const Case& made, DType dtype) {
  Formats formats{made, made};
  formats.stored.problem.dtype = dtype;
  if (dtype == DType::kBF16) formats.wide.problem.precision = Precision::kBF16;
  const auto convert = [&](Tensor& stored, Tensor& wide) {
    stored = Narrowed(stored, dtype);
    wide = Widened(stored);
  };
  convert(formats.stored.inputs.query, formats.wide.inputs.query);
  convert(formats.stored.inputs.key, formats.wide.inputs.key);
  convert(formats.stored.inputs.value, formats.wide.inputs.value);
  convert(formats.stored.out_gradient, formats.wide.out_gradient);
  return formats;
}

void ExpectLikeF32(const Case& made, DType dtype, Bf16Unit unit) {
  const Formats formats = InFormat(made, dtype);
  Results want{MakeOutputs(made), MakeGradients(made)};
  attention::ForwardOnUnit(unit, formats.wide.problem, formats.wide.inputs, want.outputs);
  const Tensor out = Narrowed(want.outputs.out, dtype);
  want.outputs.out = Widened(out);
  attention::BackwardOnUnit(unit, formats.wide.problem, formats.wide.inputs, want.outputs,
                            formats.wide.out_gradient, want.gradients);

  Results got{MakeOutputs(made), MakeGradients(made)};
  AttentionGradients& gradients = got.gradients;
  for (Tensor* tensor : {&gradients.query, &gradients.key, &gradients.value}) {
    *tensor = Narrowed(*tensor, dtype);
  }
  const Case& stored = formats.stored;
  attention::ForwardOnUnit(unit, stored.problem, stored.inputs, got.outputs);
  attention::BackwardOnUnit(unit, stored.problem, stored.inputs, got.outputs, stored.out_gradient,
                            gradients);
  const auto same = [&](const Tensor& narrow, const Tensor& wide) {
    EXPECT_EQ(narrow.dtype(), dtype);
    return SameBits(Widened(narrow), Widened(Narrowed(wide, dtype)));
  };
  EXPECT_TRUE(same(got.outputs.out, want.outputs.out)) << DTypeName(dtype);
  EXPECT_TRUE(SameBits(got.outputs.lse, want.outputs.lse)) << DTypeName(dtype);
  EXPECT_TRUE(same(gradients.query, want.gradients.query)) << DTypeName(dtype);
  EXPECT_TRUE(same(gradients.key, want.gradients.key)) << DTypeName(dtype);
  EXPECT_TRUE(same(gradients.value, want.gradients.value)) << DTypeName(dtype);
  EXPECT_TRUE(SameBits(gradients.bias, want.gradients.bias)) << DTypeName(dtype);
}

void ExpectLikeF32(const Case& made) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    OnEveryIsa([&] { ExpectLikeF32(made, dtype, Bf16Unit::kNone); });
    OnEveryUnit([&](Bf16Unit unit) { ExpectLikeF32(made, dtype, unit); });
  }
}

TEST(AttentionStorage, LikeF32) {
  for (int64_t dim : {1, 7, 20, 64, 256}) {
    Options options = F32({{40, 40}, {17, 70}, {5, 0}, {0, 5}, {70, 17}}, dim);
    options.value_dim = dim == 256 ? 3 : dim + 1;
    options.heads = 4;
    options.kv_heads = 2;
    Case made = MakeCase(options);
    ExpectLikeF32(made);
    made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    AddBias(made, 0.1, 3);
    made.problem.dropout.rate = 0.2;
    ExpectLikeF32(made);
  }
}

// Keys and values are read where they lie, beside sequences that are copied.
TEST(AttentionStorage, Decoding) {
  for (int64_t dim : {1, 7, 20, 64, 256}) {
    Options options = F32({{1, 1}, {1, 5}, {1, 1100}, {3, 70}, {0, 3}, {2, 0}}, dim);
    options.value_dim = dim == 256 ? 3 : dim + 1;
    options.heads = 4;
    options.kv_heads = 2;
    Case made = MakeCase(options);
    ExpectLikeF32(made);
    made.problem.mask.key_lengths = {1, 3, 1000, 50, 0, 0};
    made.inputs.value.view<float>()(900, 0, 0) = kNaN;
    made.inputs.value.view<float>()(1050, 0, 0) = kNaN;
    ExpectLikeF32(made);
    options.lengths.push_back({33, 40});
    ExpectLikeF32(MakeCase(options));
  }
}

TEST(AttentionStorage, PaddedTensorsAreLeftAlonePastTheirRows) {
  const Case made = MakeCase(F32({{3, 3}, {9, 9}}, 16));
  const Formats formats = InFormat(made, DType::kBF16);
  const auto padded = [](const Tensor& ragged) {
    Tensor tensor = Tensor::Zeros({2, 9, 1, 16}, DType::kBF16, MemoryTag::kOther);
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<BFloat16>()[i] = {0x7fc0};
    for (int64_t i = 0; i < 12 * 16; ++i) {
      const int64_t to = i < 3 * 16 ? i : i + 6 * 16;
      tensor.data<BFloat16>()[to] = ragged.data<BFloat16>()[i];
    }
    return tensor;
  };
  const AttentionInputs& ragged = formats.stored.inputs;
  const AttentionInputs inputs{padded(ragged.query), padded(ragged.key), padded(ragged.value)};
  AttentionOutputs want, got;
  AttentionForward(formats.stored.problem, ragged, want);
  got.out = padded(ragged.query);
  AttentionForward(formats.stored.problem, inputs, got);
  EXPECT_TRUE(SameBits(Widened(got.out), Widened(padded(want.out))));
}

TEST(AttentionStorage, ProbesAreF32) {
  const Case made = MakeCase(F32({{1, 40}, {20, 20}}, 16));
  const Formats formats = InFormat(made, DType::kBF16);
  AttentionOutputs want, got;
  for (AttentionOutputs* outputs : {&want, &got}) {
    outputs->weights.push_back({0, 0, {}});
    outputs->statistics = HeadStatistics{};
    outputs->statistics->heads = {0};
  }
  AttentionForward(formats.wide.problem, formats.wide.inputs, want);
  AttentionForward(formats.stored.problem, formats.stored.inputs, got);
  EXPECT_TRUE(SameBits(got.weights[0].weights, want.weights[0].weights));
  EXPECT_TRUE(SameBits(got.statistics->entropy, want.statistics->entropy));
}

TEST(AttentionStorage, PlansAndRefusals) {
  Formats formats = InFormat(MakeCase(F32({{5, 5}}, 8)), DType::kBF16);
  EXPECT_TRUE(PlanAttention(formats.stored.problem).kernel.ends_with(", bf16 in memory"));
  EXPECT_FALSE(FindNonFiniteScore(formats.stored.problem, formats.stored.inputs));
  formats.stored.problem.dtype = DType::kF16;
  AttentionOutputs outputs;
  EXPECT_THROW(AttentionForward(formats.stored.problem, formats.stored.inputs, outputs), Error);
}

// Every number of either format comes back as it was; rounding is to the nearest, ties to even.
TEST(HalfFormats, RoundTripsAndTies) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float f16 = ToFloat(Float16{half}), bf16 = ToFloat(BFloat16{half});
    if (std::isnan(f16)) {
      EXPECT_GT(half & 0x7fff, 0x7c00);
      EXPECT_TRUE(std::isnan(ToFloat(ToFloat16(f16))));
    } else {
      EXPECT_EQ(ToFloat16(f16).bits, half);
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(ToBFloat16(bf16).bits, half);
    }
  }
  EXPECT_EQ(ToFloat(Float16{1}), 0x1p-24f);
  EXPECT_EQ(ToFloat(Float16{0x3c01}), 1 + 0x1p-10f);
  EXPECT_EQ(ToFloat(Float16{0x7bff}), 65504.0f);
  EXPECT_EQ(ToFloat16(1 + 0x1p-11f).bits, 0x3c00);      // a tie, to even
  EXPECT_EQ(ToFloat16(1 + 3 * 0x1p-11f).bits, 0x3c02);  // the same
  EXPECT_EQ(ToFloat16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToFloat16(-0x1p-25f).bits, 0x8000);
  EXPECT_EQ(ToFloat16(3 * 0x1p-25f).bits, 2);
  EXPECT_EQ(ToBFloat16(1 + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(ToBFloat16(1 + 3 * 0x1p-8f).bits, 0x3f82);
}

}  // namespace
}  // namespace headlight
