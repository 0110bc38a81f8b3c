# shellcheck shell=sh
# What the tests of the tool share. Sourced, with the tool's path in $tool; from then on the test is in an empty folder of
# its own, and ends with `finish`.
[ -x "${tool:?}" ] || { echo "no tool at '$tool'"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect CODE ARGUMENT...: runs the tool; its output lands in out and err.
expect() {
  expected=$1
  shift
  "$tool" "$@" >out 2>err
  got=$?
  [ "$got" -eq "$expected" ] ||
    fail "ropegrad $*: exit $got, not $expected: $(head -c 300 err) $(tail -n 3 out)"
}

# finish TEXT: the test's verdict; TEXT is what holds when nothing failed.
finish() {
  [ "$failures" -eq 0 ] || exit 1
  echo "$1"
}
