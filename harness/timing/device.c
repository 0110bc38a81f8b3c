#include "harness/timing/device.h"

static bool create_floor(const rgh_device *device, rgh_floor *floor, const rgh_floor_bytes *bytes, int threads,
                         rgh_message *why) {
  (void)device;
  return rgh_floor_create_cpu(floor, bytes, threads, why);
}

const rgh_device rgh_device_cpu = {.create_floor = create_floor};
