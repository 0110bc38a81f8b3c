#!/bin/sh
# Every exported solution compiles, and lacks no symbol, with the flags that PyTorch's extension builder and the solution
# itself give. The binding needs PyTorch's headers: compiled where PYTHON has PyTorch. Exit 77: no nvcc.
# Usage: compile_test.sh TOOL SOURCE_FOLDER NVCC CUDA_LIBRARIES DLPACK_INCLUDE PYTHON OP...
set -u
tool=$(realpath "$1")
root=$(realpath "$2")
nvcc=$3 libraries=$4 dlpack=$5 python=$6
shift 6
[ -x "$nvcc" ] || { echo "skipped: there is no nvcc"; exit 77; }
# shellcheck source=tests/tool_testing.sh
. "$root/tests/tool_testing.sh"

cuda=$(dirname "$(dirname "$(realpath "$nvcc")")")/include
mkdir -p torch/ATen
echo "#include \"$dlpack/dlpack/dlpack.h\"" >torch/ATen/dlpack.h
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))' 2>/dev/null) || torch=
python_include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)
halves='-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__
  -D__CUDA_NO_HALF2_OPERATORS__ --expt-relaxed-constexpr'

for op in "$@"; do
  expect 0 export-solution --op "$op" --out "$op"
  jq -c '.sources[]' "$op/solution.json" | while read -r file; do
    path=$op/$(printf '%s' "$file" | jq -r .path)
    mkdir -p "$(dirname "$path")"
    printf '%s' "$file" | jq -j .content >"$path"
  done
  cflags=$(jq -r '.spec.compile_options.cflags | join(" ")' "$op/solution.json")
  cuda_cflags=$(jq -r '.spec.compile_options.cuda_cflags | join(" ")' "$op/solution.json")
  for source in "$op"/*.c; do
    # shellcheck disable=SC2086 # lists of flags
    g++ -isystem torch -isystem "$cuda" -I "$op" -fPIC $cflags -Wall -Wextra -Werror -c "$source" -o "${source%.c}.o" ||
      fail "$source does not compile"
  done
  # shellcheck disable=SC2086
  "$nvcc" -isystem torch -I "$op" $halves -Xcompiler -fPIC -std=c++17 -gencode=arch=compute_90,code=sm_90 $cuda_cflags \
    -Werror all-warnings -c "$op/src-solution-kernels.cu" -o "$op/kernels.o" || fail "$op: the kernels do not compile"
  g++ -shared -Wl,-z,defs "$op"/*.o -o "$op/solution.so" -L "$libraries" -lcudart -ldl -lm ||
    fail "$op: a symbol is missing"
done
if [ -n "$torch" ] && [ -f "$torch/include/c10/cuda/CUDAGuard.h" ]; then
  # shellcheck disable=SC2086
  "$nvcc" -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" -isystem "$python_include" -I "$1" \
    $halves -Xcompiler -fPIC -std=c++17 -DTORCH_EXTENSION_NAME=solution -gencode=arch=compute_90,code=sm_90 \
    -c "$1/src-solution-binding.cu" -o binding.o || fail "the binding does not compile"
else
  echo "without the binding: $python has no PyTorch with CUDA headers"
fi
finish "every solution compiles"
