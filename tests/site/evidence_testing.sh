# shellcheck shell=sh
# What the tests of records share, over tests/tool_testing.sh. Sourced, with the tool's path in $tool and the folder of
# this file in $here.
# shellcheck source=tests/tool_testing.sh
. "${here:?}/../tool_testing.sh"

says() {
  grep -q -e "$1" out err || fail "nothing says '$1': $(head -n 5 out err)"
}

# synthetic FILE ARGUMENTS: a record made by synthetic.py with these arguments of its function `record`.
synthetic() {
  PYTHONPATH=$here python3 -c "import pathlib, synthetic; synthetic.save(pathlib.Path('$1'), synthetic.record($2))"
}

# holds FILE FILTER: the jq filter is true of the file.
holds() {
  jq -e "$2" "$1" >/dev/null 2>&1 || fail "$1: not true: $2"
}

# change FILE FILTER NEW: a copy of a record with something changed.
change() {
  jq "$2" "$1" >"$3" || fail "jq: $2"
}
