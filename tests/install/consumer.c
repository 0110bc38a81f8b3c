/* A user's program: one gradient, checked. At an angle of 0 the gradient of the angle is grad_sin. */
#include <ropegrad/operators.h>
#include <stdio.h>

int main(void) {
  int64_t shape[] = {1, 1, 2};
  float grad_cos[2] = {5, 6}, grad_sin[2] = {7, 8}, theta[2] = {0, 0}, out[2];
  DLTensor cpu = {.device = {kDLCPU, 0}, .ndim = 3, .dtype = {kDLFloat, 32, 1}, .shape = shape};
  DLTensor gc = cpu, gs = cpu, t = cpu, o = cpu;
  gc.data = grad_cos;
  gs.data = grad_sin;
  t.data = theta;
  o.data = out;

  rg_context *context;
  if (rg_context_create(&context, cpu.device, NULL) != RG_OK) return 1;
  const rg_status status = rg_rope_2d_backward(
      context, &(rg_rope_2d_backward_args){.grad_cos = &gc, .grad_sin = &gs, .idx_theta = &t, .grad_idx_theta = &o});
  if (status != RG_OK) fprintf(stderr, "%s: %s\n", rg_status_string(status), rg_last_error(context));
  rg_context_destroy(context);
  return status == RG_OK && out[0] == 7 && out[1] == 8 ? 0 : 1;
}
