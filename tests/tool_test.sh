#!/bin/sh
# The tool as a script sees it: exit codes, one-line complaints, JSON that parses and holds what the design promises.
# Usage: tool_test.sh TOOL SCHEMA_FOLDER. Prints what failed; exit 1 if anything did. Needs jq; where Python has jsonschema
# the files are held against their schemas too.
set -u
tool=$(realpath "$1")
schemas=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/tool_testing.sh
. "$here/tool_testing.sh"

# refuse CODE WORD ARGUMENT...: the tool says why in one line that holds WORD, prints no table and writes no file.
refuse() {
  code=$1 word=$2
  shift 2
  rm -f result.json
  expect "$code" "$@"
  [ "$(wc -l <err)" -eq 1 ] || fail "ropegrad $*: $(wc -l <err) lines on standard error, not 1"
  grep -q -e "$word" err || fail "ropegrad $*: '$(cat err)' does not say '$word'"
  [ ! -s out ] || fail "ropegrad $*: printed output before it failed"
  [ ! -e result.json ] || fail "ropegrad $*: left a partial file"
}

# holds FILE FILTER: the jq filter is true of the file.
holds() {
  jq -e "$2" "$1" >/dev/null 2>&1 || fail "$1: not true: $2"
}

# conforms SCHEMA FILE
conforms() {
  python3 -c 'import jsonschema, referencing' 2>/dev/null || return
  python3 - "$schemas" "$1" "$2" <<'END' || fail "$2 breaks $1"
import json, pathlib, sys
import jsonschema, referencing
folder, schema, file = sys.argv[1:]
schemas = {p.name: json.loads(p.read_text()) for p in pathlib.Path(folder).glob("*.schema.json")}
registry = referencing.Registry().with_resources(
    (name, referencing.Resource.from_contents(contents)) for name, contents in schemas.items())
jsonschema.Draft202012Validator.check_schema(schemas[schema])
validator = jsonschema.Draft202012Validator(schemas[schema], registry=registry)
errors = list(validator.iter_errors(json.loads(pathlib.Path(file).read_text())))
for error in errors[:3]:
    print(error.json_path, error.message[:200])
sys.exit(bool(errors))
END
}

cat >small.json <<'END'
{"suite": "small", "cases": [
  {"op": "rope_2d", "name": "one", "dims": {"batch_size": 2, "seq_len": 3, "head_dim": 8}},
  {"op": "rope_2d", "name": "two", "dims": {"batch_size": 1, "seq_len": 5, "head_dim": 128}}]}
END

# ---- help ----
expect 0 --help
grep -q 'Exit codes' out || fail "--help does not explain the exit codes"
expect 0 --version
grep -q '^ropegrad [0-9]' out || fail "--version: $(cat out)"
for command in list verify bench; do
  expect 0 "$command" --help
  grep -q 'Exit codes' out || fail "$command --help does not explain the exit codes"
  awk 'length > 120 {exit 1}' out || fail "$command --help has a line of more than 120 columns"
done
expect 2
expect 0 help
grep -q 'Exit codes' out || fail "help does not explain the exit codes"
expect 0 help bench
grep -q '^ropegrad bench' out || fail "help bench: $(cat out)"
expect 0 help help
grep -q 'Exit codes' out || fail "help help: $(cat out)"
refuse 2 "did you mean 'bench'" help bensh
refuse 2 "did you mean 'export-solution'" export
refuse 2 "did you mean 'records reproduce'" reproduce record.json
refuse 2 "no command is named 'version'; see ropegrad --help" version
refuse 2 "unknown option '--colour'; see ropegrad list --help" list --colour
refuse 2 'one command' help list bench
expect 0 help records check
grep -q '^ropegrad records check' out || fail "help records check: $(cat out)"
refuse 2 "unknown option '-x'" list -xh
refuse 2 "unknown option '--help=1'" list --help=1

# ---- list ----
expect 0 list --json list.json
holds list.json '.schema == "ropegrad-list-1" and (.operators | length) > 0'
holds list.json '[.variants[] | select(.runs and .default)] | length >= 1'
holds list.json '.devices | map(.device) | index("cpu") != null'

# ---- verify ----
expect 0 verify --suite small.json --device cpu --json result.json
holds result.json '.schema == "ropegrad-verify-1" and .passed == 2 and .failed == 0 and .skipped == 0'
holds result.json '.cases | length == 2 and all(.status == "pass" and .allowance_used <= 1 and .device == "cpu")'
holds result.json '.cases[0].worst | (.tensor | type) == "string" and (.index | length) == 3'
expect 0 verify --suite small.json --device cpu --case one --variant cpu.scalar --threads 1 --json result.json
holds result.json '.passed == 1 and .cases[0].name == "one" and .cases[0].variant == "cpu.scalar"'
expect 0 verify --suite small.json --device cpu --max-bytes 1K --json result.json
conforms verify.schema.json result.json
holds result.json '.passed == 1 and .skipped == 1 and (.cases[1].reason | contains("--max-bytes"))'
expect 0 verify --suite small.json --device cpu --json /dev/null
[ -c /dev/null ] || fail "--json /dev/null replaced the device"
ls ./*.part >/dev/null 2>&1 && fail "a temporary file was left behind"

# ---- bench ----
expect 0 bench --suite small.json --device cpu --budget 0.05 --json record.json
holds record.json '.schema == "ropegrad-record-1" and (.cases | length) == 2'
holds record.json '.environment | .threads >= 1 and (.argv | length) > 4 and (.utc | endswith("Z"))'
holds record.json '.protocol | .name == "faithful" and .repetitions == 3 and .flush_bytes > 0'
# shellcheck disable=SC2016 # $r is jq's
holds record.json '.protocol.repetitions as $r | .cases | all((.samples_us | length) == $r * .timed_calls)'
holds record.json '.cases | all(.latency_us > 0 and .floor_us > 0 and .verify.status == "pass")'
holds record.json '.cases | all((.ratio - .latency_us / .floor_us) | fabs < 1e-6)'
holds record.json '.cases[0] | .read_bytes == 2*3*8*(2+2+4) and .write_bytes == 2*3*8*4'
conforms record.schema.json record.json
holds record.json '.summary[0] | .op == "rope_2d" and .in_place == false and .cases == 2 and .worst_ratio >= .ratio'
awk 'length > 100 {exit 1}' out || fail "bench prints a line of more than 100 columns"
expect 0 bench --suite small.json --device cpu --budget 0.05 --protocol strict --warm --json record.json
holds record.json '.protocol | .name == "strict" and .warm and .flush_bytes == 0 and .fresh_inputs'
expect 0 bench --suite small.json --device cpu --budget 0.05 --max-bytes 1K --json record.json
conforms record.schema.json record.json
holds record.json '.cases[1] | .latency_us == null and .samples_us == [] and .verify.status == "skip"'

# ---- wrong use: 2 ----
refuse 2 "verify" verfy
refuse 2 "'--suite'" verify --suit3 small.json
refuse 2 "needs a value" verify --suite
refuse 2 "unexpected" verify small.json
refuse 2 "rope_2d" verify --op rope2d --json result.json
refuse 2 "these suites have: .*sol-execbench-rope-forward" verify --op rope_2d_forward --json result.json
refuse 2 "one" verify --suite small.json --case on --json result.json
refuse 2 "sol-execbench-rope" verify --suite no-such-suite --json result.json
refuse 2 "cpu.scalar" verify --suite small.json --device cpu --variant cpu.sse9 --json result.json
refuse 2 "in-place" verify --suite small.json --in-place --json result.json
refuse 2 "cuda" verify --suite small.json --device tpu
refuse 2 "--threads" bench --suite small.json --threads 0
refuse 2 "--threads" bench --suite small.json --threads 2x
refuse 2 "1 to 1024, not '1025'" bench --suite small.json --threads 1025
refuse 2 "--max-bytes" bench --suite small.json --max-bytes 99999999999G
refuse 2 "--seed" bench --suite small.json --seed -1
refuse 2 "--budget" bench --suite small.json --budget nan
refuse 2 "strict" bench --suite small.json --protocol quick
refuse 2 "no/such/folder" verify --suite small.json --json no/such/folder/result.json
refuse 2 "folder" verify --suite small.json --json .
"$tool" list >/dev/full 2>err && fail "a full disk under standard output looks like success"

# ---- bad files: 2 ----
refuse 2 "missing.json" verify --suite missing.json --json result.json
head -c 60 small.json >cut.json
refuse 2 "cut.json:[0-9]*:[0-9]*" verify --suite cut.json --json result.json
sed 's/seq_len/sequence/' small.json >key.json
refuse 2 "key.json.*sequence" verify --suite key.json --json result.json
sed 's/"seq_len": 3/"seq_len": "3"/' small.json >type.json
refuse 2 "type.json.*seq_len" verify --suite type.json --json result.json
sed 's/"seq_len": 3/"seq_len": -3/' small.json >negative.json
refuse 2 "negative.json.*seq_len" bench --suite negative.json --json result.json
sed 's/"seq_len": 3/"seq_len": 4000000000000000000/' small.json >huge.json
refuse 2 "huge.json" bench --suite huge.json --json result.json
printf '{"suite": "\000", "cases": []}' >zero.json
refuse 2 "zero.json" verify --suite zero.json --json result.json
: >empty.json
refuse 2 "empty.json" verify --suite empty.json --json result.json

# ---- what this machine lacks: 3 ----
for variant in $(jq -r '.variants[] | select(.device == "cpu" and (.runs | not)) | .variant' list.json); do
  refuse 3 "$variant" verify --suite small.json --device cpu --variant "$variant" --json result.json
done
if [ "$(jq '.devices[] | select(.device == "cuda") | .runs' list.json)" = false ]; then
  refuse 3 "cuda:0" verify --suite small.json --device cuda --json result.json
  refuse 3 "cuda:1" bench --suite small.json --device cuda:1 --json result.json
fi

finish "all of the tool's promises hold"
