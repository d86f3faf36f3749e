#include "headlight/kernels/peak/peak.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "headlight/base/clock.h"
#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/peak/peak_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/peak/peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 12 chains: more than latency (4 cycles) times ports (2) on every core of the last decade, and
// with the factor and the term few enough for the 16 registers of AVX2.
inline constexpr int kChains = 12;

// Returns the floating-point operations done; `sink` keeps the sums from being optimised away.
double FmaLoop(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  // Not constants, so that the products cannot be folded; they stay near 1.
  const V factor = hn::Set(d, 0.999999f + sink[0] * 0);
  const V term = hn::Set(d, 1e-6f + sink[0] * 0);
  // Chains that began alike would be computed once for all.
  const auto start = [&](float value) HWY_ATTR { return hn::Set(d, value + sink[0]); };
  V a0 = start(0.01f), a1 = start(0.02f), a2 = start(0.03f), a3 = start(0.04f);
  V a4 = start(0.05f), a5 = start(0.06f), a6 = start(0.07f), a7 = start(0.08f);
  V a8 = start(0.09f), a9 = start(0.10f), a10 = start(0.11f), a11 = start(0.12f);
  for (int64_t round = 0; round < rounds; ++round) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term);
    a7 = hn::MulAdd(a7, factor, term);
    a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term);
    a10 = hn::MulAdd(a10, factor, term);
    a11 = hn::MulAdd(a11, factor, term);
  }
  const V low = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(a4, a5));
  const V high = hn::Add(hn::Add(hn::Add(a6, a7), hn::Add(a8, a9)), hn::Add(a10, a11));
  sink[0] = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

// Sums `count` floats, a multiple of 64.
float ReadLoop(const float* from, int64_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i < count; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, from + i));
    b = hn::Add(b, hn::LoadU(d, from + i + lanes));
    c = hn::Add(c, hn::LoadU(d, from + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(FmaLoop);
HWY_EXPORT(ReadLoop);

constexpr int kTries = 10;

// Runs work(worker) -> amount on `threads` workers that start together; the best rate (amount of
// all of them per second of the slowest) of several tries.
template <typename Work>
double BestRate(int threads, double seconds, const Work& work) {
  const int before = NumThreads();
  SetNumThreads(threads);
  double best = 0;
  const double end = MonotonicSeconds() + seconds;
  for (int attempt = 0; attempt < kTries || MonotonicSeconds() < end; ++attempt) {
    std::atomic<int> ready{0};
    std::vector<double> amount(static_cast<size_t>(threads));
    std::vector<double> begun(amount), ended(amount);
    ParallelFor(threads, [&](int64_t task, int) {
      const auto i = static_cast<size_t>(task);
      ++ready;
      // A worker that got two tasks must not wait for itself.
      const double patience = MonotonicSeconds() + 1e-3;
      while (ready.load() < threads && MonotonicSeconds() < patience) {
      }
      begun[i] = MonotonicSeconds();
      amount[i] = work(task);
      ended[i] = MonotonicSeconds();
    });
    double total = 0;
    for (double part : amount) total += part;
    const double took = *std::max_element(ended.begin(), ended.end()) -
                        *std::min_element(begun.begin(), begun.end());
    best = std::max(best, total / took);
  }
  SetNumThreads(before);
  return best;
}

void CheckThreads(int threads) {
  if (threads < 1) throw Error(ErrorKind::kUsage, "peak: threads must be >= 1, found {}", threads);
}

}  // namespace

double MeasureFmaPeak(int threads, double seconds) {
  CheckThreads(threads);
  SelectedIsa();
  // Long enough for the clock to settle (a start below the final frequency is left to the best-of).
  return BestRate(threads, seconds, [](int64_t) {
    float sink = 0;
    return HWY_DYNAMIC_DISPATCH(FmaLoop)(400000, &sink);
  });
}

double MeasurePeak(Precision precision, int threads, double seconds) {
  if (precision == Precision::kF32 || SelectedBf16Unit() == Bf16Unit::kNone) {
    return MeasureFmaPeak(threads, seconds);
  }
  CheckThreads(threads);
  return BestRate(threads, seconds,
                  [](int64_t) { return internal::PairProductLoop(SelectedBf16Unit(), 100000); });
}

double MeasureReadBandwidth(int threads, double seconds) {
  CheckThreads(threads);
  SelectedIsa();
  constexpr int64_t kCount = int64_t{1} << 22;  // 16 MiB a worker
  const std::vector<float> data(static_cast<size_t>(kCount * threads), 1.0f);
  std::vector<float> sums(static_cast<size_t>(threads));
  return BestRate(threads, seconds, [&](int64_t task) {
    sums[static_cast<size_t>(task)] =
        HWY_DYNAMIC_DISPATCH(ReadLoop)(data.data() + task * kCount, kCount);
    return static_cast<double>(kCount) * sizeof(float);
  });
}

}  // namespace headlight
#endif
