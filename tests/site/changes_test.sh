#!/bin/sh
# compare and records reproduce as a script sees them: verdicts, and what must not be compared.
# Usage: changes_test.sh TOOL. Prints what failed; exit 1 if anything did. Needs jq and Python.
set -u
tool=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/site/evidence_testing.sh
. "$here/evidence_testing.sh"

synthetic good.json "1, calls=5"
synthetic gpu.json "2, gpu='NVIDIA H200', calls=5"

# ---- compare ----
# all NAME: the verdict over all cases of an operator.
verdict() {
  grep -qE "^$1 += all .* $2\$" out || fail "compare: $1 is not $2: $(grep "^$1 *= all" out)"
}
synthetic base.json "1, calls=5, ratio=1.2"
synthetic slow.json "1, calls=5, ratio=1.5"
expect 1 compare base.json slow.json
verdict rope_2d slower
expect 0 compare slow.json base.json
verdict rope_2d faster
expect 0 compare good.json good.json
verdict rope_2d noise
change good.json '.cases |= map(.samples_us |= map(. * 1.5) | .medians_us |= map(. * 1.5) | .latency_us *= 1.5
  | .floor_us *= 1.5 | .floor.samples_us |= map(. * 1.5) | .floor.medians_us |= map(. * 1.5))' drift.json
expect 0 compare good.json drift.json
verdict rope_2d drift
# A few disturbed samples are noise.
change good.json '.cases |= map(.samples_us[1] *= 50)' disturbed.json
expect 0 compare good.json disturbed.json
verdict rope_2d noise
expect 2 compare good.json gpu.json
says "the hardware differs: AMD EPYC; then NVIDIA H200"
says "not comparable"
# against FILTER CODE WORD...: good.json against a copy with that change.
against() {
  change good.json "$1" other.json
  expect "$2" compare good.json other.json
  shift 2
  for word; do says "$word"; done
}
against '.cases |= map(select(.op != "rope_2d"))' 0 "rope_2d .*16 cases: the new record lacks the operator" \
  "64 cases compared" "16 cases of the old record not in the new one"
against '.cases |= .[1:]' 0 "b32_s256 .*the new record lacks it" "79 cases compared" "1 case of the old record"
against '.cases += [.cases[0] + {name: "extra"}]' 0 "extra .*the new record alone has it" "1 case in the new record alone"
against '.cases += [.cases[0] + {in_place: true}]' 0 "(in place) .*the new record alone has the operator"
against '.cases[0] += {latency_us: null, samples_us: [], medians_us: [], verify: {status: "fail", reason: "wrong"}}' 1 \
  "the new record has no time of it: wrong" "1 case timed in the old record and without a time"
against '.cases[0].dims.head_dim = 64' 0 "its head_dim differs: 128, then 64" "1 case not compared"
against '.cases[0].read_bytes *= 2' 0 "it moves other bytes" "1 case not compared"
against '.cases[0].samples_us = []' 0 "the new record has no samples of it" "1 case not compared"
against '.suite_digest = "xxh128:00000000000000000000000000000000"' 0 "the suites are not the same file"
against '.suite = "another"' 2 "the suite differs"
against '.protocol.name = "strict"' 2 "the setting differs: .*faithful; then .*strict"
against '.environment.threads = 1' 2 "the setting differs: 2 threads of 2 CPUs"
against '.cases[].variant = "cpu.scalar"' 0 "another variant: cpu.avx512, then cpu.scalar"
against '.cases += (.cases | map(.threads = 1 | .latency_us *= 9 | .samples_us |= map(. * 9)))' 0 "80 cases compared" \
  "80 cases in the new record alone"
change gpu.json '.protocol.method = "cuda_events"' events.json
expect 2 compare gpu.json events.json
says "the setting differs: CUPTI, faithful; then CUDA events, faithful"

# ---- reproduce ----
cat >small.json <<'END'
{"suite": "small", "cases": [
  {"op": "rope_2d", "name": "one", "dims": {"batch_size": 2, "seq_len": 300, "head_dim": 128}}]}
END
expect 0 bench --suite small.json --device cpu --budget 0.05 --json made.json
"$tool" records reproduce made.json --json reproduced.json >out 2>err
code=$?
[ $code -le 1 ] || fail "reproduce: exit $code: $(cat err)"
says "verdict:"
holds reproduced.json '.cases[0].name == "one" and .protocol.budget_s == 0.05'

# Its own input is not written over, by whatever name.
cp made.json before.json && ln -s made.json link.json
expect 2 records reproduce made.json --json ./made.json
says "is the record itself"
expect 2 records reproduce made.json --json link.json
says "is the record itself"
cmp -s made.json before.json || fail "reproduce changed the record"
# scaled FACTOR: made.json with its times, and not its floors, multiplied: more than any noise.
scaled() {
  change made.json ".cases[0] |= (.samples_us |= map(. * $1) | .medians_us |= map(. * $1) | .latency_us *= $1
    | .ratio *= $1)" "scaled-$1.json"
}
scaled 10000
scaled 0.0001
# again FILTER CODE WORD: a copy of the slow record with that change, reproduced.
again() {
  change scaled-10000.json "$1" again.json
  cp made.json stale.json
  expect "$2" records reproduce again.json --json stale.json
  says "$3"
}
again '.environment.argv += ["--help"]' 2 "wrote no record"
again '.environment.argv |= [.[0], "bench", "-h"]' 2 "wrote no record"
again '.environment.argv += ["--", "--help"]' 2 "unexpected argument"
again '.environment.argv += ["--no-such-option"]' 2 "unknown option"
again '.cases += [.cases[0] + {name: "two"}]' 3 "verdict: incomplete"
again '.suite_digest = "xxh128:00000000000000000000000000000000"' 3 "verdict: incomplete"
again '.cases[0].dims.head_dim = 64' 3 "not comparable"
again . 0 "verdict: faster, 1 of 1 cases"
expect 1 records reproduce scaled-0.0001.json
says "verdict: slower"
# A reproduction that is ended leaves neither a file nor a process.
mkdir temporary
change made.json '.environment.argv |= map(if . == "0.05" then "30" else . end)' long.json
TMPDIR=$PWD/temporary "$tool" records reproduce long.json >out 2>err &
parent=$!
child=
for _ in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.1
  child=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null)
  [ -z "$child" ] || break
done
[ -n "$child" ] || fail "no command was started"
kill -TERM "$parent"
wait "$parent" 2>/dev/null
# A process that nobody has waited for yet has ended too.
runs_on() { grep -q '^State:[[:space:]]*[RSDTtI]' "/proc/${child% }/status" 2>/dev/null; }
for _ in 1 2 3 4 5 6 7 8 9 10; do
  runs_on || break
  sleep 0.1
done
runs_on && fail "the command runs on"
[ -z "$(ls temporary)" ] || fail "left behind: $(ls temporary)"
change made.json '.environment.argv = ["rm", "-rf", "/"]' evil.json
expect 2 records reproduce evil.json
says "no .bench. command"
change made.json '.environment.cpu_model = "another machine"' moved.json
expect 3 records reproduce moved.json
says "the hardware differs"
change made.json '.environment.argv = ["x", "bench", "--suite", "small.json", "--json=hurt.json", "--json", "hurt.json"]' json.json
"$tool" records reproduce json.json >out 2>err
[ ! -e hurt.json ] || fail "reproduce wrote where the record says"
[ ! -e hurt ] || fail "an argument of a record was run"

finish "two records are compared as far as they are alike"
