// The threads behind ParallelFor: they live as long as the process and sleep between calls.
//
// Nobody waits for a thread that has not begun: the caller works through the tasks too, closes the
// gate when none is left, and waits for those alone that are inside. So a machine whose cores are
// taken by other programs costs a helper, not a halt. Who waits spins for a moment (a training step
// has a new call every few microseconds), then sleeps.
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "headlight/base/threads_internal.h"

namespace headlight::internal {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than most pauses between two calls of a training step, far shorter than a time slice.
constexpr std::chrono::microseconds kSpin{50};

inline void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once done(value), which somebody makes true and then notifies.
template <typename T, typename Done>
T WaitUntil(const std::atomic<T>& value, const Done& done) {
  const Clock::time_point end = Clock::now() + kSpin;
  for (int turn = 1;; ++turn) {
    const T now = value.load(std::memory_order_acquire);
    if (done(now)) return now;
    Relax();
    if (turn % 64 == 0 && Clock::now() >= end) break;
  }
  for (;;) {
    const T now = value.load(std::memory_order_acquire);
    if (done(now)) return now;
    value.wait(now, std::memory_order_acquire);
  }
}

class WorkerPool {
 public:
  ~WorkerPool() {
    // A process that forked has the list of the threads, but not them.
    const bool ours = getpid() == owner_;
    stop_.store(true, std::memory_order_relaxed);
    Announce();
    for (std::thread& thread : threads_) ours ? thread.join() : thread.detach();
  }

  // One call at a time (ParallelFor sees to it).
  void Run(int workers, TaskQueue& queue) {
    Grow(workers - 1);
    queue_ = &queue;
    workers_ = workers;
    inside_.store(0, std::memory_order_release);
    Announce();
    RunAs(0, queue);
    inside_.fetch_add(kClosed, std::memory_order_acq_rel);
    WaitUntil(inside_, [](int inside) { return inside == kClosed; });
  }

 private:
  // Added to the number of threads inside when no more may enter.
  static constexpr int kClosed = -(1 << 20);

  static void RunAs(int worker, TaskQueue& queue) {
    CurrentWorker() = worker;
    queue.Work(worker);
    CurrentWorker() = -1;
  }

  void Announce() {
    calls_.fetch_add(1, std::memory_order_release);
    calls_.notify_all();
  }

  // Where the system gives no more threads, those that there are do the work.
  void Grow(int helpers) {
    try {
      while (static_cast<int>(threads_.size()) < helpers) {
        const int worker = static_cast<int>(threads_.size()) + 1;
        threads_.emplace_back([this, worker] { Help(worker); });
      }
    } catch (const std::system_error&) {
    }
  }

  bool Enter() {
    int inside = inside_.load(std::memory_order_acquire);
    while (inside >= 0) {
      if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void Leave() {
    if (inside_.fetch_sub(1, std::memory_order_acq_rel) - 1 == kClosed) inside_.notify_one();
  }

  void Help(int worker) {
    uint32_t seen = 0;
    for (;;) {
      seen = WaitUntil(calls_, [seen](uint32_t calls) { return calls != seen; });
      if (stop_.load(std::memory_order_relaxed)) return;
      if (!Enter()) continue;
      if (worker < workers_) RunAs(worker, *queue_);
      Leave();
    }
  }

  const pid_t owner_ = getpid();
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> calls_{0};
  std::atomic<bool> stop_{false};
  // The call that is under way: read by those who are inside, written when the gate is closed and
  // nobody is.
  TaskQueue* queue_ = nullptr;
  int workers_ = 0;
  std::atomic<int> inside_{kClosed};
};

}  // namespace

void RunOnWorkers(int threads, TaskQueue& queue) {
  if (threads == 1) {
    CurrentWorker() = 0;
    queue.Work(0);
    CurrentWorker() = -1;
    return;
  }
  static WorkerPool pool;
  pool.Run(threads, queue);
}

}  // namespace headlight::internal
