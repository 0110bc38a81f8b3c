/* The one place where threads are made. */
#ifndef ROPEGRAD_SRC_BASE_PARALLEL_H
#define ROPEGRAD_SRC_BASE_PARALLEL_H

#include <stdint.h>

/* As many threads as this process may use. */
int rg_parallel_max_threads(void);

/* Runs task(arg, begin, end) over consecutive pieces of [0, count), one piece per thread, on at most `threads` threads,
 * and returns when all are done. Work of few bytes stays on the calling thread: waking another one costs about as much
 * as moving 64 KiB. Where the pieces are cut depends on `threads`, so a task's result must not depend on the cuts. */
typedef void (*rg_range_task)(void *arg, int64_t begin, int64_t end);
void rg_parallel_ranges(int threads, int64_t count, int64_t total_bytes, rg_range_task task, void *arg);

#endif
