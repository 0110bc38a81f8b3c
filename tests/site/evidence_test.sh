#!/bin/sh
# report, records and compare as a script sees them: what is believed, what is not, and why; files that mean harm.
# Usage: evidence_test.sh TOOL. Prints what failed; exit 1 if anything did. Needs jq and Python.
set -u
tool=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
# shellcheck source=tests/tool_testing.sh
. "$here/../tool_testing.sh"

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

# change FILE FILTER NEW: a copy of a record with something changed.
change() {
  jq "$2" "$1" >"$3" || fail "jq: $2"
}

synthetic good.json "1, calls=5"

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

# ---- identities: a file keeps its own, whatever files there are beside it ----
mkdir -p ids/a/b more
for name in a a.record A 'a b' 'a(b)' a-b a/b a/b/c a--b; do
  synthetic "ids/$name.json" "40, calls=5, ops={'rope_2d'}"
  cp "ids/$name.json" kept.json
  rm -rf alone && mkdir -p "alone/$(dirname "$name")" && cp kept.json "alone/$name.json"
  expect 0 report --records alone --out ids-site
  jq -r '.records[0].id' ids-site/records.json >>expected-ids
done
expect 0 report --records ids --out ids-site
jq -r '.records[].id' ids-site/records.json | sort >got-ids
[ "$(sort -u expected-ids)" = "$(cat got-ids)" ] || fail "identities: $(cat got-ids), not $(sort expected-ids)"
[ "$(sort -u got-ids | wc -l)" -eq 9 ] || fail "identities are shared: $(cat got-ids)"
grep -qx a got-ids && grep -qx a--b got-ids && grep -qx a--b--c got-ids || fail "plain names: $(cat got-ids)"
cp ids/a.json more/
synthetic more/a-b.json "50, calls=5, ops={'rope_2d'}"
expect 0 report --records ids --records more --out ids-site
[ "$(jq -r '.records[].id' ids-site/records.json | sort -u | wc -l)" -eq 11 ] || fail "the same name in two folders"

# ---- tiers ----
mkdir tiers
cp good.json tiers/first.json
synthetic tiers/second.json "3, day=9, calls=5"
synthetic tiers/alone.json "4, commit='f' * 40, day=10, calls=5"
synthetic other.json "8, day=13, calls=5"
change other.json '.environment.dirty = true' tiers/dirty.json
synthetic other.json "5, day=11, calls=5, commit='e' * 40"
synthetic tiers/here.json "6, day=12, calls=5, commit='e' * 40"
change other.json '.environment.memory_bytes = 99000000000' tiers/elsewhere.json
expect 0 report --records tiers --records "$root/records/reported" --out site
tier() {
  holds "site/records/$1.json" ".tier == \"$2\""
}
tier first verified
tier second verified
tier alone reproducible
tier dirty reported
tier here replicated
tier elsewhere replicated
holds site/records/dirty.json '.problems | map(select(.lowers)) | length == 1'
holds site/operators/rope_2d.json '[.boards[] | .ranked[] | select(.record == "dirty")] == []'
holds site/operators/rope_2d.json '.unranked | map(.record) == ["dirty"]'
holds site/operators/rope_2d.json '.reported[0].rows | length == 17 and all(.tier == "reported")'
holds site/operators/rope_2d.json '.boards[0].ranked | map(.latency_us) | . == sort'
# The aggregates are those of jq over the raw samples.
# shellcheck disable=SC2016 # jq's variables
jq '[.cases[] | select(.op == "rope_2d") | .samples_us as $s | [range(3) as $r | $s[$r*5:$r*5+5] | sort | .[2]] | add / 3 | log]
    | add / length | exp' tiers/first.json >expected
jq '.entries[] | select(.entry.op == "rope_2d") | .entry.latency_us' site/records/first.json >got
[ "$(jq -n --slurpfile a expected --slurpfile b got '($a[0] - $b[0]) | fabs < 1e-6 * $a[0]')" = true ] ||
  fail "geometric mean: $(cat got), not $(cat expected)"

# ---- a copy is no second run, whatever else of it was changed ----
# copied FILTER: good.json and a copy with that change verify nothing, and say so.
copied() {
  rm -rf copies && mkdir copies
  cp good.json copies/first.json
  change good.json "$1" copies/second.json
  expect 1 records check copies
  says "first.json: has the raw samples of the record second"
  says "second.json: has the raw samples of the record first"
  expect 0 report --records copies --out copies-site
  holds copies-site/records/first.json '.tier == "reported"'
  holds copies-site/records/second.json '.tier == "reported"'
}
copied '.environment.utc = "2026-03-01T00:00:00Z"'
copied '.environment.memory_bytes = 99000000000'
copied '.environment.utc = "2026-03-01T00:00:00Z" | .cases |= reverse | .cases[0:70] |= map(.samples_us[0] += 1)'
rm copies/second.json && cp good.json copies/again.json
expect 0 records check copies
says "note: .*is the same file as"
expect 0 report --records copies --out copies-site
holds copies-site/records/first.json '.tier == "reproducible"'

# ---- what a time depends on is ranked apart: timer, protocol, threads, size of the machine ----
mkdir settings
cp good.json gpu.json settings/
synthetic other.json "31, gpu='NVIDIA H200', calls=5"
change other.json '.protocol.method = "cuda_events"' settings/events.json
synthetic other.json "32, gpu='NVIDIA H200', calls=5"
change other.json '.protocol |= (.name = "strict" | .fresh_inputs = true | .calls_compared = 1)' settings/strict.json
synthetic other.json "33, calls=5"
change other.json '.environment.threads = 1' settings/thread.json
synthetic other.json "34, calls=5"
change other.json '.environment.cpus_online = 64' settings/large.json
expect 0 records check settings
expect 0 report --records settings --out settings-site
holds settings-site/operators/rope_2d.json '.boards | length == 1 and all(.ranked | all(.rank == 1))'
holds settings-site/operators/rope_2d.json '.boards[0].ranked | map(.record) | sort
  == ["events", "good", "gpu", "large", "strict", "thread"]'
holds settings-site/index.json '.operators[0].best | map(.setting) | unique | length == 6'
holds settings-site/records/good.json '.tier == "reproducible"'

# ---- in place and out of place are ranked apart ----
mkdir modes
cp good.json modes/
synthetic modes/in.json "7, calls=5, in_place_of='kv_cache_update'"
expect 0 report --records modes --out modes-site
holds modes-site/operators/kv_cache_update.json '.boards | map(.in_place) == [false, true]'
holds modes-site/operators/kv_cache_update.json '.boards | map(.ranked | length) == [1, 1]'

# ---- a record of peers: no floor, so not ranked, and its peers stand beside the cases of those that have one ----
mkdir peers
cp good.json peers/
synthetic other.json "35, calls=5"
# shellcheck disable=SC2016 # jq's variables
change other.json '.environment.utc = "2026-05-05T00:00:00Z" | .summary = []
  | def peer($name; $times): {name: $name, column: $name, fastest_form: true, latency_us: (.latency_us * $times),
      medians_us: (.medians_us | map(. * $times)), samples_us: (.samples_us | map(. * $times)), spread,
      ropegrad_us: .latency_us, ratio: $times, verify: {status: "pass"}};
    .cases |= map(.floor = null | .floor_us = null | .ratio = null | .threads = 2
      | .peers = [peer("slow"; 3), peer("fast"; 2), peer("wrong"; 0.1)] | .peers[2].verify.status = "fail")
  | .passed *= 2 | .cases += (.cases | map(.threads = 16 | .peers[1] = peer("fast"; 0.2)))' peers/peers.json
"$tool" records check peers/peers.json >out 2>err
[ "$(grep -vc "summary does not have it" out)" -eq 1 ] || fail "peers: $(grep -v "summary does not have it" out | head -n 3)"
# liar FILTER WORD: a record of peers with that change has the problem.
liar() {
  change peers/peers.json "$1" liar.json
  expect 1 records check liar.json
  says "$2"
}
liar '.cases[0].peers[0].ratio = 9' "ratio of the peer slow is 9, but"
liar '.cases[0].peers[0].latency_us *= 2' "latency_us of the peer slow is"
liar '.cases[0].peers[0].ropegrad_us = null' "has no ropegrad_us"
liar 'del(.cases[0].peers[0].samples_us)' "time of the peer slow cannot be recomputed"
liar '.cases[0].peers[0].column = "fast"' "called the fastest form of fast, and fast is faster"
liar '.summary = [{op: .cases[0].op, in_place: false, threads: 2, cases: 16, geomean_latency_us: null,
  geomean_floor_us: null, ratio: null, worst_ratio: null, worst_case: "",
  peers: [{name: "slow", cases: 16, ratio: 30}]}]' "ratio of the peer slow in the summary is 30, but"
expect 0 report --records peers --out peers-site
holds peers-site/operators/rope_2d.json '.boards[0].ranked | map(.record) == ["good"]'
holds peers-site/operators/rope_2d.json '.boards[0].details[0].cases | all(.peer.name == "fast" and .peer.times_as_long == 2)'

# ---- markup stays text ----
mkdir hostile
# shellcheck disable=SC2016 # the shell must not run it either
change good.json '.environment.cpu_model = "</script><script>alert(1)</script>\"'"'"'&<b>\u0001"
  | .environment.compiler = "<img src=x onerror=alert(2)>" | .cases[0].name = "<i>x</i>{{>head}}{{&embedded}}"
  | .summary |= map(if .worst_case == "b32_s256" then .worst_case = "<i>x</i>{{>head}}{{&embedded}}" else . end)
  | .environment.argv += ["$(touch hurt)", "`touch hurt`", "; touch hurt"]' 'hostile/<b> "a" & '"'"'b'"'"'.json'
expect 0 report --records hostile --out hostile-site
grep -rlE '<script>alert|<img src=x|<i>x</i>|<b>' hostile-site --include='*.html' && fail "markup of a record is in a page"
grep -q '&lt;script&gt;alert(1)' hostile-site/records/*.html || fail "the hostile name is not shown as text"
grep -q '</script><script>' hostile-site/search.js hostile-site/*.json && fail "a script element can be ended by data"
for page in hostile-site/*.json hostile-site/*/*.json; do jq -e . "$page" >/dev/null || fail "$page is no JSON"; done

# ---- bad files: exit 2, one line, and the site before stays ----
cp -r site before
refused() {
  expect 2 report --records "$1" --out site
  says "$2"
  diff -r site before >/dev/null || fail "$1: the site before was touched"
  ls -d site.*.part >/dev/null 2>&1 && fail "$1: a temporary folder was left behind"
}
mkdir bad
head -c 5000 good.json >bad/cut.json
refused bad "cut.json:[0-9]*:[0-9]*"
rm bad/cut.json && truncate -s 200M bad/huge.json
refused bad "huge.json.*64 MiB"
rm bad/huge.json && printf '[1]' >bad/list.json
refused bad "expected an object"
printf '{"schema": "ropegrad-verify-1"}' >bad/list.json
refused bad "neither ropegrad-record-1"
python3 -c "print('{\"schema\": \"ropegrad-record-1\", \"a\": ' + '[' * 5000 + ']' * 5000 + '}')" >bad/list.json
refused bad "list.json"
printf '{"schema": "ropegrad-record-1", "schema": "x"}' >bad/list.json
refused bad "list.json.*duplicate"
rm bad/list.json && mkfifo bad/pipe.json
refused bad "no regular file"
rm bad/pipe.json && change good.json '.cases = []' bad/empty.json
refused bad "no cases"
change good.json '.cases[0].latency_us = "fast"' bad/empty.json
refused bad "cases\[0\].latency_us: expected a number"
refused no-such-folder "no-such-folder"
mkdir mine && touch mine/thesis.txt mine/search.js
expect 2 report --records tiers --out mine
says "which this command did not write"
[ -e mine/thesis.txt ] || fail "a folder that is no site was replaced"
expect 0 report --records tiers --out kept
expect 0 report --records tiers --out kept
mkdir kept/.git && touch kept/.git/HEAD
expect 2 report --records tiers --out kept
says "holds .git/HEAD, which this command did not write"
[ -e kept/.git/HEAD ] || fail "what was put into a site was removed with it"
expect 2 report --records kept/records --out kept
says "lie one in the other"
expect 2 report --records tiers --out tiers/site
says "lie one in the other"
expect 2 report --records tiers
expect 2 report --records tiers --out site extra
expect 2 records
expect 2 records check
expect 2 compare good.json
for command in report compare "records check" "records reproduce" records; do
  # shellcheck disable=SC2086 # two words
  expect 0 $command --help
  awk 'length > 120 {exit 1}' out || fail "$command --help has a line of more than 120 columns"
done

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
says "not comparable: the hardware differs"

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
change made.json '.environment.argv = ["rm", "-rf", "/"]' evil.json
expect 2 records reproduce evil.json
says "no .bench. command"
change made.json '.environment.cpu_model = "another machine"' moved.json
expect 3 records reproduce moved.json
says "not comparable: the hardware differs"
change made.json '.environment.argv = ["x", "bench", "--suite", "small.json", "--json=hurt.json", "--json", "hurt.json"]' json.json
"$tool" records reproduce json.json >out 2>err
[ ! -e hurt.json ] || fail "reproduce wrote where the record says"
[ ! -e hurt ] || fail "an argument of a record was run"

finish "records are believed as far as they can be checked"
