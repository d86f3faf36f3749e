// Plain attention against PyTorch's f64 results (attention.safetensors, made by generate.py), in
// f64 and in f32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "headlight/kernels/attention/attention.h"
#include "tests/goldens/golden.h"

namespace headlight {
namespace {

// [batch, heads, len, dim] -> [batch * len, heads, dim], in `dtype`.
Tensor ToRows(const Tensor& golden, DType dtype) {
  const Tensor rows = golden.Transpose(1, 2).Clone(MemoryTag::kWorkspace);
  return rows.Reshape({rows.size(0) * rows.size(1), rows.size(2), rows.size(3)})
      .CastTo(dtype, MemoryTag::kWorkspace);
}

std::vector<int64_t> EvenOffsets(int64_t batch, int64_t length) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= batch; ++i) offsets.push_back(i * length);
  return offsets;
}

Mask MaskOfCase(const Golden& golden, const std::string& name, const Tensor& query,
                const Tensor& key) {
  Mask mask;
  const std::string kind = golden.settings["cases"][name]["mask"];
  if (kind == "causal_end") mask.causal = Mask::Causal::kAlignedToEnd;
  if (kind == "causal_start") mask.causal = Mask::Causal::kAlignedToStart;
  if (kind == "window") mask.window = Mask::Window{3, 2};
  if (kind == "lengths") {
    const Tensor& lengths = golden.At(name + ".lengths");
    for (int64_t i = 0; i < lengths.elements(); ++i) {
      mask.key_lengths.push_back(lengths.data<int64_t>()[i]);
    }
  }
  if (kind == "keep") {
    const Tensor& keep = golden.At(name + ".keep");  // [query_len, key_len], for all
    mask.keep.data = keep.data<uint8_t>();
    mask.keep.shape = {query.size(0), query.size(1), query.size(2), key.size(2)};
    mask.keep.strides = {0, 0, keep.stride(0), keep.stride(1)};
  }
  return mask;
}

double LargestMagnitude(const Tensor& tensor) {
  const Tensor wide = tensor.CastTo(DType::kF64, MemoryTag::kWorkspace);
  double largest = 0;
  for (int64_t i = 0; i < wide.elements(); ++i) {
    largest = std::max(largest, std::abs(wide.data<double>()[i]));
  }
  return largest;
}

class AttentionGoldens : public testing::TestWithParam<std::string> {
 protected:
  void Check(DType dtype) {
    const Golden golden = ReadGolden("attention.safetensors");
    const std::string name = GetParam();
    const auto at = [&](const char* tensor) -> const Tensor& {
      return golden.At(name + "." + tensor);
    };
    AttentionProblem problem;
    problem.query_offsets = EvenOffsets(at("query").size(0), at("query").size(2));
    problem.key_offsets = EvenOffsets(at("key").size(0), at("key").size(2));
    problem.heads = at("query").size(1);
    problem.kv_heads = at("key").size(1);
    problem.head_dim = at("query").size(3);
    problem.value_dim = at("value").size(3);
    problem.dtype = dtype;
    const auto& scale = golden.settings["cases"][name]["scale"];
    if (!scale.is_null()) problem.scale = scale.get<double>();
    problem.mask = MaskOfCase(golden, name, at("query"), at("key"));

    const AttentionInputs inputs{ToRows(at("query"), dtype), ToRows(at("key"), dtype),
                                 ToRows(at("value"), dtype)};
    const auto like = [&](const Tensor& tensor) {
      return Tensor::Uninitialized(tensor.shape(), dtype, MemoryTag::kWorkspace);
    };
    AttentionOutputs outputs;
    const Tensor expected_out = ToRows(at("out"), DType::kF64);
    outputs.out = like(expected_out);
    outputs.lse = Tensor::Uninitialized({problem.heads, problem.query_tokens()}, dtype,
                                        MemoryTag::kWorkspace);
    AttentionForward(problem, inputs, outputs);
    const Tensor out_gradient = ToRows(at("out_gradient"), dtype);
    AttentionGradients gradients{like(inputs.query), like(inputs.key), like(inputs.value), {}, {}};
    AttentionBackward(problem, inputs, outputs, out_gradient, gradients);

    // A score carries an error of eps times the size of its sum of head_dim terms, which becomes a
    // relative error of its weight; weights then act on values no larger than the golden's own
    // magnitude (gradients: times the upstream's). 4 covers the few operations in a row.
    const double epsilon = dtype == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                                : std::numeric_limits<float>::epsilon();
    const double score = problem.EffectiveScale() *
                         std::sqrt(static_cast<double>(problem.head_dim)) *
                         LargestMagnitude(inputs.query) * LargestMagnitude(inputs.key);
    const double factor = 4 * epsilon * (1 + score);
    ExpectNear(outputs.out, expected_out, factor * LargestMagnitude(inputs.value), "out");
    const double upstream = LargestMagnitude(out_gradient);
    ExpectNear(gradients.value, ToRows(at("value_gradient"), DType::kF64), factor * upstream * 4,
               "value gradient");
    const double back = factor * upstream * LargestMagnitude(inputs.value) *
                        problem.EffectiveScale() *
                        std::sqrt(static_cast<double>(problem.value_dim));
    ExpectNear(gradients.query, ToRows(at("query_gradient"), DType::kF64),
               back * LargestMagnitude(inputs.key), "query gradient");
    ExpectNear(gradients.key, ToRows(at("key_gradient"), DType::kF64),
               back * LargestMagnitude(inputs.query), "key gradient");
    // golden lse [batch, heads, len] -> [heads, batch * len]
    const Tensor lse = at("lse").Transpose(0, 1).Clone(MemoryTag::kWorkspace);
    ExpectNear(outputs.lse, lse.Reshape(outputs.lse.shape()), factor, "lse");
  }
};

TEST_P(AttentionGoldens, InDouble) { Check(DType::kF64); }
TEST_P(AttentionGoldens, InFloat) { Check(DType::kF32); }

INSTANTIATE_TEST_SUITE_P(All, AttentionGoldens,
                         testing::Values("none", "one_key", "cross", "causal_end", "causal_start",
                                         "lengths", "keep", "window", "grouped", "scale_given",
                                         "wide_heads", "value_dim", "prime", "large_scores"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace headlight
