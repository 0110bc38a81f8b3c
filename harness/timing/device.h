/* device.h: what timing needs of a device, and how the CPU and a GPU differ in it. */
#ifndef ROPEGRAD_HARNESS_TIMING_DEVICE_H
#define ROPEGRAD_HARNESS_TIMING_DEVICE_H

#include "harness/buffers/memory.h"
#include "harness/timing/floor.h"

typedef struct rgh_device {
  rgh_memory *memory; /* NULL: the host's */
  void *state;
  bool (*create_floor)(const struct rgh_device *device, rgh_floor *floor, const rgh_floor_bytes *bytes, int threads,
                       rgh_message *why);
  /* Of the multiprocessors, at this moment; 0: not known. NULL: the device has none. */
  int (*clock_mhz)(const struct rgh_device *device);
} rgh_device;

extern const rgh_device rgh_device_cpu;

#endif /* ROPEGRAD_HARNESS_TIMING_DEVICE_H */
