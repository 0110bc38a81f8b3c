/* The function that the harness calls: inputs and outputs as PyTorch's tensors and Python's numbers, by place. */
#include <ATen/DLConvertor.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "src/solution/solution.h"

static rgx_argument argument_of(const at::Tensor &tensor) {
  TORCH_CHECK(tensor.is_cuda(), "expected tensors of a GPU, got one on ", tensor.device());
  rgx_argument made = {};
  made.is_tensor = true;
  made.tensor.data = tensor.data_ptr();
  made.tensor.device = DLDevice{kDLCUDA, tensor.get_device()};
  made.tensor.ndim = static_cast<int32_t>(tensor.dim());
  made.tensor.dtype = at::getDLDataType(tensor);
  /* Only read. */
  made.tensor.shape = const_cast<int64_t *>(tensor.sizes().data());
  made.tensor.strides = const_cast<int64_t *>(tensor.strides().data());
  return made;
}

static void run(const pybind11::args &given) {
  TORCH_CHECK(given.size() <= RG_MAX_TENSORS + RG_MAX_PARAMS, "too many arguments: ", given.size());
  rgx_argument arguments[RG_MAX_TENSORS + RG_MAX_PARAMS];
  at::Tensor tensors[RG_MAX_TENSORS + RG_MAX_PARAMS]; /* own the sizes and strides that the arguments point at */
  int num_arguments = 0, device = -1;
  for (const pybind11::handle &value : given) {
    if (THPVariable_Check(value.ptr())) {
      tensors[num_arguments] = THPVariable_Unpack(value.ptr());
      arguments[num_arguments] = argument_of(tensors[num_arguments]);
      device = arguments[num_arguments].tensor.device.device_id;
    } else {
      arguments[num_arguments] = rgx_argument{};
      arguments[num_arguments].number = value.cast<double>();
    }
    ++num_arguments;
  }
  TORCH_CHECK(device >= 0, "expected tensors");
  const auto index = static_cast<c10::DeviceIndex>(device);
  const c10::cuda::CUDAGuard guard(index);
  rg_error error = {};
  const rg_status status =
      rgx_run(device, c10::cuda::getCurrentCUDAStream(index).stream(), arguments, num_arguments, &error);
  TORCH_CHECK(status == RG_OK, error.text);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
