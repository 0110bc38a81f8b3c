/* machine.h: what the operating system says about this machine. */
#ifndef ROPEGRAD_HARNESS_RECORD_MACHINE_H
#define ROPEGRAD_HARNESS_RECORD_MACHINE_H

#include <stdint.h>

enum { RGH_MACHINE_TEXT = 128 };

typedef struct rgh_cache {
  int level;
  char type[16]; /* "Data", "Instruction", "Unified" */
  int64_t bytes; /* of one cache */
  int instances; /* how many of them the online CPUs have */
} rgh_cache;

enum { RGH_MAX_CACHES = 8 };

/* "" and 0 where the system does not say. */
typedef struct rgh_machine {
  char cpu_model[RGH_MACHINE_TEXT];
  char governor[RGH_MACHINE_TEXT]; /* of the first CPU */
  char transparent_hugepages[RGH_MACHINE_TEXT];
  char kernel[RGH_MACHINE_TEXT]; /* "Linux 6.1.0 x86_64" */
  int cpus_online;
  int cpus_allowed;     /* to this process */
  double frequency_mhz; /* of the first CPU, at this moment */
  double load;          /* runnable processes, mean of the last minute; -1: not known */
  int64_t memory_bytes;
  rgh_cache cache[RGH_MAX_CACHES];
  int num_caches;
} rgh_machine;

void rgh_machine_read(rgh_machine *machine);

/* Bytes of all the last-level caches together: each socket, and on some CPUs each group of cores, has one of its own.
 * 0: not known. */
int64_t rgh_last_level_cache_bytes(const rgh_machine *machine);

#endif /* ROPEGRAD_HARNESS_RECORD_MACHINE_H */
