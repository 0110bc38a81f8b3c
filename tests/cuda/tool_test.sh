#!/bin/sh
# The tool and a GPU that runs nothing: a driver that launches kernels into the void must be found out, and what a GPU
# machine lacks must be said in one line with exit code 3.
# Usage: tool_test.sh TOOL SUITES SCHEMAS, with the fake driver in LD_LIBRARY_PATH. Needs jq.
set -u
tool=$1 smoke=$2/smoke.json
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/tool_testing.sh
. "$here/../tool_testing.sh"

# refuse CODE WORD ARGUMENT...: one line that holds WORD, and no table.
refuse() {
  code=$1 word=$2
  shift 2
  expect "$code" "$@"
  [ "$(wc -l <err)" -eq 1 ] || fail "ropegrad $*: $(wc -l <err) lines on standard error, not 1"
  grep -q -e "$word" err || fail "ropegrad $*: '$(cat err)' does not say '$word'"
  [ ! -s out ] || fail "ropegrad $*: printed output before it failed"
}

# Kernels that do not run leave their outputs unwritten.
expect 1 verify --suite "$smoke" --op rope_2d --device cuda:1 --json result.json
jq -e '.failed > 0 and (.cases | any(.reason | contains("was not written")))' result.json >/dev/null ||
  fail "outputs that nobody wrote were not found: $(head -c 500 out)"
jq -e '.cases | all(.device == "cuda:1")' result.json >/dev/null || fail "the device is not in the record"
jq -e '.environment.gpu | .name == "a GPU that is not there" and .compute_capability == "9.0" and .temperature_c == null
  and (.images | length) > 0' result.json >/dev/null ||
  fail "the GPU is not in the record: $(jq -c .environment.gpu result.json)"

expect 1 bench --suite "$smoke" --op rope_2d --device cuda --timer events --json record.json
jq -e '.protocol.method == "cuda_events" and (.cases | all(.latency_us == null or .verify.status == "pass"))' \
  record.json >/dev/null || fail "a kernel that was not run was timed"

# Never another timer than the one asked for.
export ROPEGRAD_CUPTI=/no/such/libcupti.so
refuse 3 '--timer cupti: ROPEGRAD_CUPTI: /no/such/libcupti.so' bench --suite "$smoke" --device cuda
refuse 3 '--timer cupti: ROPEGRAD_CUPTI' bench --suite "$smoke" --device cuda --timer cupti
unset ROPEGRAD_CUPTI
refuse 3 'cuda:2' bench --suite "$smoke" --device cuda:2
refuse 2 'cupti or events' bench --suite "$smoke" --device cuda --timer clock
refuse 2 'for GPUs' bench --suite "$smoke" --device cpu --timer cupti

finish "what a GPU that runs nothing does is found out, and what is missing is said"
