#include "headlight/base/threads.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/threads_internal.h"

namespace headlight {
namespace internal {

int& CurrentWorker() {
  thread_local int worker = -1;
  return worker;
}

}  // namespace internal

namespace {

int ReadTopology(int cpu, const char* leaf) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + leaf);
  int value = -1;
  file >> value;
  return file ? value : -1;
}

std::atomic<int>& ThreadCount() {
  static std::atomic<int> count{PhysicalCores()};
  return count;
}

}  // namespace

int PhysicalCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  std::set<std::pair<int, int>> cores;
  int cpus = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++cpus;
    const int core = ReadTopology(cpu, "core_id");
    if (core >= 0) cores.emplace(ReadTopology(cpu, "physical_package_id"), core);
  }
  return std::max(1, cores.empty() ? cpus : static_cast<int>(cores.size()));
}

int NumThreads() { return ThreadCount().load(std::memory_order_relaxed); }

void SetNumThreads(int count) {
  if (count < 1 || count > 1024) {
    throw Error(ErrorKind::kUsage, "threads: the count must be 1 to 1024, found {}", count);
  }
  ThreadCount().store(count, std::memory_order_relaxed);
}

void ParallelFor(int64_t tasks, const std::function<void(int64_t, int)>& body) {
  if (tasks <= 0) return;
  int& current = internal::CurrentWorker();
  if (current >= 0) {
    for (int64_t task = 0; task < tasks; ++task) body(task, current);
    return;
  }
  static std::mutex executor;  // callers from other threads queue here
  std::lock_guard<std::mutex> lock(executor);
  const int threads = static_cast<int>(std::min<int64_t>(NumThreads(), tasks));
  internal::TaskQueue queue(tasks, body);
  internal::RunOnWorkers(threads, queue);
  queue.RethrowIfFailed();
}

void ParallelForRange(int64_t count, int64_t grain,
                      const std::function<void(int64_t, int64_t, int)>& body) {
  if (grain < 1)
    throw Error(ErrorKind::kUsage, "parallel range: grain must be >= 1, found {}", grain);
  ParallelFor((count + grain - 1) / grain, [&](int64_t task, int worker) {
    const int64_t begin = task * grain;
    body(begin, std::min(count, begin + grain), worker);
  });
}

}  // namespace headlight
