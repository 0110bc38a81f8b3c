/* draw_memory.h: what a drawn descriptor points at. */
#ifndef ROPEGRAD_FUZZ_DRAW_MEMORY_H
#define ROPEGRAD_FUZZ_DRAW_MEMORY_H

#include "fuzz/byte_source.h"
#include "fuzz/draw_call.h"

/* Gives tensor number `index` a block that holds it and not a byte more; sometimes a place in an earlier tensor's
 * instead. False: no memory. */
bool draw_memory(drawn_call *call, int index, byte_source *s);

#endif
