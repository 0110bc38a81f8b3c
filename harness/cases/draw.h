/* draw.h: random words and normal values in chunks, each a pure function of a stream and the chunk's number. */
#ifndef ROPEGRAD_HARNESS_CASES_DRAW_H
#define ROPEGRAD_HARNESS_CASES_DRAW_H

#include <stdint.h>

enum { RGH_CHUNK_BLOCKS = 64, RGH_CHUNK = 4 * RGH_CHUNK_BLOCKS };

typedef struct rgh_stream {
  uint32_t key[2];
  uint32_t number; /* streams of one key with different numbers are independent */
} rgh_stream;

/* The stream of a tensor: its key is a digest of the seed and the three names. */
rgh_stream rgh_stream_of(uint64_t seed, const char *op, const char *case_name, const char *tensor, uint32_t number);

/* Word w of block b of the chunk stands at word[w * RGH_CHUNK_BLOCKS + b]. */
void rgh_draw_words(const rgh_stream *stream, uint64_t chunk, uint32_t word[RGH_CHUNK]);

/* Standard normal values by the Box-Muller transform, |value| < 5.8. In float32 without contraction and without libm,
 * so that every machine draws the same bits. */
void rgh_draw_normals(const rgh_stream *stream, uint64_t chunk, float value[RGH_CHUNK]);

/* 64 random bits for element `index`, for draws that are too few to be worth a chunk. */
uint64_t rgh_draw_bits(const rgh_stream *stream, uint64_t index);

#endif /* ROPEGRAD_HARNESS_CASES_DRAW_H */
