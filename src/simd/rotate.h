/* rotate.h: the rotation of a vector of pairs, its transpose, and the gradients of its tables.
 *
 * A pair (x.first, x.second) is what the formulas call (x1, x2): element j of the two halves of the last dimension, or
 * elements 2j and 2j+1. The tables have a cosine and a sine for each of its two elements, (c1, c2) and (s1, s2); real
 * models have c1 = c2 and s1 = s2, but nothing here relies on it.
 *
 * `product` says what becomes of each product before it is summed:
 *   RG_DTYPE_NONE  nothing, it is fused with the sum (`rounding = once`: the result is rounded when it is stored);
 *   a dtype        it is rounded to that dtype, as a framework does that runs each multiplication as a kernel of its
 *                  own (`rounding = eager`). The sums stay in rg_real.
 * It must be a constant that the optimiser sees. */
#ifndef ROPEGRAD_SRC_SIMD_ROTATE_H
#define ROPEGRAD_SRC_SIMD_ROTATE_H

#include "src/simd/vec.h"

typedef struct rg_pair {
  rg_vf first, second;
} rg_pair;

RG_INLINE rg_vf rg_product(rg_dtype product, rg_vf a, rg_vf b) {
  rg_vf exact = rg_vf_mul(a, b);
  return product == RG_DTYPE_NONE ? exact : rg_vf_round_to(product, exact);
}

/* sum + a*b */
RG_INLINE rg_vf rg_add_product(rg_dtype product, rg_vf sum, rg_vf a, rg_vf b) {
  return product == RG_DTYPE_NONE ? rg_vf_fma(a, b, sum) : rg_vf_add(sum, rg_product(product, a, b));
}

/* sum - a*b */
RG_INLINE rg_vf rg_subtract_product(rg_dtype product, rg_vf sum, rg_vf a, rg_vf b) {
  return product == RG_DTYPE_NONE ? rg_vf_fnma(a, b, sum) : rg_vf_sub(sum, rg_product(product, a, b));
}

/* (x1*c1 - x2*s1, x2*c2 + x1*s2): the rotation itself. */
RG_INLINE rg_pair rg_rotate(rg_dtype product, rg_pair x, rg_pair cosine, rg_pair sine) {
  rg_vf first = rg_product(product, x.first, cosine.first);
  rg_vf second = rg_product(product, x.second, cosine.second);
  return (rg_pair){rg_subtract_product(product, first, x.second, sine.first),
                   rg_add_product(product, second, x.first, sine.second)};
}

/* (g1*c1 + g2*s2, g2*c2 - g1*s1): the transpose of rg_rotate, which takes a gradient back through it. With s1 and s2
 * exchanged by the caller it is the pairing `same_half`, (g1*c1 + g2*s1, g2*c2 - g1*s2). */
RG_INLINE rg_pair rg_rotate_transpose(rg_dtype product, rg_pair g, rg_pair cosine, rg_pair sine) {
  rg_vf first = rg_product(product, g.second, sine.second);
  rg_vf second = rg_product(product, g.second, cosine.second);
  return (rg_pair){rg_add_product(product, first, g.first, cosine.first),
                   rg_subtract_product(product, second, g.first, sine.first)};
}

/* grad_cos += (g1*x1, g2*x2): what the rotation of x sends back to its table of cosines. */
RG_INLINE void rg_add_grad_cos(rg_dtype product, rg_pair g, rg_pair x, rg_pair *grad_cos) {
  grad_cos->first = rg_add_product(product, grad_cos->first, g.first, x.first);
  grad_cos->second = rg_add_product(product, grad_cos->second, g.second, x.second);
}

/* grad_sin += (-g1*x2, g2*x1) */
RG_INLINE void rg_add_grad_sin(rg_dtype product, rg_pair g, rg_pair x, rg_pair *grad_sin) {
  grad_sin->first = rg_subtract_product(product, grad_sin->first, g.first, x.second);
  grad_sin->second = rg_add_product(product, grad_sin->second, g.second, x.first);
}

#endif
