#!/bin/sh
# report as a script sees it: tiers, ranks, identities, markup in records, bad files, folders that are not its own.
# Usage: tiers_test.sh TOOL. Prints what failed; exit 1 if anything did. Needs jq and Python.
set -u
tool=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
# shellcheck source=tests/site/evidence_testing.sh
. "$here/evidence_testing.sh"

synthetic good.json "1, calls=5"
synthetic gpu.json "2, gpu='NVIDIA H200', calls=5"

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
for id in a a--b a--b--c; do grep -qx "$id" got-ids || fail "plain names: $(cat got-ids)"; done
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
holds site/operators/rope_2d.json '.reported[0].measured_here == false'
grep -q "NVIDIA B200, of which there is no record here" site/operators/rope_2d.html || fail "reported hardware"
grep -rlE "REPOSITORY|[Aa]nother GPU" site && fail "a page says what only its data can"
synthetic tiers-b200/b200.json "9, gpu='NVIDIA B200', calls=5"
expect 0 report --records tiers-b200 --records "$root/records/reported" --out b200-site
holds b200-site/operators/rope_2d.json '.reported[0].measured_here'
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

finish "reports hold what records prove, and nothing else is touched"
