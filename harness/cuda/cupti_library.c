#include "harness/cuda/cupti_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Newest first: a driver serves the CUPTI of its own major version and of older ones. */
static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
enum { NUM_NAMES = sizeof names / sizeof names[0] };

/* Folders of a toolkit, and of a Python environment, that have held it. */
static const char *const toolkit_folders[] = {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"};
enum { NUM_TOOLKIT_FOLDERS = sizeof toolkit_folders / sizeof toolkit_folders[0] };
static const char *const python_folders[] = {"lib/python3*/site-packages/nvidia/*/lib",
                                             "lib/python3*/dist-packages/nvidia/*/lib"};
enum { NUM_PYTHON_FOLDERS = sizeof python_folders / sizeof python_folders[0] };

/* The first file of the pattern that loads. */
static void *open_pattern(const char *pattern) {
  glob_t found;
  void *library = NULL;
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  for (size_t f = 0; f < found.gl_pathc && library == NULL; f++) {
    library = dlopen(found.gl_pathv[f], RTLD_NOW | RTLD_LOCAL);
  }
  globfree(&found);
  return library;
}

static void *open_below(const char *root, const char *const *folders, int num_folders) {
  void *library = NULL;
  for (int n = 0; n < NUM_NAMES; n++) {
    for (int f = 0; f < num_folders && library == NULL; f++) {
      char pattern[PATH_MAX];
      snprintf(pattern, sizeof pattern, "%s/%s/%s", root, folders[f], names[n]);
      library = open_pattern(pattern);
    }
  }
  return library;
}

static void *open_in_toolkits(void) {
  const char *const roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", "/usr/local/cuda-*",
                               "/opt/cuda"};
  void *library = NULL;
  for (size_t r = 0; r < sizeof roots / sizeof roots[0] && library == NULL; r++) {
    if (roots[r] != NULL) library = open_below(roots[r], toolkit_folders, NUM_TOOLKIT_FOLDERS);
  }
  return library;
}

/* PREFIX of each PREFIX/bin/python3 on PATH. */
static void *open_beside_python(void) {
  const char *path = getenv("PATH");
  void *library = NULL;
  while (path != NULL && *path != '\0' && library == NULL) {
    const int length = (int)strcspn(path, ":");
    char root[PATH_MAX];
    snprintf(root, sizeof root, "%.*s/python3", length, path);
    FILE *python = fopen(root, "r");
    if (python != NULL) {
      fclose(python);
      snprintf(root, sizeof root, "%.*s/..", length, path);
      library = open_below(root, python_folders, NUM_PYTHON_FOLDERS);
    }
    path += length + (path[length] == ':');
  }
  return library;
}

static bool open_library(rgh_cupti *cupti, rgh_message *why) {
  const char *asked = getenv(RGH_CUPTI_VARIABLE);
  if (asked != NULL && asked[0] != '\0') {
    cupti->library = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
    return cupti->library != NULL || rgh_fail(why, RGH_CUPTI_VARIABLE ": %s", dlerror());
  }
  for (int n = 0; n < NUM_NAMES && cupti->library == NULL; n++) {
    cupti->library = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);
  }
  if (cupti->library == NULL) cupti->library = open_in_toolkits();
  if (cupti->library == NULL) cupti->library = open_beside_python();
  if (cupti->library != NULL) return true;
  return rgh_fail(
      why,
      "libcupti.so was not found on the loader's path, in a CUDA toolkit, or beside python3: set " RGH_CUPTI_VARIABLE
      " to its file, or take --timer events");
}

bool rgh_cupti_load(rgh_cupti *cupti, rgh_message *why) {
  *cupti = (rgh_cupti){0};
  if (!open_library(cupti, why)) return false;
#define LOOK_UP(function)                                        \
  *(void **)&cupti->function = dlsym(cupti->library, #function); \
  if (cupti->function == NULL) return rgh_fail(why, "the CUPTI that was found has no " #function);
  RGH_CUPTI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  cupti->cuptiGetVersion(&cupti->version);
  return true;
}
