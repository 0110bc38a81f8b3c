/* The CPU's copies as a floor. */
#include "harness/timing/floor.h"

#include <stdlib.h>
#include <string.h>

#include "harness/timing/floor_cpu.h"

static bool run(rgh_floor *floor, int copy, size_t source_shift, size_t target_shift, rgh_message *why) {
  (void)why;
  rgh_cpu_floor_run(floor->state, copy, source_shift, target_shift);
  return true;
}

static void destroy(rgh_floor *floor) {
  rgh_cpu_floor_destroy(floor->state);
  free(floor->state);
  floor->state = NULL;
}

bool rgh_floor_create_cpu(rgh_floor *floor, const rgh_floor_bytes *bytes, int threads, rgh_message *why) {
  /* More would take the time of many calls of the operator. */
  *floor = (rgh_floor){.run = run, .finalists = 2};
  rgh_cpu_floor *cpu = malloc(sizeof *cpu);
  if (cpu == NULL) return rgh_fail(why, "no memory");
  if (!rgh_cpu_floor_create(cpu, bytes->read, bytes->write, bytes->slack, threads, why)) {
    free(cpu);
    return false;
  }
  floor->state = cpu;
  floor->destroy = destroy;
  floor->num_copies = cpu->num_copies;
  for (int c = 0; c < cpu->num_copies; c++) memcpy(floor->name[c], cpu->copy[c].name, sizeof cpu->copy[c].name);
  return true;
}
