#!/bin/bash
# header_test.sh CC CXX INCLUDE_DIRS HEADER...: each header compiles alone, without a warning, as C11 and as C++17.
# INCLUDE_DIRS are separated by colons.
set -euo pipefail

cc=$1 cxx=$2
IFS=: read -ra directories <<<"$3"
shift 3
includes=("${directories[@]/#/-I}")
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror)

failed=0
for header in "$@"; do
  for compiler in "$cc -x c -std=c11" "$cxx -x c++ -std=c++17"; do
    read -ra command <<<"$compiler"
    # Twice: the include guard is part of the promise.
    if ! printf '#include <%s>\n#include <%s>\n' "$header" "$header" |
      "${command[@]}" -fsyntax-only "${warnings[@]}" "${includes[@]}" -; then
      echo "$header does not compile alone: $compiler" >&2
      failed=1
    fi
  done
done
exit $failed
