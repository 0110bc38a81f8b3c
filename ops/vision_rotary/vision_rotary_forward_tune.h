/* vision_rotary_forward_tune.h: the launch shape of the tuned kernels. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_FORWARD_TUNE_H
#define ROPEGRAD_OPS_VISION_ROTARY_FORWARD_TUNE_H

/* Threads of a block. H200, cold L2, geometric mean in us of five of the suite's sizes, one run:
 *
 *   threads                        64    128    256
 *   a packet of either half      2.16   2.10   2.12
 *   both halves                  2.17   2.23      -
 *
 * and the same to 0.1 % with stores marked as used once (.cs). */
enum { VISION_ROTARY_FORWARD_THREADS = 128 };

#endif
