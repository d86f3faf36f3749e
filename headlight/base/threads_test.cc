#include "headlight/base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

TEST(ParallelFor, RunsEveryTaskOnceForAnyThreadCount) {
  const int before = NumThreads();
  for (int threads : {1, 2, 3, 8}) {
    SetNumThreads(threads);
    std::vector<std::atomic<int>> runs(1000);
    ParallelFor(1000, [&](int64_t task, int worker) {
      EXPECT_LT(worker, threads);
      ++runs[static_cast<size_t>(task)];
    });
    for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
  }
  SetNumThreads(before);
}

TEST(ParallelFor, NestedCallsRunInPlace) {
  std::atomic<int> total{0};
  ParallelFor(4, [&](int64_t, int outer) {
    ParallelFor(5, [&](int64_t, int inner) {
      EXPECT_EQ(inner, outer);
      ++total;
    });
  });
  EXPECT_EQ(total.load(), 20);
}

TEST(ParallelFor, ThrowsTheExceptionOnAndWorksAfterwards) {
  EXPECT_THROW(ParallelFor(100,
                           [](int64_t task, int) {
                             if (task == 7) throw Error(ErrorKind::kNumeric, "seven");
                           }),
               Error);
  std::atomic<int> runs{0};
  ParallelFor(10, [&](int64_t, int) { ++runs; });
  EXPECT_EQ(runs.load(), 10);
}

TEST(ParallelFor, CallersFromOtherThreadsTakeTurns) {
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] { ParallelFor(50, [&](int64_t, int) { ++total; }); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 200);
}

TEST(ParallelForRange, CoversTheRangeWithoutOverlap) {
  std::vector<int> seen(103);
  ParallelForRange(103, 10, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (int count : seen) EXPECT_EQ(count, 1);
}

TEST(SetNumThreads, RefusesNonsense) {
  EXPECT_THROW(SetNumThreads(0), Error);
  EXPECT_THROW(SetNumThreads(5000), Error);
}

}  // namespace
}  // namespace headlight
