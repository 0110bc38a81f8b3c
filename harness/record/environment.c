#include "harness/record/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ropegrad/ropegrad.h"
#include "ropegrad_build_info.h"

json_t *rgh_text_json(const char *text) {
  if (text == NULL || text[0] == '\0') return json_null();
  json_t *json = json_string(text);
  if (json != NULL) return json;
  char *ascii = malloc(strlen(text) + 1);
  if (ascii == NULL) return NULL;
  for (size_t i = 0; i <= strlen(text); i++) ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
  json = json_string(ascii);
  free(ascii);
  return json;
}

static json_t *caches_json(const rgh_machine *machine) {
  json_t *list = json_array();
  for (int c = 0; c < machine->num_caches; c++) {
    const rgh_cache *cache = &machine->cache[c];
    json_array_append_new(
        list, json_pack("{s:i, s:o, s:I, s:i}", "level", cache->level, "type", rgh_text_json(cache->type), "bytes",
                        (json_int_t)cache->bytes, "instances", cache->instances));
  }
  return list;
}

/* What the OpenMP runtimes listen to; null where it is not set. */
static json_t *openmp_json(void) {
  static const char *const names[] = {"OMP_NUM_THREADS", "OMP_PROC_BIND",     "OMP_PLACES",    "OMP_WAIT_POLICY",
                                      "OMP_DYNAMIC",     "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT"};
  json_t *settings = json_object();
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    json_object_set_new(settings, names[i], rgh_text_json(getenv(names[i])));
  }
  return settings;
}

static json_t *argv_json(const char *const *argv) {
  json_t *list = json_array();
  for (; *argv != NULL; argv++) {
    json_array_append_new(list, **argv == '\0' ? json_string("") : rgh_text_json(*argv));
  }
  return list;
}

static json_t *build_json(void) {
  const bool known = ROPEGRAD_BUILD_COMMIT[0] != '\0';
  return json_pack("{s:s, s:o, s:o, s:s, s:s}", "version", rg_version(), "commit", rgh_text_json(ROPEGRAD_BUILD_COMMIT),
                   "dirty", known ? json_boolean(ROPEGRAD_BUILD_DIRTY) : json_null(), "compiler",
                   ROPEGRAD_BUILD_COMPILER, "flags", ROPEGRAD_BUILD_FLAGS);
}

json_t *rgh_environment_json(const rgh_machine *machine, const rgh_gpu *gpu, const char *const *argv, int threads) {
  char utc[32];
  const time_t now = time(NULL);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%SZ", &parts);
  json_t *environment = build_json();
  json_t *rest =
      json_pack("{s:s, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "utc", utc, "argv",
                argv_json(argv), "cpu_model", rgh_text_json(machine->cpu_model), "cpus_online", machine->cpus_online,
                "cpus_allowed", machine->cpus_allowed, "threads", threads, "openmp", openmp_json(), "caches",
                caches_json(machine), "kernel", rgh_text_json(machine->kernel), "memory_bytes",
                (json_int_t)machine->memory_bytes, "governor", rgh_text_json(machine->governor), "frequency_mhz",
                machine->frequency_mhz > 0 ? json_real(machine->frequency_mhz) : json_null(), "transparent_hugepages",
                rgh_text_json(machine->transparent_hugepages), "load_at_start",
                machine->load >= 0 ? json_real(machine->load) : json_null());
  if (environment != NULL) json_object_update_missing(environment, rest);
  json_decref(rest);
  if (environment != NULL) json_object_set_new(environment, "gpu", rgh_gpu_json(gpu));
  return environment;
}

void rgh_version_text(char *text, int room) {
  const bool known = ROPEGRAD_BUILD_COMMIT[0] != '\0';
  snprintf(text, (size_t)room, "%s%s%.12s%s%s", rg_version(), known ? " (commit " : "", ROPEGRAD_BUILD_COMMIT,
           known && ROPEGRAD_BUILD_DIRTY ? ", modified" : "", known ? ")" : "");
}
