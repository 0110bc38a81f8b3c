#include "harness/timing/floor_kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A word is the widest vector that this object may use. Built with -DRGH_FLOOR_BASELINE, or with the flags of AVX2 or
 * AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(RGH_FLOOR_BASELINE) && defined(__x86_64__)
#define KERNELS rgh_floor_kernels_baseline
#define NAME "sse2"
typedef __m128i word;
static inline void stream_word(word *at, word value) { _mm_stream_si128(at, value); }
#define CAN_STREAM 1
#elif defined(RGH_FLOOR_BASELINE)
#define KERNELS rgh_floor_kernels_baseline
#define NAME "vector"
typedef uint64_t word __attribute__((vector_size(16), may_alias));
static inline void stream_word(word *at, word value) { *at = value; }
#define CAN_STREAM 0
#elif defined(__AVX512F__)
#define KERNELS rgh_floor_kernels_avx512
#define NAME "avx512"
typedef __m512i word;
static inline void stream_word(word *at, word value) { _mm512_stream_si512(at, value); }
#define CAN_STREAM 1
#elif defined(__AVX2__)
#define KERNELS rgh_floor_kernels_avx2
#define NAME "avx2"
typedef __m256i word;
static inline void stream_word(word *at, word value) { _mm256_stream_si256(at, value); }
#define CAN_STREAM 1
#else
#error "build with -DRGH_FLOOR_BASELINE or with the flags of AVX2 or AVX-512"
#endif

enum { WORDS_PER_LINE = RGH_LINE_BYTES / sizeof(word), UNROLL = 4 * WORDS_PER_LINE };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void store_word(word *at, word value, bool streaming) {
  if (streaming) {
    stream_word(at, value);
  } else {
    *at = value;
  }
}

ALWAYS_INLINE void copy_lines(const word *source, word *target, int64_t lines, bool streaming) {
  const int64_t words = lines * WORDS_PER_LINE;
  int64_t i = 0;
  for (; i + UNROLL <= words; i += UNROLL) {
    word value[UNROLL];
    for (int u = 0; u < UNROLL; ++u) value[u] = source[i + u];
    for (int u = 0; u < UNROLL; ++u) store_word(&target[i + u], value[u], streaming);
  }
  for (; i < words; ++i) store_word(&target[i], source[i], streaming);
}

ALWAYS_INLINE word read_lines(const word *source, int64_t lines, word seen) {
  const int64_t words = lines * WORDS_PER_LINE;
  word part[4] = {seen, {0}, {0}, {0}};
  int64_t i = 0;
  for (; i + UNROLL <= words; i += UNROLL) {
    for (int u = 0; u < UNROLL; ++u) part[u % 4] ^= source[i + u];
  }
  for (; i < words; ++i) part[0] ^= source[i];
  return part[0] ^ part[1] ^ part[2] ^ part[3];
}

ALWAYS_INLINE void write_lines(word *target, int64_t lines, bool streaming) {
  const word zero = {0};
  for (int64_t i = 0; i < lines * WORDS_PER_LINE; ++i) store_word(&target[i], zero, streaming);
}

/* Where part `index` of `parts` equal parts of `total` begins. Written so that no product overflows. */
ALWAYS_INLINE int64_t part_begin(int64_t total, int64_t parts, int64_t index) {
  const int64_t share = total / parts, rest = total % parts;
  return index * share + (index < rest ? index : rest);
}

ALWAYS_INLINE uint64_t run(const rgh_floor_job *job, bool streaming) {
  const int64_t longer = job->read_lines > job->write_lines ? job->read_lines : job->write_lines;
  const int64_t blocks = (longer + job->block_lines - 1) / job->block_lines;
  word seen = {0};
  const int64_t turns = (blocks + job->streams - 1) / job->streams;
  for (int64_t turn = 0; turn < turns; ++turn) {
    for (int stream = 0; stream < job->streams; ++stream) {
      const int64_t block = part_begin(blocks, job->streams, stream) + turn;
      if (block >= part_begin(blocks, job->streams, stream + 1)) continue;
      const int64_t read = part_begin(job->read_lines, blocks, block);
      const int64_t write = part_begin(job->write_lines, blocks, block);
      const int64_t reads = part_begin(job->read_lines, blocks, block + 1) - read;
      const int64_t writes = part_begin(job->write_lines, blocks, block + 1) - write;
      const int64_t both = reads < writes ? reads : writes;
      const word *source = (const word *)(job->source + read * RGH_LINE_BYTES);
      word *target = (word *)(job->target + write * RGH_LINE_BYTES);
      copy_lines(source, target, both, streaming);
      seen = read_lines(source + both * WORDS_PER_LINE, reads - both, seen);
      write_lines(target + both * WORDS_PER_LINE, writes - both, streaming);
    }
  }
#if CAN_STREAM
  /* The next reader of the target, on any thread, must find what was streamed. */
  if (streaming) _mm_sfence();
#endif
  uint64_t part[sizeof(word) / sizeof(uint64_t)], folded = 0;
  memcpy(part, &seen, sizeof part);
  for (size_t i = 0; i < sizeof part / sizeof part[0]; ++i) folded ^= part[i];
  return folded;
}

static uint64_t run_ordinary(const rgh_floor_job *job) { return run(job, false); }

#if CAN_STREAM
static uint64_t run_streaming(const rgh_floor_job *job) { return run(job, true); }
#define STREAMING run_streaming
#else
#define STREAMING NULL
#endif

const rgh_floor_kernels KERNELS = {.name = NAME, .ordinary = run_ordinary, .streaming = STREAMING};
