/* The plain copies of a GPU: floor.cu's kernels, each over several shapes of grid. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cuda/floor_params.h"
#include "harness/cuda/gpu_state.h"

/* floor.cu's device code, embedded by the build. */
extern const unsigned char rgh_floor_image[];

static const int word_bytes[] = {16, 8}, pieces[] = {1, 2, 4, 8}, block_threads[] = {128, 256, 512};
static const char *const hints[] = {"kept", "streamed", "wide"};
enum { WORDS = 2, PIECES = 4, HINTS = 3, THREADS = 3, MAPPINGS = 2 };

/* The kernels count words in 32 bits; the rest of the range is room for the last chunk to reach beyond the end. */
static const int64_t MAX_WORDS = INT64_C(1) << 31;

typedef struct cuda_copy {
  CUfunction kernel;
  int word, piece, threads; /* bytes of a word, words of a thread, threads of a block */
  unsigned blocks;
} cuda_copy;

typedef struct cuda_floor {
  rgh_cuda *cuda;
  rgh_floor_bytes bytes;
  unsigned char *source, *target, *seen;
  cuda_copy copy[RGH_MAX_FLOOR_COPIES];
} cuda_floor;

static rgh_floor_params params_of(const cuda_floor *floor, const cuda_copy *copy) {
  const int64_t reads = floor->bytes.read / copy->word, writes = floor->bytes.write / copy->word;
  const int64_t shorter = reads >= writes ? writes : reads, chunks = copy->blocks;
  return (rgh_floor_params){
      .reads = (unsigned)reads,
      .writes = (unsigned)writes,
      .short_share = (unsigned)(shorter / chunks),
      .short_rest = (unsigned)(shorter % chunks),
      .never = 0x5EEDF00D,
      .tails = (unsigned)(floor->bytes.read % copy->word + 256 * (floor->bytes.write % copy->word)),
  };
}

static bool launch(const rgh_cuda *cuda, CUfunction kernel, unsigned blocks, int threads, void **arguments,
                   rgh_message *why) {
  const CUlaunchConfig config = {.gridDimX = blocks,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = (unsigned)threads,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = cuda->stream};
  return rgh_cuda_good(cuda, cuda->driver->cuLaunchKernelEx(&config, kernel, arguments, NULL), "launching a plain copy",
                       why);
}

static bool run_as(rgh_floor *made, int number, size_t source_shift, size_t target_shift, bool all, rgh_message *why) {
  const cuda_floor *floor = made->state;
  const cuda_copy *copy = &floor->copy[number];
  rgh_floor_params params = params_of(floor, copy);
  params.source = floor->source + source_shift;
  params.target = floor->target + target_shift;
  params.seen = (unsigned *)floor->seen;
  params.all = all;
  return launch(floor->cuda, copy->kernel, copy->blocks, copy->threads, (void *[]){&params}, why);
}

static bool run(rgh_floor *made, int number, size_t source_shift, size_t target_shift, rgh_message *why) {
  return run_as(made, number, source_shift, target_shift, false, why);
}

bool rgh_cuda_floor_observe(rgh_floor *made, int number, size_t source_shift, size_t target_shift, unsigned *seen,
                            unsigned char **source, unsigned char **target, rgh_message *why) {
  const cuda_floor *floor = made->state;
  rgh_memory *memory = &floor->cuda->memory;
  if (source != NULL) *source = floor->source + source_shift;
  if (target != NULL) *target = floor->target + target_shift;
  return memory->set(memory, floor->seen, 0, sizeof *seen, why) &&
         run_as(made, number, source_shift, target_shift, true, why) &&
         memory->download(memory, (unsigned char *)seen, floor->seen, sizeof *seen, why);
}

static void destroy(rgh_floor *made) {
  cuda_floor *floor = made->state;
  rgh_memory *memory = &floor->cuda->memory;
  memory->release(memory, floor->source);
  memory->release(memory, floor->target);
  memory->release(memory, floor->seen);
  free(floor);
  made->state = NULL;
}

/* ---- making ---- */

static bool find_kernel(const cuda_floor *floor, const char *name, CUfunction *kernel, rgh_message *why) {
  const rg_cuda_driver *driver = floor->cuda->driver;
  CUkernel found = NULL;
  CUresult result = driver->cuLibraryGetKernel(&found, floor->cuda->copies, name);
  if (result == CUDA_SUCCESS) result = driver->cuKernelGetFunction(kernel, found);
  return rgh_cuda_good(floor->cuda, result, name, why);
}

/* One kernel, in blocks of every size. */
static bool add_kernel(rgh_floor *made, int word, int piece, const char *hint, bool spread, rgh_message *why) {
  cuda_floor *floor = made->state;
  const int64_t reads = floor->bytes.read / word, writes = floor->bytes.write / word;
  if (reads > MAX_WORDS || writes > MAX_WORDS) return true;
  const int64_t longer = reads >= writes ? reads : writes;
  const char *mapping = !spread ? "front" : reads >= writes ? "spread_writes" : "spread_reads";
  char name[64];
  cuda_copy copy = {.word = word, .piece = piece};
  snprintf(name, sizeof name, "floor_copy_%d_%d_%s_%s", word, piece, hint, mapping);
  if (!find_kernel(floor, name, &copy.kernel, why)) return false;
  for (int t = 0; t < THREADS; t++) {
    const int64_t chunk = (int64_t)block_threads[t] * piece;
    copy.threads = block_threads[t];
    copy.blocks = longer > chunk ? (unsigned)((longer + chunk - 1) / chunk) : 1;
    snprintf(made->name[made->num_copies], RGH_FLOOR_NAME_BYTES, "%d bytes x %d, %s, %s, %d threads", word, piece, hint,
             spread ? "spread" : "front", copy.threads);
    floor->copy[made->num_copies++] = copy;
  }
  return true;
}

static bool add_copies(rgh_floor *made, rgh_message *why) {
  for (int w = 0; w < WORDS; w++) {
    for (int p = 0; p < PIECES; p++) {
      for (int h = 0; h < HINTS; h++) {
        for (int spread = 0; spread < MAPPINGS; spread++) {
          if (!add_kernel(made, word_bytes[w], pieces[p], hints[h], spread, why)) return false;
        }
      }
    }
  }
  if (made->num_copies > 0) return true;
  return rgh_fail(why, "the case moves more than the plain copies can count: %lld words of 16 bytes",
                  (long long)MAX_WORDS);
}

static bool fill_random(const cuda_floor *floor, unsigned char *at, int64_t bytes, uint64_t seed, rgh_message *why) {
  CUfunction kernel;
  CUdeviceptr begin = (CUdeviceptr)(uintptr_t)at;
  long long words = bytes / (int64_t)sizeof(uint64_t);
  unsigned long long first = seed;
  if (!find_kernel(floor, "floor_fill", &kernel, why)) return false;
  const unsigned blocks = (unsigned)floor->cuda->multiprocessors * 8;
  return launch(floor->cuda, kernel, blocks, 256, (void *[]){&begin, &words, &first}, why);
}

static unsigned char *allocate(cuda_floor *floor, int64_t bytes) {
  rgh_memory *memory = &floor->cuda->memory;
  return memory->allocate(memory, (size_t)bytes + floor->bytes.slack + RGH_MEMORY_ALIGNMENT);
}

/* Once for all cases. */
static bool load_copies(rgh_cuda *cuda, rgh_message *why) {
  if (cuda->copies != NULL) return true;
  const CUresult result = cuda->driver->cuLibraryLoadData(&cuda->copies, rgh_floor_image, NULL, NULL, 0, NULL, NULL, 0);
  return rgh_cuda_good(cuda, result, "loading the plain copies", why);
}

bool rgh_cuda_floor_create(const rgh_device *device, rgh_floor *made, const rgh_floor_bytes *bytes, int threads,
                           rgh_message *why) {
  (void)threads;
  *made = (rgh_floor){.run = run, .finalists = RGH_MAX_FINALISTS};
  cuda_floor *floor = calloc(1, sizeof *floor);
  if (floor == NULL) return rgh_fail(why, "no memory");
  *floor = (cuda_floor){.cuda = device->state, .bytes = *bytes};
  made->state = floor;
  made->destroy = destroy;
  floor->source = allocate(floor, bytes->read);
  floor->target = allocate(floor, bytes->write);
  floor->seen = allocate(floor, 0);
  if (floor->source == NULL || floor->target == NULL || floor->seen == NULL) {
    return rgh_fail(why, "the GPU has no memory for a plain copy of the case's %lld bytes",
                    (long long)(bytes->read + bytes->write));
  }
  return load_copies(floor->cuda, why) &&
         fill_random(floor, floor->source, bytes->read + (int64_t)bytes->slack + 8, 1, why) &&
         fill_random(floor, floor->target, bytes->write + (int64_t)bytes->slack + 8, 2, why) && add_copies(made, why) &&
         rgh_cuda_wait(floor->cuda, "preparing the plain copies", why);
}
