// What a pass takes beside its tensors grows with the tokens, not with their square.
#include <gtest/gtest.h>

#include <string>

#include "headlight/base/memory.h"
#include "headlight/base/random.h"
#include "headlight/kernels/attention/attention.h"

namespace headlight {
namespace {

constexpr int64_t kHeadDim = 16;
constexpr int64_t kMiB = int64_t{1} << 20;

Tensor Normal(int64_t tokens, uint64_t stream) {
  Tensor tensor = Tensor::Uninitialized({tokens, 1, kHeadDim}, DType::kF32, MemoryTag::kOther);
  RandomStream random(1, stream);
  float* data = tensor.data<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i) data[i] = static_cast<float>(random.Normal());
  return tensor;
}

struct Extra {
  int64_t charged;   // what buffers of the library took at most, in bytes
  int64_t resident;  // what the process took at most, as the system says
};

// Beside inputs, outputs and gradients: of a forward pass with or without statistics of the head,
// and of a backward pass.
Extra ExtraMemory(int64_t tokens, bool with_statistics, bool padded) {
  AttentionProblem problem;
  problem.query_offsets = problem.key_offsets = {0, tokens};
  problem.head_dim = problem.value_dim = kHeadDim;
  problem.mask.window = Mask::Window{256, 256};
  if (padded) problem.mask.key_lengths = {tokens - 100};
  const AttentionInputs inputs{Normal(tokens, 1), Normal(tokens, 2), Normal(tokens, 3)};
  const Tensor out_gradient = Normal(tokens, 4);
  AttentionOutputs outputs;
  outputs.out = Normal(tokens, 5);
  outputs.lse = Tensor::Zeros({1, tokens}, DType::kF32, MemoryTag::kOther);
  AttentionGradients gradients{Normal(tokens, 6), Normal(tokens, 7), Normal(tokens, 8), {}, {}};
  if (with_statistics) {
    outputs.statistics.emplace();
    outputs.statistics->heads = {0};
    outputs.statistics->key_set.assign(static_cast<size_t>(tokens), 1);
    outputs.statistics->top = 2;
  }
  ResetMemoryPeaks();
  const int64_t charged = MemoryTotal().now, resident = ResidentBytes();
  AttentionForward(problem, inputs, outputs);
  AttentionBackward(problem, inputs, outputs, out_gradient, gradients);
  return {MemoryTotal().peak - charged, PeakResidentBytes() - resident};
}

TEST(AttentionMemory, GrowsWithTokens) {
  ExtraMemory(1024, true, false);  // from here on every worker has its workspace
  const int64_t few = ExtraMemory(8192, true, false).charged;
  for (const bool with_statistics : {false, true}) {
    // Its n x n matrix would take 16 GiB.
    const Extra many = ExtraMemory(65536, with_statistics, false);
    EXPECT_LE(many.charged, 8 * few);
    EXPECT_LE(many.charged, 16 * kMiB);
    EXPECT_LE(many.resident, 300 * kMiB);
    RecordProperty(with_statistics ? "with_statistics" : "plain", std::to_string(many.charged));
  }
}

TEST(AttentionMemory, AMaskOfPaddingTakesNothingPerScore) {
  ExtraMemory(1024, false, true);
  const int64_t without = ExtraMemory(16384, false, false).charged;
  EXPECT_LE(ExtraMemory(16384, false, true).charged, without + 16384);
}

}  // namespace
}  // namespace headlight
