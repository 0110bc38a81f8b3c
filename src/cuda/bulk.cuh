/* bulk.cuh: bulk copies between global and shared memory, which run beside the threads, on compute capability 9.0 and
 * later. Addresses in shared memory are those of rg_shared_address; what is copied is aligned to 16 bytes and a multiple
 * of them. */
#ifndef ROPEGRAD_SRC_CUDA_BULK_CUH
#define ROPEGRAD_SRC_CUDA_BULK_CUH

#include "src/cuda/element.cuh"

/* The compiler is kept from working the address out again wherever it is used. */
static __device__ __forceinline__ uint32_t rg_shared_address(const void *place) {
  uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(place));
  asm volatile("" : "+r"(address));
  return address;
}

/* ---- barriers that copies arrive at: one arrival, and the bytes that it said it expects, end a phase ---- */

static __device__ __forceinline__ void rg_make_barrier(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

/* Lets the copies see the barriers. */
static __device__ __forceinline__ void rg_publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* The barrier's next phase ends when so many bytes have arrived. */
static __device__ __forceinline__ void rg_expect_bytes(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Phases count from 0; parity is that of their number. */
static __device__ __forceinline__ void rg_wait_for_phase(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred arrived;\n"
      "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], %1;\n"
      "@!arrived bra AGAIN;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/* ---- copies ---- */

/* From global to shared memory. */
template <rg_cache_hint HINT>
static __device__ __forceinline__ void rg_copy_bulk(uint32_t to, const char *from, uint32_t bytes, uint32_t barrier) {
  if (HINT == RG_CACHE_STREAM) {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
        : "memory");
  } else {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
  }
}

/* From shared to global memory. A thread's copies up to rg_commit_stores are one group. */
static __device__ __forceinline__ void rg_store_bulk(char *to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}
static __device__ __forceinline__ void rg_commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Waits until the shared memory of all groups of this thread but the last PENDING has been read. */
template <int PENDING>
static __device__ __forceinline__ void rg_wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* What this thread wrote to shared memory is seen by the copies that are asked for after the next barrier. */
static __device__ __forceinline__ void rg_publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
