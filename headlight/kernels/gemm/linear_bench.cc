// The products of a transformer's layers on one thread, in f32 and in bf16. GFLOP/s are by CPU
// time, so that other programs on the machine cost less; "peak" is the share of what the unit of
// that precision reached just before.
#include "headlight/kernels/gemm/linear.h"

#include <benchmark/benchmark.h>

#include "headlight/base/random.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/peak/peak.h"

namespace headlight {
namespace {

constexpr int64_t kRows = 3072;

Tensor Random(int64_t rows, int64_t columns) {
  Tensor tensor = Tensor::Uninitialized({rows, columns}, DType::kF32, MemoryTag::kOther);
  RandomStream random(1, 2);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(random.Uniform() - 0.5);
  }
  return tensor;
}

struct Layer {
  explicit Layer(const benchmark::State& state)
      : in(state.range(0)),
        out(state.range(1)),
        x(Random(kRows, in)),
        w(Random(out, in)),
        b(Random(1, out).Reshape({out})),
        y(Random(kRows, out)),
        precision(state.range(2) == 0 ? Precision::kF32 : Precision::kBF16),
        peak(MeasurePeak(precision, 1)) {
    SetNumThreads(1);
    Pack();
  }

  void Pack() { packed.Prepare(w, PackedLinear::Use::kForwardAndBackward, precision); }

  void Report(benchmark::State& state) const {
    const double flops =
        2.0 * static_cast<double>(kRows * in * out) * static_cast<double>(state.iterations());
    state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
    state.counters["peak"] = benchmark::Counter(flops / peak, benchmark::Counter::kIsRate);
  }

  int64_t in, out;
  Tensor x, w, b, y;
  Precision precision;
  PackedLinear packed;
  double peak;
};

void Forward(benchmark::State& state) {
  Layer layer(state);
  for (auto step : state) LinearForward(layer.x, layer.packed, &layer.b, {}, layer.y);
  layer.Report(state);
}

void ForwardGelu(benchmark::State& state) {
  Layer layer(state);
  for (auto step : state) {
    LinearForward(layer.x, layer.packed, &layer.b, {Epilogue::kGelu, nullptr, nullptr}, layer.y);
  }
  layer.Report(state);
}

void BackwardInput(benchmark::State& state) {
  Layer layer(state);
  for (auto step : state) LinearBackwardInput(layer.y, layer.packed, {}, layer.x);
  layer.Report(state);
}

void BackwardWeight(benchmark::State& state) {
  Layer layer(state);
  for (auto step : state) {
    LinearBackwardWeight(layer.x, layer.y, layer.w, &layer.b, layer.precision);
  }
  layer.Report(state);
}

void Prepare(benchmark::State& state) {
  Layer layer(state);
  for (auto step : state) layer.Pack();
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"in", "out", "bf16"});
  for (int64_t bf16 : {0, 1}) {
    bench->Args({256, 256, bf16})->Args({256, 768, bf16});
    bench->Args({256, 1024, bf16})->Args({1024, 256, bf16});
  }
}

BENCHMARK(Forward)->Apply(Shapes);
BENCHMARK(ForwardGelu)->Apply(Shapes);
BENCHMARK(BackwardInput)->Apply(Shapes);
BENCHMARK(BackwardWeight)->Apply(Shapes);
BENCHMARK(Prepare)->Apply(Shapes);

}  // namespace
}  // namespace headlight
