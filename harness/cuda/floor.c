/* The plain copies of a GPU: floor.cu's kernels, each over several shapes of grid. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cuda/floor_params.h"
#include "harness/cuda/gpu_state.h"

/* floor.cu's device code, embedded by the build. */
extern const unsigned char rgh_floor_image[];

static const int word_bytes[] = {16, 8}, pieces[] = {1, 2, 4, 8}, block_threads[] = {64, 128, 256, 512};
static const char *const hints[] = {"kept", "streamed"};
enum { WORDS = 2, PIECES = 4, HINTS = 2, THREADS = 4 };

/* A block waits for its slowest load, so beyond this many words a thread's fetching one word is never the fastest. */
enum { MAX_BLOCKS = 1 << 22, RESIDENT_THREADS = 2048, RESIDENT_BLOCKS = 32, REGISTERS = 65536 };

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
  const int64_t longer = reads >= writes ? reads : writes, shorter = reads >= writes ? writes : reads;
  const int64_t chunk = (int64_t)copy->threads * copy->piece;
  const int64_t chunks = longer > 0 ? (longer + chunk - 1) / chunk : 1;
  return (rgh_floor_params){.long_words = longer,
                            .short_share = shorter / chunks,
                            .short_rest = shorter % chunks,
                            .chunks = chunks,
                            .read_tail = (int)(floor->bytes.read % copy->word),
                            .write_tail = (int)(floor->bytes.write % copy->word),
                            .never = 0x5EEDF00D};
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

static bool run(rgh_floor *made, int number, size_t source_shift, size_t target_shift, rgh_message *why) {
  const cuda_floor *floor = made->state;
  const cuda_copy *copy = &floor->copy[number];
  rgh_floor_params params = params_of(floor, copy);
  params.source = floor->source + source_shift;
  params.target = floor->target + target_shift;
  params.seen = (unsigned *)floor->seen;
  return launch(floor->cuda, copy->kernel, copy->blocks, copy->threads, (void *[]){&params}, why);
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

static void add_copy(rgh_floor *made, cuda_copy copy, const char *hint, bool persistent) {
  cuda_floor *floor = made->state;
  if (made->num_copies == RGH_MAX_FLOOR_COPIES) return;
  snprintf(made->name[made->num_copies], RGH_FLOOR_NAME_BYTES, "%d bytes x %d, %s, %d threads, %s", copy.word,
           copy.piece, hint, copy.threads, persistent ? "persistent" : "one-shot");
  floor->copy[made->num_copies++] = copy;
}

/* A block for every chunk, and, where those are more than the GPU holds at a time, as many blocks as it holds, which go
 * round. */
static void add_grids(rgh_floor *made, cuda_copy copy, const char *hint) {
  const cuda_floor *floor = made->state;
  int registers = 32;
  floor->cuda->driver->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, copy.kernel);
  const int by_registers = REGISTERS / (registers * copy.threads);
  int resident = RESIDENT_THREADS / copy.threads;
  if (by_registers < resident) resident = by_registers;
  if (resident > RESIDENT_BLOCKS) resident = RESIDENT_BLOCKS;
  const int64_t held = (int64_t)resident * floor->cuda->multiprocessors;
  const int64_t chunks = params_of(floor, &copy).chunks;
  if (chunks <= MAX_BLOCKS) {
    copy.blocks = (unsigned)chunks;
    add_copy(made, copy, hint, false);
  }
  if (chunks > held) {
    copy.blocks = (unsigned)held;
    add_copy(made, copy, hint, true);
  }
}

static bool add_copies(rgh_floor *made, rgh_message *why) {
  const cuda_floor *floor = made->state;
  for (int w = 0; w < WORDS; w++) {
    /* As params_of decides it. */
    const bool reads_more = floor->bytes.read / word_bytes[w] >= floor->bytes.write / word_bytes[w];
    for (int p = 0; p < PIECES; p++) {
      for (int h = 0; h < HINTS; h++) {
        char name[64];
        cuda_copy copy = {.word = word_bytes[w], .piece = pieces[p]};
        snprintf(name, sizeof name, "floor_copy_%d_%d_%s_%s", copy.word, copy.piece, hints[h],
                 reads_more ? "reads" : "writes");
        if (!find_kernel(floor, name, &copy.kernel, why)) return false;
        for (int t = 0; t < THREADS; t++) {
          copy.threads = block_threads[t];
          add_grids(made, copy, hints[h]);
        }
      }
    }
  }
  return true;
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
  *made = (rgh_floor){.run = run};
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
