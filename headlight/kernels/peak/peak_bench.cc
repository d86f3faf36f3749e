// Prints nothing of its own: the counters of each benchmark are the rates.
#include "headlight/kernels/peak/peak.h"

#include <benchmark/benchmark.h>

#include "headlight/base/threads.h"

namespace headlight {
namespace {

void FmaPeak(benchmark::State& state) {
  double best = 0;
  for (auto step : state) best = MeasureFmaPeak(static_cast<int>(state.range(0)));
  state.counters["GFLOP/s"] = best * 1e-9;
}
BENCHMARK(FmaPeak)->DenseRange(1, PhysicalCores())->Iterations(5);

void ReadBandwidth(benchmark::State& state) {
  double best = 0;
  for (auto step : state) best = MeasureReadBandwidth(static_cast<int>(state.range(0)));
  state.counters["GB/s"] = best * 1e-9;
}
BENCHMARK(ReadBandwidth)->DenseRange(1, PhysicalCores())->Iterations(5);

}  // namespace
}  // namespace headlight
