/* rope_apply_shapes.h: the kernels that have everything fixed, for both sides: the device code compiles each, the
 * launcher finds them by what they are.
 *
 *   DIRECT(payload, table, plain, rows, groups, depth, loads_once, stores_once)    loads `depth` heads, then uses them
 *   PIPELINE(payload, table, plain, rows, groups, depth, loads_once, stores_once)  bulk copies in `depth` stages
 *
 * payload, table: dtypes of q and k and of the tables. plain: 1 where no gradient of a table is wanted. rows: positions
 * of a block. groups: of heads, side by side. loads_once, stores_once: 1 where the caches are asked to treat what is
 * loaded of q and k, or stored of their gradients, as used once. Which of them is taken when, and what was measured,
 * rope_apply_tune.h says. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_SHAPES_H
#define ROPEGRAD_OPS_ROPE_APPLY_SHAPES_H

#define ROPE_APPLY_16_BIT_KERNELS(DIRECT, PIPELINE, payload, table) \
  DIRECT(payload, table, 0, 4, 4, 1, 1, 0)                          \
  PIPELINE(payload, table, 0, 4, 4, 6, 0, 0)

#define ROPE_APPLY_FIXED_KERNELS(DIRECT, PIPELINE)        \
  DIRECT(f32, f32, 0, 1, 8, 5, 1, 1)                      \
  DIRECT(f32, f32, 0, 1, 20, 2, 0, 1)                     \
  DIRECT(f32, f32, 0, 4, 4, 2, 0, 1)                      \
  DIRECT(f32, f32, 0, 8, 2, 2, 0, 1)                      \
  PIPELINE(f32, f32, 0, 1, 8, 6, 1, 1)                    \
  PIPELINE(f32, f32, 0, 2, 4, 4, 1, 1)                    \
  PIPELINE(f32, f32, 0, 2, 4, 6, 1, 1)                    \
  PIPELINE(f32, f32, 0, 2, 4, 6, 0, 1)                    \
  PIPELINE(f32, f32, 0, 4, 2, 6, 0, 1)                    \
  PIPELINE(f32, f32, 0, 8, 2, 4, 0, 1)                    \
  DIRECT(f32, f32, 1, 1, 10, 4, 1, 1)                     \
  DIRECT(f32, f32, 1, 1, 10, 4, 0, 0)                     \
  PIPELINE(f32, f32, 1, 2, 4, 8, 1, 0)                    \
  PIPELINE(f32, f32, 1, 4, 2, 8, 0, 0)                    \
  PIPELINE(f32, f32, 1, 6, 2, 8, 0, 0)                    \
  ROPE_APPLY_16_BIT_KERNELS(DIRECT, PIPELINE, bf16, bf16) \
  ROPE_APPLY_16_BIT_KERNELS(DIRECT, PIPELINE, bf16, f32)  \
  ROPE_APPLY_16_BIT_KERNELS(DIRECT, PIPELINE, f16, f16)   \
  ROPE_APPLY_16_BIT_KERNELS(DIRECT, PIPELINE, f16, f32)

#endif
