/* rotate.cuh: the rotation of a pair, its transpose, and the gradients of its tables, for device code. What a pair is,
 * and what `same_half` does to the sines, src/simd/rotate.h says. */
#ifndef ROPEGRAD_SRC_CUDA_ROTATE_CUH
#define ROPEGRAD_SRC_CUDA_ROTATE_CUH

#include "src/cuda/element.cuh"

template <typename Real>
struct rg_pair {
  Real first, second;
};

/* What becomes of a product before it is summed: `once` leaves it to the sum's own rounding (fused), `eager` rounds it
 * to the dtype T first. */
struct rg_once {
  template <typename Real>
  static __device__ __forceinline__ Real product(Real a, Real b) {
    return a * b;
  }
  static __device__ __forceinline__ float add(float sum, float a, float b) { return __fmaf_rn(a, b, sum); }
  static __device__ __forceinline__ double add(double sum, double a, double b) { return __fma_rn(a, b, sum); }
};

template <typename T>
struct rg_eager {
  static __device__ __forceinline__ float product(float a, float b) {
    return rg_to_real<float>(rg_from_real<T>(__fmul_rn(a, b)));
  }
  static __device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }
  static __device__ __forceinline__ float add(float sum, float a, float b) { return __fadd_rn(sum, product(a, b)); }
  static __device__ __forceinline__ double add(double sum, double a, double b) { return __dadd_rn(sum, product(a, b)); }
};

/* (x1*c1 - x2*s1, x2*c2 + x1*s2) */
template <typename Rounding, typename Real>
__device__ __forceinline__ rg_pair<Real> rg_rotate(rg_pair<Real> x, rg_pair<Real> cosine, rg_pair<Real> sine) {
  return {Rounding::add(Rounding::product(x.first, cosine.first), -x.second, sine.first),
          Rounding::add(Rounding::product(x.second, cosine.second), x.first, sine.second)};
}

/* (g1*c1 + g2*s2, g2*c2 - g1*s1) */
template <typename Rounding, typename Real>
__device__ __forceinline__ rg_pair<Real> rg_rotate_transpose(rg_pair<Real> g, rg_pair<Real> cosine,
                                                             rg_pair<Real> sine) {
  return {Rounding::add(Rounding::product(g.second, sine.second), g.first, cosine.first),
          Rounding::add(Rounding::product(g.second, cosine.second), -g.first, sine.first)};
}

/* grad_cos += (g1*x1, g2*x2) */
template <typename Rounding, typename Real>
__device__ __forceinline__ void rg_add_grad_cos(rg_pair<Real> g, rg_pair<Real> x, rg_pair<Real> *grad_cos) {
  grad_cos->first = Rounding::add(grad_cos->first, g.first, x.first);
  grad_cos->second = Rounding::add(grad_cos->second, g.second, x.second);
}

/* grad_sin += (-g1*x2, g2*x1) */
template <typename Rounding, typename Real>
__device__ __forceinline__ void rg_add_grad_sin(rg_pair<Real> g, rg_pair<Real> x, rg_pair<Real> *grad_sin) {
  grad_sin->first = Rounding::add(grad_sin->first, -g.first, x.second);
  grad_sin->second = Rounding::add(grad_sin->second, g.second, x.first);
}

#endif
