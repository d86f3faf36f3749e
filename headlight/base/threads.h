// The one compute executor of the process.
//
// Tasks are numbered; which worker runs a task is not fixed, so a task must write only what its
// number owns. Sums over tasks are made by the caller in task order: that keeps results the same
// for any number of threads. The threads are those of worker_pool.cc.
#pragma once

#include <cstdint>
#include <functional>

namespace headlight {

// Number of physical cores that this process may run on (at least 1).
int PhysicalCores();

// Workers of the executor, caller included. The default is PhysicalCores().
int NumThreads();
// Throws kUsage unless 1 <= count <= 1024.
void SetNumThreads(int count);

// Runs body(task, worker) for each task in [0, tasks); worker is in [0, NumThreads()). Returns when
// all are done. Tasks are handed out in ascending order, one at a time. Calls from several threads
// run one after another; a call from inside a task runs its tasks in place, with the worker number
// of that task. The first exception (lowest task number) is thrown on after the rest has stopped
// being handed out.
void ParallelFor(int64_t tasks, const std::function<void(int64_t task, int worker)>& body);

// Splits [0, count) into consecutive ranges of at most `grain` and runs body(begin, end, worker)
// for each.
void ParallelForRange(int64_t count, int64_t grain,
                      const std::function<void(int64_t begin, int64_t end, int worker)>& body);

}  // namespace headlight
