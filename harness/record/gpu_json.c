#include <stdio.h>
#include <xxhash.h>

#include "harness/record/environment.h"
#include "ropegrad/ropegrad_dev.h"

/* The device code of every operator as this build embeds it, by digest (XXH3, 128 bits), so that a record says which
 * kernels it is of. */
static json_t *images_json(void) {
  json_t *images = json_object();
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const void *image;
    size_t bytes;
    rg_dev_cuda_image(index, &image, &bytes);
    if (image == NULL) continue;
    const XXH128_hash_t digest = XXH3_128bits(image, bytes);
    char text[40];
    snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)digest.high64, (unsigned long long)digest.low64);
    json_object_set_new(images, rg_dev_operator_at(index)->name, json_string(text));
  }
  return images;
}

static json_t *version_json(int major, int minor) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d", major, minor);
  return json_string(text);
}

/* null for what is not known: less than `least`. */
static json_t *known_json(double value, double least) { return value < least ? json_null() : json_real(value); }

static json_t *clock_json(int mhz) { return mhz > 0 ? json_integer(mhz) : json_null(); }

json_t *rgh_gpu_json(const rgh_gpu *gpu) {
  if (gpu == NULL) return json_null();
  const int cuda = gpu->driver_cuda_version;
  json_t *object =
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:I, s:I}", "name", rgh_text_json(gpu->name), "compute_capability",
                version_json(gpu->compute_capability / 10, gpu->compute_capability % 10), "driver_version",
                rgh_text_json(gpu->driver_version), "driver_cuda_version", version_json(cuda / 1000, cuda % 1000 / 10),
                "toolkit_version", rgh_text_json(ROPEGRAD_BUILD_CUDA), "nvcc_flags",
                rgh_text_json(ROPEGRAD_BUILD_NVCC_FLAGS), "multiprocessors", gpu->multiprocessors, "l2_bytes",
                (json_int_t)gpu->l2_bytes, "memory_bytes", (json_int_t)gpu->memory_bytes);
  if (object == NULL) return NULL;
  json_object_set_new(object, "datasheet_gb_per_s", known_json(rgh_gpu_bandwidth(gpu) * 1e-9, 1));
  json_object_set_new(object, "sm_clock_max_mhz", clock_json(gpu->sm_clock_max_khz / 1000));
  json_object_set_new(object, "memory_clock_max_mhz", clock_json(gpu->memory_clock_max_khz / 1000));
  json_object_set_new(object, "sm_clock_mhz", clock_json(gpu->sm_clock_mhz));
  json_object_set_new(object, "memory_clock_mhz", clock_json(gpu->memory_clock_mhz));
  json_object_set_new(object, "temperature_c", gpu->nvml ? known_json(gpu->temperature_c, 0) : json_null());
  json_object_set_new(object, "power_limit_w", gpu->nvml ? known_json(gpu->power_limit_w, 0) : json_null());
  json_object_set_new(object, "power_w", gpu->nvml ? known_json(gpu->power_w, 0) : json_null());
  json_object_set_new(object, "images", images_json());
  return object;
}
