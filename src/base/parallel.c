#include "src/base/parallel.h"

#include <omp.h>

enum { RG_MIN_BYTES_PER_THREAD = 64 * 1024 };

int rg_parallel_max_threads(void) { return omp_get_max_threads(); }

void rg_parallel_ranges(int threads, int64_t count, int64_t total_bytes, rg_range_task task, void *arg) {
  if (count <= 0) return;
  int64_t useful = total_bytes / RG_MIN_BYTES_PER_THREAD;
  if (useful > count) useful = count;
  if (useful < threads) threads = (int)useful;
  if (threads <= 1) {
    task(arg, 0, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    /* The runtime may grant fewer threads than asked for. */
    const int64_t team = omp_get_num_threads();
    const int64_t rank = omp_get_thread_num();
    const int64_t share = count / team, rest = count % team;
    const int64_t begin = rank * share + (rank < rest ? rank : rest);
    const int64_t end = begin + share + (rank < rest ? 1 : 0);
    if (begin < end) task(arg, begin, end);
  }
}
