// Attention forward and backward, f32 and bf16, at the shapes of the classifier and of longer
// texts. Reports floating-point operations per second: 4 n^2 d per head forward (two products), 10
// n^2 d backward (five), causal counted as half, documents and blocks as what they keep.
// kernels/peak says what the machine could do.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <array>
#include <vector>

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

enum Kind : int64_t {
  kDense,
  kCausal,
  kRagged,
  kDropout,
  kRelative,
  kDocuments,  // 16 of equal length
  kBlocks,     // a tenth of the blocks of 64 x 64
  kSoftcap,
  kAlibi,
  kBf16,  // dense, operands in bf16
  kBf16Causal,
};
const char* const kKindNames[] = {"dense",    "causal",    "ragged",     "dropout",
                                  "relative", "documents", "blocks",     "softcap",
                                  "alibi",    "bf16",      "bf16 causal"};

struct Shaped {
  Case made;
  double scores = 0;  // kept, over all heads
};

// Arguments: batch, length, head_dim, heads, kind, threads.
Shaped MakeShaped(const benchmark::State& state) {
  const int64_t batch = state.range(0), length = state.range(1);
  Options options;
  options.lengths.clear();
  Shaped shaped;
  for (int64_t s = 0; s < batch; ++s) {
    // Ragged: lengths from 1/8 of the longest, evenly.
    const int64_t n =
        state.range(4) == kRagged ? length / 8 + (length - length / 8) * s / batch : length;
    options.lengths.push_back({n, n});
    shaped.scores += static_cast<double>(n * n);
  }
  options.head_dim = options.value_dim = state.range(2);
  options.heads = options.kv_heads = state.range(3);
  options.dtype = DType::kF32;
  options.fused_layout = true;
  if (state.range(4) == kRelative) options.relative_max = length;
  shaped.scores *= static_cast<double>(options.heads);
  shaped.made = MakeCase(options);
  if (state.range(4) == kBf16 || state.range(4) == kBf16Causal) {
    shaped.made.problem.precision = Precision::kBF16;
  }
  if (state.range(4) == kCausal || state.range(4) == kBf16Causal) {
    shaped.made.problem.mask.causal = Mask::Causal::kAlignedToStart;
    shaped.scores /= 2;
  }
  AttentionProblem& problem = shaped.made.problem;
  if (state.range(4) == kDocuments) {
    for (int64_t i = 0; i < problem.query_tokens(); ++i) {
      problem.mask.query_documents.push_back(static_cast<int32_t>(i % length * 16 / length));
    }
    problem.mask.key_documents = problem.mask.query_documents;
    shaped.scores /= 16;
  }
  if (state.range(4) == kBlocks) {
    AddBlocks(shaped.made, 0.1, {64, 64, 1, {}, {}}, 1);
    shaped.scores = static_cast<double>(problem.mask.blocks->key_blocks.size()) * 64 * 64 *
                    static_cast<double>(options.heads);
  }
  if (state.range(4) == kSoftcap) problem.softcap = 30;
  if (state.range(4) == kAlibi) problem.bias.alibi_slopes = AlibiSlopes(problem.heads);
  if (state.range(4) == kDropout) shaped.made.problem.dropout.rate = 0.1;
  return shaped;
}

void Report(benchmark::State& state, const Shaped& shaped, double flops_per_score) {
  state.SetLabel(fmt::format("b{} h{} n{} d{} {}, {} threads; {}", state.range(0), state.range(3),
                             state.range(1), state.range(2), kKindNames[state.range(4)],
                             state.range(5), PlanAttention(shaped.made.problem).kernel));
  state.counters["GFLOP/s"] = benchmark::Counter(
      1e-9 * flops_per_score * shaped.scores * static_cast<double>(state.range(2)),
      benchmark::Counter::kIsIterationInvariantRate);
}

void BM_AttentionForward(benchmark::State& state) {
  SetNumThreads(static_cast<int>(state.range(5)));
  const Shaped shaped = MakeShaped(state);
  AttentionOutputs outputs = MakeOutputs(shaped.made);
  // Once before: the first run touches the pages of new memory.
  AttentionForward(shaped.made.problem, shaped.made.inputs, outputs);
  for (auto _ : state) AttentionForward(shaped.made.problem, shaped.made.inputs, outputs);
  Report(state, shaped, 4);
}

void BM_AttentionBackward(benchmark::State& state) {
  SetNumThreads(static_cast<int>(state.range(5)));
  const Shaped shaped = MakeShaped(state);
  AttentionOutputs outputs = MakeOutputs(shaped.made);
  AttentionGradients gradients = MakeGradients(shaped.made);
  AttentionForward(shaped.made.problem, shaped.made.inputs, outputs);
  AttentionBackward(shaped.made.problem, shaped.made.inputs, outputs, shaped.made.out_gradient,
                    gradients);
  for (auto _ : state) {
    AttentionBackward(shaped.made.problem, shaped.made.inputs, outputs, shaped.made.out_gradient,
                      gradients);
  }
  Report(state, shaped, 10);
}

void Shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t threads : {1, 2}) {
    for (const auto& [batch, length, dim, heads] :
         std::vector<std::array<int64_t, 4>>{{64, 20, 32, 8},
                                             {32, 128, 32, 8},
                                             {32, 512, 32, 8},
                                             {32, 128, 64, 8},
                                             {32, 512, 64, 8},
                                             {32, 512, 128, 2},
                                             {32, 512, 256, 1},
                                             {32, 512, 16, 16},
                                             {1, 1024, 64, 8},
                                             {1, 4096, 64, 8}}) {
      bench->Args({batch, length, dim, heads, kDense, threads});
    }
    bench->Args({32, 512, 32, 8, kRagged, threads});
    bench->Args({32, 512, 32, 8, kDropout, threads});
    bench->Args({32, 512, 32, 8, kRelative, threads});
    bench->Args({32, 128, 64, 8, kCausal, threads});
    bench->Args({1, 1024, 64, 8, kCausal, threads});
    for (const auto& [batch, length, dim, heads] :
         std::vector<std::array<int64_t, 4>>{{1, 512, 64, 8}, {1, 4096, 64, 8}, {32, 190, 32, 8}}) {
      for (Kind kind : {kDense, kBf16, kCausal, kBf16Causal}) {
        bench->Args({batch, length, dim, heads, kind, threads});
      }
    }
    for (Kind kind : {kDocuments, kBlocks, kSoftcap, kAlibi}) {
      bench->Args({1, 4096, 64, 8, kind, threads});
    }
  }
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(BM_AttentionForward)->Apply(Shapes);
BENCHMARK(BM_AttentionBackward)->Apply(Shapes);

}  // namespace
}  // namespace headlight
