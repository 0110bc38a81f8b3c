#!/bin/sh
# records check as a script sees it: what is believed, what is not, and why.
# Usage: evidence_test.sh TOOL. Prints what failed; exit 1 if anything did. Needs jq and Python.
set -u
tool=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
# shellcheck source=tests/site/evidence_testing.sh
. "$here/evidence_testing.sh"

# conforms SCHEMA FILE: by an independent validator. Returns 2 where there is none.
conforms() {
  python3 - "$root/schema/$1" "$2" <<'END'
import json, pathlib, sys
try:
    import jsonschema
except ImportError:
    sys.exit(2)
schema, file = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
sys.exit(0 if jsonschema.Draft202012Validator(schema).is_valid(file) else 1)
END
}

# agree FILE CODE: the validator of the tool and the independent one come to the same: CODE 0 fine, 1 not.
agree() {
  conforms record.schema.json "$1"
  independent=$?
  "$tool" records check "$1" >out 2>err
  own=$?
  [ "$own" -eq 0 ] || own=1
  [ "$own" -eq "$2" ] || fail "$1: records check says $own, not $2: $(head -n 3 out err)"
  [ "$independent" -eq 2 ] || [ "$independent" -eq "$2" ] || fail "$1: the independent validator says $independent"
}

synthetic good.json "1, calls=5"

# ---- names of files are shown, and what a terminal would obey in them is not ----
terminal=$(printf 'a\033[31mb\rc.json')
change good.json '.environment.dirty = true' "$terminal"
expect 1 records check "$terminal"
says 'a?\[31mb?c.json: environment.dirty'
expect 0 compare "$terminal" good.json
says 'old: a?\[31mb?c.json, commit'
grep -q "$(printf '[\033\r]')" out err && fail "a control character reached the terminal"
rm "$terminal"

# ---- the schema, in C and by an independent validator ----
agree good.json 0
change good.json 'del(.environment.flags)' missing.json
agree missing.json 1
change good.json 'del(.suite_digest)' missing.json
agree missing.json 1
says "'suite_digest' is missing"
change good.json '.cases[3].samples_us[2] = 1e308' huge.json
agree huge.json 1
says "samples_us\[2\]: 1e+308 is above 1e+12"
change good.json '.environment.threads = "2"' type.json
agree type.json 1
change good.json '.cases[3].samples_us[2] = -1' negative.json
agree negative.json 1
change good.json '.protocol.method = "stopwatch"' enum.json
agree enum.json 1
change good.json '.environment.utc = "yesterday"' pattern.json
agree pattern.json 1
change good.json '.environment.argv = []' argv.json
agree argv.json 1
change good.json '.cases[0].verify.worst = {"tensor": "x"}' worst.json
agree worst.json 1
change good.json '.environment.openmp.OMP_PLACES = 3' openmp.json
agree openmp.json 1
conforms reported.schema.json "$root/records/reported/reported-b200.json"
[ $? -ne 1 ] || fail "records/reported breaks its schema"

# ---- records check: one line per problem ----
expect 0 records check good.json
says "1 record checked, 0 problems"
# broken FILTER WORD: a record with that change has the problem.
broken() {
  change good.json "$1" broken.json
  expect 1 records check broken.json
  says "$2"
}
broken '.cases[20].latency_us *= 0.5' "latency_us is"
broken '.cases[20].floor_us *= 2' "floor_us is"
broken '.cases[20].medians_us[1] += 1000' "medians"
broken '.cases[20].samples_us[0:5] = [0.01, 0.01, 0.01, 0.01, 0.01]' "the samples give"
broken '.summary[1].ratio = 1.0' "ratio of the summary"
broken '.summary[1].geomean_latency_us *= 0.9' "geomean_latency_us of the summary"
broken '.summary[1].worst_case = "b1_s1"' "worst case"
broken 'del(.summary[2])' "summary does not have it"
broken '.environment.dirty = true' "uncommitted changes"
broken '.environment.commit = null' "no source to build"
broken 'del(.environment.gpu)' "'gpu' is missing"
broken '.cases[0].roofline_us = .cases[0].latency_us * 2' "below the roofline"
broken '.cases[0].verify.status = "fail"' "without a pass"
broken '.cases[0].verify.allowance_used = 1.5' "not a pass"
broken '.cases[1] = .cases[0]' "is there twice"
broken '.cases[0].samples_us = .cases[0].samples_us[1:]' "repetitions of equal length"
broken '.cases[0].op = "no_such_operator"' "no operator"
broken '.suite_digest = "xxh128:00000000000000000000000000000000"' "suite_digest"
broken '.suite_digest = null' "suite_digest is not known"
broken '.passed = 79' "passed is 79, but 80"
broken '.failed = 1' "failed is 1, but 0"
broken '.summary += [.summary[0]]' "the summary has it more than once"
broken '.summary += [.summary[0] + {op: "no_such_operator"}]' "summary\[5\]: no timed case"
broken '.summary += [.summary[0] + {in_place: true}]' "summary\[5\]: no timed case"
broken '.protocol.flush_bytes = 0' "do not empty the caches"
broken '.environment.caches[0].instances = 8' "do not empty the caches"
broken '.protocol.offset_step_bytes = 0' "tensors did not move"
broken '.protocol.fresh_inputs = true' "those of the other protocol"
broken '.protocol.name = "strict"' "those of the other protocol"
broken '.protocol.method = "cupti"' "timer cupti does not time calls on cpu"
broken '.protocol.repetitions = 1' "fewer than 3"
broken '.cases[4].timed_calls = 50' "50 timed calls in 3 repetitions are not its 15 samples"
broken '.protocol.timed_calls = 50' "are not the protocol's 50"
broken '.cases[4].warmup_calls = 0' "0 warm-up calls"
broken '.cases[].variant = "cuda.generic"' "variant cuda.generic does not run on cpu"
broken '.environment.utc = "2026-02-30T00:00:00Z"' "no such time"
broken '.environment.utc = "2026-13-01T00:00:00Z"' "no such time"
broken '.cases[5].samples_us |= map(0) | .cases[5].floor.samples_us |= map(0)' "no times"
broken '.cases[5].floor = null' "no floor"
broken '.cases[7].dims.head_dim = 2' "head_dim is not that of the suite's case"
broken '.cases[7].name = "a_case_of_ones_own"' "the suite has no such case"
broken '.environment.commit = "main"' "no whole commit id"
synthetic gpu.json "2, gpu='NVIDIA H200', calls=5"
expect 0 records check gpu.json
# broken_gpu FILTER WORD: the same of a record of a GPU.
broken_gpu() {
  change gpu.json "$1" broken.json
  expect 1 records check broken.json
  says "$2"
}
broken_gpu 'del(.environment.gpu.images.rope_2d)' "digest of its kernel image"
broken_gpu '.cases[].read_bytes *= 100' "below the roofline that its bytes give"
broken_gpu '.protocol.flush_bytes = 67108864' "do not empty the caches"
broken_gpu '.cases[3].below_roofline = true' "below_roofline is not"
broken_gpu '.protocol.method = "monotonic_clock"' "monotonic_clock does not time calls on cuda"
broken_gpu '.cases[3].roofline_us = 0.001' "roofline_us does not follow"
broken_gpu '.cases[3].roofline_us = null' "roofline_us does not follow"
broken_gpu '.environment.gpu.datasheet_gb_per_s = null' "nothing says how fast its bytes can move"
# Digests of the files themselves, as xxh128sum writes them.
mkdir sums && cp good.json sums/a.json
digest=$("$tool" report --records sums --out sums-site >/dev/null && jq -r .digest sums-site/records/a.json)
echo "${digest#xxh128:}  a.json" >sums/XXH128SUMS
expect 0 records check sums
if command -v xxh128sum >/dev/null; then
  [ "$(cd sums && xxh128sum a.json)" = "$(cat sums/XXH128SUMS)" ] || fail "xxh128sum prints another digest"
fi
mkdir above && cp -r sums above/below
expect 0 records check above
echo >>sums/a.json
expect 1 records check sums
says "not the one of XXH128SUMS"
echo >>above/below/a.json
expect 1 records check above
says "above/below/a.json: has the digest"
rm above/below/a.json
expect 1 records check above
says "above/below/a.json: No such file"
mkdir nothing
expect 2 records check nothing
says "no record found"
expect 0 records check "$root/records/reported"
# Notes are no problems, however many they are; and problems are told, however many notes came before.
synthetic other.json "36, calls=5"
change other.json '.cases |= map(.samples_us[0:5] |= map(. * 1.2) | .medians_us[0] *= 1.2
  | .latency_us = (.medians_us | add / 3) | .spread = ((.medians_us | max - min) / .latency_us)
  | .ratio = .latency_us / .floor_us) | .summary = []' noisy.json
"$tool" records check noisy.json >out 2>err
[ "$(grep -c "^note: .*repetitions differ" out)" -eq 80 ] || fail "notes: $(grep -c "^note:" out)"
says "5 problems"
jq '. as $all | .cases[0].name as $n | .cases = [range(100) as $i | $all.cases[0] | .name = "\($n)_\($i)"]' \
  noisy.json >crowd.json
expect 1 records check crowd.json
says "note: crowd.json: and 60 more notes"
says "crowd.json: and 6[0-9] more$"

finish "records are believed as far as they can be checked"
