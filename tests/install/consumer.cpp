// A user's program in C++: an error, reported.
#include <ropegrad/operators.h>

#include <cstring>
#include <memory>

int main() {
  rg_context *raw = nullptr;
  if (rg_context_create(&raw, DLDevice{kDLCPU, 0}, nullptr) != RG_OK) return 1;
  const std::unique_ptr<rg_context, decltype(&rg_context_destroy)> context(raw, rg_context_destroy);

  const rg_rope_2d_backward_args nothing{};
  const rg_status status = rg_rope_2d_backward(context.get(), &nothing);
  return status == RG_ERR_NULL && std::strlen(rg_last_error(context.get())) > 0 ? 0 : 1;
}
