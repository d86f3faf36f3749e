#include <thread>
#include <vector>

#include "headlight/base/threads_internal.h"

namespace headlight::internal {

// Plain threads per call: this twin exists for sanitizers, where what counts is that every access
// is seen.
void RunOnWorkers(int threads, TaskQueue& queue) {
  const auto run = [&queue](int worker) {
    CurrentWorker() = worker;
    queue.Work(worker);
    CurrentWorker() = -1;
  };
  std::vector<std::thread> others;
  for (int worker = 1; worker < threads; ++worker) others.emplace_back(run, worker);
  run(0);
  for (std::thread& thread : others) thread.join();
}

}  // namespace headlight::internal
