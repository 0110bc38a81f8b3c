#!/bin/sh
# What `ropegrad export-solution` writes: of the documented form, made of this tree's files as they are, for every operator
# that has a problem; and what it refuses. Needs jq; where Python has jsonschema the schema is held too.
# Usage: export_test.sh TOOL SOURCE_FOLDER OP...
set -u
tool=$(realpath "$1")
root=$(realpath "$2")
shift 2
# shellcheck source=tests/tool_testing.sh
. "$root/tests/tool_testing.sh"

# The file of the tree that a path in a solution of operator $1 stands for.
original() {
  case $2 in
    "ropegrad/$1.h") echo "ops/$1/$1.h" ;;
    ropegrad/*) echo "include/$2" ;;
    dlpack/dlpack.h) echo src/solution/dlpack.h ;;
    LICENSE) echo LICENSE ;;
    */*) echo "$2" ;;
    *) echo "$2" | tr - / ;; # compiled: its path is in its name
  esac
}

for op in "$@"; do
  expect 0 export-solution --op "$op" --out "$op"
  solution=$op/solution.json
  jq -e --arg op "$op" '.name == "ropegrad_" + $op and .spec.destination_passing_style and .spec.languages == ["cuda_cpp"] and
    (.spec.entry_point | split("::")[0]) as $entry | ([.sources[].path] | index($entry) != null)' "$solution" >/dev/null ||
    fail "$op: the head is not as documented"
  jq -e '([.sources[].path] | length) == ([.sources[].path] | unique | length)' "$solution" >/dev/null ||
    fail "$op: a path occurs twice"
  if python3 -c 'import jsonschema' 2>/dev/null; then
    python3 -c 'import json, sys, jsonschema
schema, file = (json.load(open(name)) for name in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.validate(file, schema)' "$root/schema/solution.schema.json" "$solution" 2>why || fail "$op: $(tail -n 3 why)"
  fi
  jq -r '.sources[].path' "$solution" >paths
  while read -r path; do
    [ "$path" != solution_operator.h ] || continue
    jq -j --arg path "$path" '.sources[] | select(.path == $path) | .content' "$solution" >content
    cmp -s content "$root/$(original "$op" "$path")" || fail "$op: $path is not the tree's own file"
  done <paths
  for file in "ops/$op/${op}_cuda.cu" "ops-$op-${op}_cuda.c" "ops/$op/${op}_tune.h"; do
    grep -qx "$file" paths || fail "$op: $file is missing"
  done
  ! grep '^ops[/-]' paths | grep -vq "^ops[/-]${op}[/-]" || fail "$op: holds files of other operators"
  # Earlier versions of the harness refuse sources that name these, whatever for.
  ! jq -r '.sources[] | select(.path != "LICENSE").content' "$solution" |
    grep -qiE 'cudaStream(Create|Synchronize|WaitEvent|Destroy)|custream|c10::cuda::CUDAStream|getStreamFromPool' ||
    fail "$op: names a function that the harness forbids"
done
[ "$#" -ge 5 ] || fail "only $# operators"

op=$1
expect 0 export-solution --op "$op" --out named --definition other_name --author 'A. Name'
jq -e '.definition == "other_name" and .author == "A. Name"' named/solution.json >/dev/null || fail "name or author"
expect 0 export-solution --op "$op" --out named
expect 0 export-solution --help
grep -q 'Exit codes' out || fail "--help does not explain the exit codes"

# refuse WORD ARGUMENT...: exit 2 with one line that holds WORD, and nothing written.
refuse() {
  word=$1
  shift
  rm -rf refused
  expect 2 export-solution "$@"
  [ "$(wc -l <err)" -eq 1 ] || fail "export-solution $*: $(wc -l <err) lines on standard error, not 1"
  grep -q -e "$word" err || fail "export-solution $*: '$(cat err)' does not say '$word'"
  [ ! -e refused/solution.json ] || fail "export-solution $*: wrote a file"
}
refuse "named 'nothing'" --op nothing --out refused
refuse '\-\-op is missing' --out refused
refuse '\-\-out is missing' --op "$op"
refuse 'needs a value' --op
refuse 'is empty' --op "$op" --out refused --definition ''
refuse "did you mean '--out'" --op "$op" --outt refused
refuse "unexpected argument 'refused'" --op "$op" --out refused refused
refuse 'definition: expected UTF-8' --op "$op" --out refused --definition "$(printf 'a\377')"
refuse 'author: expected UTF-8' --op "$op" --out refused --author "$(printf 'a\377')"
touch file
refuse 'file' --op "$op" --out file
refuse 'No such file' --op "$op" --out no/such/folder

finish "export-solution writes what the harness reads"
