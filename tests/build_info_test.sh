#!/bin/sh
# What a build says of its commit, when git is asked and when it is told.
# Usage: build_info_test.sh CMAKE BUILD_INFO.CMAKE
set -u
cmake=$1 script=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset ROPEGRAD_COMMIT ROPEGRAD_DIRTY
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# note ARGUMENT...: writes the header, for sources that lie in no git checkout.
note() {
  rm -f "$folder/info.h"
  GIT_CEILING_DIRECTORIES=$folder "$cmake" -D SOURCE="$folder" -D OUTPUT="$folder/info.h" \
    -D COMPILER='cc "1"' -D FLAGS=-O2 \
    "$@" -P "$script" >"$folder/log" 2>&1
}

# says COMMIT DIRTY
says() {
  grep -q "COMMIT \"$1\"" "$folder/info.h" || fail "the commit is not '$1': $(cat "$folder/info.h" "$folder/log")"
  grep -q "DIRTY $2\$" "$folder/info.h" || fail "modified is not '$2': $(cat "$folder/info.h")"
}

note && says "" 0
grep -q 'COMPILER "cc \\"1\\""' "$folder/info.h" || fail "a quotation mark breaks the header"
note -D GIVEN_COMMIT=0123abc -D GIVEN_DIRTY=1 && says 0123abc 1
note -D GIVEN_COMMIT=0123abc -D GIVEN_DIRTY=0 && says 0123abc 0
ROPEGRAD_COMMIT=feed1 ROPEGRAD_DIRTY=0 note -D GIVEN_COMMIT=0123abc -D GIVEN_DIRTY=1 && says feed1 0
note -D GIVEN_COMMIT=0123abc && fail "a commit without a word on changes was taken"
note -D GIVEN_COMMIT=main -D GIVEN_DIRTY=0 && fail "the name of a branch was taken for a commit"

[ "$failures" -eq 0 ] || exit 1
echo "a build says what it was told, or what git knows"
