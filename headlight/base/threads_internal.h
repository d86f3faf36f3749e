// What ParallelFor and its threads share: the tasks, nesting, and the first exception.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>

namespace headlight::internal {

// Hands out task numbers and remembers the exception of the lowest failing task.
class TaskQueue {
 public:
  TaskQueue(int64_t tasks, const std::function<void(int64_t, int)>& body)
      : tasks_(tasks), body_(body) {}

  // Runs tasks as `worker` until none is left or one has failed.
  void Work(int worker) {
    for (;;) {
      const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks_ || failed_.load(std::memory_order_relaxed)) return;
      try {
        body_(task, worker);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex_);
        failed_.store(true, std::memory_order_relaxed);
        if (task < failed_task_) {
          failed_task_ = task;
          exception_ = std::current_exception();
        }
      }
    }
  }

  void RethrowIfFailed() {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  const int64_t tasks_;
  const std::function<void(int64_t, int)>& body_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  int64_t failed_task_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr exception_;
};

// Runs queue.Work(worker) as worker 0 and on up to `threads` - 1 more, which get the numbers
// from 1. Returns when all of them have left.
void RunOnWorkers(int threads, TaskQueue& queue);

// The worker number of the task that this thread is running, or -1 outside of tasks.
int& CurrentWorker();

}  // namespace headlight::internal
