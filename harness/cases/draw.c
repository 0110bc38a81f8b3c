#include "harness/cases/draw.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "harness/cases/philox.h"

rgh_stream rgh_stream_of(uint64_t seed, const char *op, const char *case_name, const char *tensor, uint32_t number) {
  const char *names[] = {op, case_name, tensor};
  uint64_t digest = seed;
  /* Chained name by name, so that ("ab", "c") and ("a", "bc") differ. */
  for (int i = 0; i < 3; ++i) digest = XXH3_64bits_withSeed(names[i], strlen(names[i]), digest);
  return (rgh_stream){{(uint32_t)digest, (uint32_t)(digest >> 32)}, number};
}

void rgh_draw_words(const rgh_stream *stream, uint64_t chunk, uint32_t word[RGH_CHUNK]) {
  uint32_t key[2] = {stream->key[0], stream->key[1]};
  for (int b = 0; b < RGH_CHUNK_BLOCKS; ++b) {
    word[b] = (uint32_t)b;
    word[RGH_CHUNK_BLOCKS + b] = (uint32_t)chunk;
    word[2 * RGH_CHUNK_BLOCKS + b] = (uint32_t)(chunk >> 32);
    word[3 * RGH_CHUNK_BLOCKS + b] = stream->number;
  }
  for (int round = 0; round < RGH_PHILOX_ROUNDS; ++round, rgh_philox_bump(key)) {
#pragma omp simd
    for (int b = 0; b < RGH_CHUNK_BLOCKS; ++b) rgh_philox_round(word + b, RGH_CHUNK_BLOCKS, key[0], key[1]);
  }
}

uint64_t rgh_draw_bits(const rgh_stream *stream, uint64_t index) {
  /* Word 0 is past every block number of a chunk: these counters are no chunk's. */
  uint32_t counter[4] = {UINT32_MAX, (uint32_t)index, (uint32_t)(index >> 32), stream->number};
  rgh_philox4x32_10(counter, stream->key);
  return (uint64_t)counter[1] << 32 | counter[0];
}

/* -2 ln(u) for u = (word / 2^8 + 1) / 2^24 in (0, 1]. */
static inline float minus_two_log(uint32_t word) {
  const float u = (float)((int32_t)(word >> 8) + 1) * 0x1p-24f;
  uint32_t bits;
  memcpy(&bits, &u, sizeof bits);
  /* u = 2^exponent * m with m in [sqrt(1/2), sqrt(2)): 0x3f3504f3 is sqrt(1/2). */
  const uint32_t above = bits - UINT32_C(0x3f3504f3);
  const float exponent = (float)((int32_t)above >> 23);
  bits = (above & UINT32_C(0x007fffff)) + UINT32_C(0x3f3504f3);
  float m;
  memcpy(&m, &bits, sizeof m);
  /* ln m = 2 artanh((m - 1) / (m + 1)), whose argument is at most 0.172: the next term of the series is under 1e-9. */
  const float s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
  const float series = s * (2.0f + s2 * (2.0f / 3 + s2 * (2.0f / 5 + s2 * (2.0f / 7 + s2 * (2.0f / 9)))));
  return -2.0f * (exponent * 0.693147181f + series);
}

/* sin and cos of 2 pi word / 2^32. */
static inline void turn(uint32_t word, float *sine, float *cosine) {
  const uint32_t quadrant = (word + UINT32_C(0x20000000)) >> 30;
  /* The rest lies within 2^29 of 0, an eighth of a turn; 24 bits of it fit a float. */
  const float x = (float)((int32_t)(word - (quadrant << 30)) >> 6) * (1.57079633f * 0x1p-24f), x2 = x * x;
  const float s = x * (1 + x2 * (-1.0f / 6 + x2 * (1.0f / 120 + x2 * (-1.0f / 5040 + x2 * (1.0f / 362880)))));
  const float c = 1 + x2 * (-0.5f + x2 * (1.0f / 24 + x2 * (-1.0f / 720 + x2 * (1.0f / 40320))));
  uint32_t sine_bits, cosine_bits;
  memcpy(&sine_bits, &s, sizeof s);
  memcpy(&cosine_bits, &c, sizeof c);
  /* Odd quadrants swap the two. Masks and not branches: the loop round this is vector code. */
  const uint32_t swap = (sine_bits ^ cosine_bits) & (0u - (quadrant & 1));
  sine_bits ^= swap ^ ((quadrant & 2) << 30);
  cosine_bits ^= swap ^ (((quadrant + 1) & 2) << 30);
  memcpy(sine, &sine_bits, sizeof *sine);
  memcpy(cosine, &cosine_bits, sizeof *cosine);
}

void rgh_draw_normals(const rgh_stream *stream, uint64_t chunk, float value[RGH_CHUNK]) {
  uint32_t word[RGH_CHUNK];
  rgh_draw_words(stream, chunk, word);
  for (int half = 0; half < RGH_CHUNK; half += RGH_CHUNK / 2) {
    const uint32_t *first = word + half, *second = first + RGH_CHUNK_BLOCKS;
#pragma omp simd
    for (int b = 0; b < RGH_CHUNK_BLOCKS; ++b) {
      float sine, cosine;
      turn(second[b], &sine, &cosine);
      const float radius = sqrtf(minus_two_log(first[b]));
      value[half + b] = radius * cosine;
      value[half + RGH_CHUNK_BLOCKS + b] = radius * sine;
    }
  }
}
