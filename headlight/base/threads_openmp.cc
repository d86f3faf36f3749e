#include <omp.h>

#include "headlight/base/threads_internal.h"

namespace headlight::internal {

void RunOnWorkers(int threads, TaskQueue& queue) {
#pragma omp parallel num_threads(threads)
  {
    CurrentWorker() = omp_get_thread_num();
    queue.Work(omp_get_thread_num());
    CurrentWorker() = -1;
  }
}

}  // namespace headlight::internal
