#!/bin/bash
# install_test.sh CMAKE BUILD_DIR CC CXX: installs into a new prefix, then builds and runs the programs of tests/install
# as a user would: C and C++, through pkg-config and through find_package, against the shared and the static library.
set -euo pipefail

cmake=$1 build=$2 cc=$3 cxx=$4
sources=$(cd "$(dirname "$0")/install" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"
# Nothing outside the prefix, and nothing of the sources: the installed files must stand alone.
if grep -rlF -e "$build" -e "${sources%/tests/install}/" "$prefix" --include='*.pc' --include='*.cmake'; then
  echo "the files above name the build or source directory" >&2
  exit 1
fi
# The layout that /usr/local has: the Python package is the wheel's.
if find "$prefix" -mindepth 1 -maxdepth 1 | grep -vE '/(bin|include|lib|lib64|share)$'; then
  echo "the entries above do not belong there" >&2
  exit 1
fi
cd "$work"

libdir=$(dirname "$(find "$prefix" -name libropegrad.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
flags() {
  read -ra found <<<"$(pkg-config "$@" ropegrad)"
}

echo "pkg-config, shared"
flags --cflags --libs
"$cc" -std=c11 -Wall -Werror "$sources/consumer.c" "${found[@]}" -o c_shared
./c_shared
"$cxx" -std=c++17 -Wall -Werror "$sources/consumer.cpp" "${found[@]}" -o cpp_shared
./cpp_shared

echo "pkg-config, static"
flags --static --cflags --libs
mkdir static
cp "$libdir/libropegrad.a" static # with no shared library beside it, -lropegrad means this one
others=()
for flag in "${found[@]}"; do
  [[ $flag == -L* ]] || others+=("$flag")
done
"$cc" -std=c11 -Wall -Werror "$sources/consumer.c" -Lstatic "${others[@]}" -o c_static
env -u LD_LIBRARY_PATH ./c_static

echo "find_package"
"$cmake" -S "$sources" -B cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
  >configure.log
"$cmake" --build cmake >build.log
for program in c_shared cpp_shared c_static; do
  cmake/$program
done

echo "the README's example"
awk '/^```/ { inside = /^```c$/; next } inside' "${sources%/tests/install}/README.md" >example.c
flags --cflags --libs
"$cc" -std=c11 -Wall -Werror example.c "${found[@]}" -o example
[[ $(./example) == "grad_q[0] = 2" ]]
