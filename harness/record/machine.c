#include "harness/record/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPU_FOLDER "/sys/devices/system/cpu"

/* The first line of a file without its end; "" when there is none. */
static bool read_line(const char *path, char *line, size_t room) {
  line[0] = '\0';
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  const bool good = fgets(line, (int)room, file) != NULL;
  fclose(file);
  line[strcspn(line, "\n")] = '\0';
  return good;
}

/* What stands after "name :" in /proc/cpuinfo. */
static void read_cpuinfo(const char *name, char *value, size_t room) {
  value[0] = '\0';
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) return;
  char line[512];
  while (value[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
    const char *colon = strchr(line, ':');
    if (colon == NULL || strncmp(line, name, strlen(name)) != 0) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(value, room, "%s", colon + 1 + strspn(colon + 1, " \t"));
  }
  fclose(file);
}

static void read_cache_file(int cpu, int index, const char *name, char *text, size_t room) {
  char path[128];
  snprintf(path, sizeof path, CPU_FOLDER "/cpu%d/cache/index%d/%s", cpu, index, name);
  read_line(path, text, room);
}

/* Each cache is counted at the first of the CPUs that share it. */
static int count_instances(int cpus, int index) {
  int instances = 0;
  for (int cpu = 0; cpu < cpus; cpu++) {
    char shared[RGH_MACHINE_TEXT];
    read_cache_file(cpu, index, "shared_cpu_list", shared, sizeof shared);
    if (shared[0] != '\0' && strtol(shared, NULL, 10) == cpu) instances++;
  }
  return instances;
}

static void read_caches(rgh_machine *machine) {
  const int cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
  for (int index = 0; index < RGH_MAX_CACHES; index++) {
    char text[RGH_MACHINE_TEXT];
    rgh_cache *cache = &machine->cache[machine->num_caches];
    read_cache_file(0, index, "size", text, sizeof text); /* "32768K" */
    if (text[0] == '\0') return;
    cache->bytes = strtol(text, NULL, 10) * 1024;
    read_cache_file(0, index, "level", text, sizeof text);
    cache->level = (int)strtol(text, NULL, 10);
    read_cache_file(0, index, "type", cache->type, sizeof cache->type);
    cache->instances = count_instances(cpus, index);
    machine->num_caches++;
  }
}

static void read_frequency(rgh_machine *machine) {
  char text[RGH_MACHINE_TEXT];
  if (read_line(CPU_FOLDER "/cpu0/cpufreq/scaling_cur_freq", text, sizeof text)) {
    machine->frequency_mhz = strtod(text, NULL) / 1000;
    return;
  }
  read_cpuinfo("cpu MHz", text, sizeof text);
  machine->frequency_mhz = strtod(text, NULL);
}

void rgh_machine_read(rgh_machine *machine) {
  memset(machine, 0, sizeof *machine);
  read_cpuinfo("model name", machine->cpu_model, sizeof machine->cpu_model);
  read_line(CPU_FOLDER "/cpu0/cpufreq/scaling_governor", machine->governor, sizeof machine->governor);
  read_line("/sys/kernel/mm/transparent_hugepage/enabled", machine->transparent_hugepages,
            sizeof machine->transparent_hugepages);
  struct utsname system;
  if (uname(&system) == 0) {
    snprintf(machine->kernel, sizeof machine->kernel, "%.20s %.80s %.20s", system.sysname, system.release,
             system.machine);
  }
  machine->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t allowed;
  machine->cpus_allowed = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  if (getloadavg(&machine->load, 1) != 1) machine->load = -1;
  machine->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  read_frequency(machine);
  read_caches(machine);
}

int64_t rgh_last_level_cache_bytes(const rgh_machine *machine) {
  const rgh_cache *last = NULL;
  for (int c = 0; c < machine->num_caches; c++) {
    if (last == NULL || machine->cache[c].level >= last->level) last = &machine->cache[c];
  }
  return last == NULL ? 0 : last->bytes * last->instances;
}
