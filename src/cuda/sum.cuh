/* sum.cuh: sums that are better than what they are rounded to in the end, however many terms they have, for device
 * code. A zeroed one is the empty sum. */
#ifndef ROPEGRAD_SRC_CUDA_SUM_CUH
#define ROPEGRAD_SRC_CUDA_SUM_CUH

/* Of doubles, with what the additions lost to rounding, each loss exact (Knuth). The intrinsics keep the compiler from
 * fusing what must be rounded. */
struct rg_exact_sum {
  double sum, lost;

  __device__ __forceinline__ void add(double term) {
    const double next = __dadd_rn(sum, term), added = __dsub_rn(next, sum);
    lost = __dadd_rn(lost, __dadd_rn(__dsub_rn(sum, __dsub_rn(next, added)), __dsub_rn(term, added)));
    sum = next;
  }
  __device__ __forceinline__ void add(const rg_exact_sum &other) {
    add(other.sum);
    lost = __dadd_rn(lost, other.lost);
  }
  /* An infinite sum has lost infinity less infinity, which is NaN. */
  __device__ __forceinline__ double value() const { return isfinite(sum) ? __dadd_rn(sum, lost) : sum; }
};

/* The sum for results in Real: for float a double is enough. */
template <typename Real>
struct rg_sum {
  double sum;

  __device__ __forceinline__ void add(double term) { sum = __dadd_rn(sum, term); }
  __device__ __forceinline__ void add(const rg_sum &other) { add(other.sum); }
  __device__ __forceinline__ float value() const { return static_cast<float>(sum); }
};
template <>
struct rg_sum<double> : rg_exact_sum {};

#endif
