#!/bin/bash
# layers_test.sh ROOT: the design's floors hold.
#   1. Includes go only down:
#        tests, fuzz > tools, python > harness > (library boundary) > src/core, src/solution > ops > src/simd, src/cuda > src/spec
#        > src/base, src/hw > include, and within the harness by the order of its folders (harness/README.md)
#   2. Over the library boundary only the public headers are seen.
#   3. An operator includes no other operator.
#   4. Below ops/ and above it, no file but ops.def names an operator.
set -euo pipefail
cd "$1"

failed=0
report() {
  echo "$*" >&2
  failed=1
}

floor_of() {
  case $1 in
    tests/* | fuzz/*) echo 80 ;;
    tools/* | python/*) echo 70 ;;
    harness/evidence/*) echo 67 ;;
    harness/cuda/*) echo 66 ;;
    harness/record/*) echo 65 ;;
    harness/timing/*) echo 64 ;;
    harness/verify/*) echo 63 ;;
    harness/buffers/*) echo 62 ;;
    harness/cases/*) echo 61 ;;
    harness/base/* | ropegrad_build_info.h) echo 60 ;;            # the second is written by the build
    src/core/* | src/solution/* | solution_operator.h) echo 50 ;; # the last is written by the tool
    ops/*) echo 40 ;;
    src/simd/* | src/cuda/*) echo 30 ;;
    src/spec/*) echo 20 ;;
    src/base/* | src/hw/*) echo 10 ;;
    include/* | ropegrad/*) echo 0 ;;
    *) return 1 ;;
  esac
}

mapfile -t operators < <(sed -nE 's/^RG_OP\(([a-z0-9_]+)\).*/\1/p' include/ropegrad/ops.def)
((${#operators[@]})) || report "include/ropegrad/ops.def lists no operator"

seen=0
while IFS=: read -r file included; do
  seen=$((seen + 1))
  own=$(floor_of "$file") || { report "$file lies on no floor"; continue; }
  other=$(floor_of "$included") || { report "$file includes $included, which lies on no floor"; continue; }
  ((other <= own)) || report "$file includes $included, which lies above it"
  if [[ $file == harness/* || $file == tools/* || $file == python/* ]] && ((other >= 10 && other <= 50)); then
    report "$file includes $included from behind the library boundary"
  fi
  if [[ $file == ops/* && $included == ops/* && ${file%/*} != "${included%/*}" ]]; then
    report "$file includes $included of another operator"
  fi
  # <ropegrad/OP.h> is OP's own header, and the umbrella of all is for those above the operators.
  if [[ $file == ops/* && $included == ropegrad/* ]]; then
    folder=${file#ops/} header=${included#ropegrad/}
    case ${header%.h} in
      ropegrad | ropegrad_dev | "${folder%%/*}") ;;
      *) report "$file includes $included of another operator" ;;
    esac
  fi
done < <(grep -rnoE --include='*.[ch]' --include='*.cu' --include='*.cuh' --include='*.cpp' \
  '^ *# *include +"[^"]+"' include src ops harness tools python tests fuzz |
  sed -E 's/^([^:]+):[0-9]+:.*"([^"]+)"/\1:\2/')
((seen > 100)) || report "only $seen includes were found: the search is broken"

for operator in "${operators[@]}"; do
  # A longer word, such as another operator's name, is not this one.
  while IFS= read -r line; do
    report "$line: names the operator $operator"
  done < <(grep -rnE "(^|[^a-z0-9]|rg_)$operator([^a-z0-9_]|_backward|_forward)" src harness tools include \
    python/core python/stubs --exclude=ops.def)
done
exit $failed
