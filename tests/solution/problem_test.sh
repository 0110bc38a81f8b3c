#!/bin/sh
# `ropegrad problem` over small problems of the documented form, one of each operator that has one, and over broken ones.
# Usage: problem_test.sh TOOL SOURCE_FOLDER OP... Needs jq.
set -u
tool=$(realpath "$1")
root=$(realpath "$2")
shift 2
# shellcheck source=tests/tool_testing.sh
. "$root/tests/tool_testing.sh"

# problem NAME AXES INPUTS OUTPUTS: makes the folder NAME with a definition.
problem() {
  mkdir -p "$1"
  jq -n --arg name "$1" --argjson axes "$2" --argjson inputs "$3" --argjson outputs "$4" '
    def tensors: with_entries(.value = if .value[0] == null then {shape: null, dtype: .value[1]}
                                       else {shape: .value[0:-1], dtype: .value[-1]} end);
    {name: $name, description: "made by a test", axes: $axes, inputs: ($inputs | tensors), outputs: ($outputs | tensors),
     reference: "def run(): pass"}' >"$1/definition.json"
  : >"$1/workload.jsonl"
}

# workload NAME UUID AXES [SCALARS]: adds a workload with random tensors.
workload() {
  jq -c --arg uuid "$2" --argjson axes "$3" --argjson scalars "${4-{\}}" '
    {uuid: $uuid, axes: $axes, inputs: (.inputs | with_entries(
      .value = if $scalars[.key] != null then {type: "scalar", value: $scalars[.key]} else {type: "random"} end)),
     tolerance: {max_atol: 0.01}}' "$1/definition.json" >>"$1/workload.jsonl"
}

B='"batch_size"' S='"seq_len"' D='"head_dim"'
problem rotary_embedding '{"batch_size": {"type": "var"}, "seq_len": {"type": "var"},
  "head_dim": {"type": "const", "value": 8}, "half": {"type": "expr", "expression": "head_dim // 2"}}' \
  "{\"grad_cos\": [$B, $S, $D, \"bfloat16\"], \"grad_sin\": [$B, $S, $D, \"bfloat16\"], \"emb\": [$B, $S, $D, \"float32\"],
    \"inv_freq_expanded\": [$B, \"half\", \"1\", \"float32\"], \"attention_scaling\": [null, \"float32\"]}" \
  "{\"grad_position_ids\": [$B, $S, \"float32\"]}"
workload rotary_embedding first '{"batch_size": 2, "seq_len": 5}' '{"attention_scaling": 0.125}'
workload rotary_embedding 6120f144-b973 '{"batch_size": 1, "seq_len": 3}' '{"attention_scaling": 2}'

problem rope_2d '{"n": {"type": "var"}, "s": {"type": "var"}, "d": {"type": "expr", "expression": "-(2 - n) % 3 + 2 ** 3 * n / n"}}' \
  '{"grad_cos": ["n", "s", "d", "float16"], "grad_sin": ["n", "s", "d", "float16"], "idx_theta": ["n", "s", "d", "float32"]}' \
  '{"grad_idx_theta": ["n", "s", "d", "float32"]}'
workload rope_2d one '{"n": 2, "s": 7}'

problem vision_rotary '{"head_dim": {"type": "const", "value": 72}, "quarter": {"type": "expr", "expression": "head_dim/4"},
  "total_patches": {"type": "var"}, "max_grid_size": {"type": "var"}}' \
  '{"grad_cos": ["total_patches", "head_dim", "float32"], "grad_sin": ["total_patches", "head_dim", "float32"],
    "pos_ids": ["total_patches", "2", "int64"], "inv_freq": ["quarter", "float32"],
    "emb": ["total_patches", "head_dim", "float32"]}' '{"grad_inv_freq": ["quarter", "float32"]}'
workload vision_rotary grid '{"total_patches": 12, "max_grid_size": 4}'
# Inputs that the definition's Python makes, and a workload inside a trace.
jq -c '{definition: "vision_rotary", workload: {uuid: "custom", axes: {total_patches: 9, max_grid_size: 3},
  inputs: (.inputs | map_values({type: "custom"}))}, solution: null, evaluation: null}' vision_rotary/definition.json \
  >>vision_rotary/workload.jsonl

Q='["batch_size", "num_heads", "seq_len", "head_dim", "float32"]' K='["batch_size", "num_kv_heads", "seq_len", "head_dim", "float32"]'
T='["batch_size", "seq_len", "head_dim", "float32"]'
problem rope_apply '{"batch_size": {"type": "var"}, "num_heads": {"type": "const", "value": 4},
  "num_kv_heads": {"type": "const", "value": 2}, "seq_len": {"type": "var"}, "head_dim": {"type": "const", "value": 16}}' \
  "{\"grad_q_embed\": $Q, \"grad_k_embed\": $K, \"q\": $Q, \"k\": $K, \"cos\": $T, \"sin\": $T}" \
  "{\"grad_q\": $Q, \"grad_k\": $K, \"grad_cos\": $T, \"grad_sin\": $T}"
workload rope_apply one '{"batch_size": 2, "seq_len": 5}'
printf '\n\n' >>rope_apply/workload.jsonl
workload rope_apply two '{"batch_size": 1, "seq_len": 1}'

C='["b", "h", "m", "d", "bfloat16"]' N='["b", "h", "n", "d", "bfloat16"]' T='["b", "n", "d", "bfloat16"]'
problem kv_cache_update '{"b": {"type": "var"}, "n": {"type": "var"}, "m": {"type": "var"},
  "h": {"type": "const", "value": 2}, "d": {"type": "const", "value": 8}}' \
  "{\"grad_key_cache\": $C, \"grad_value_cache\": $C, \"key_states\": $N, \"cos\": $T, \"sin\": $T,
    \"cache_position\": [\"n\", \"int64\"]}" \
  "{\"grad_key_states\": $N, \"grad_value_states\": $N, \"grad_cos\": $T, \"grad_sin\": $T,
    \"grad_key_cache_input\": $C, \"grad_value_cache_input\": $C}"
workload kv_cache_update one '{"b": 2, "n": 3, "m": 9}'

# ---- each of them is verified, with its sizes and numbers ----
for op in "$@"; do
  [ -d "$op" ] || { fail "there is no problem of $op here"; continue; }
  lines=$(grep -c . "$op/workload.jsonl")
  expect 0 problem "$op" --device cpu --json "$op.json"
  jq -e --arg op "$op" --argjson lines "$lines" '.suite == $op and .passed == $lines and .failed == 0 and
    ([.cases[].op] | unique) == [$op]' "$op.json" >/dev/null || fail "$op: $(head -c 300 "$op.json")"
done
jq -e '[.cases[].name] == ["first", "6120f144-b973"]' rotary_embedding.json >/dev/null || fail "names are not the uuids"

expect 0 problem rope_2d bench --device cpu --budget 0.001 --json bench.json
# 2 * 7 * 8 elements: two inputs of 2 bytes, one of 4, an output of 4.
jq -e '.schema == "ropegrad-record-1" and .cases[0].read_bytes == 896 and .cases[0].write_bytes == 448' bench.json >/dev/null ||
  fail "bench: not the bytes of the workload's sizes: $(jq -c '.cases[0] | [.read_bytes, .write_bytes]' bench.json)"
digest=$(jq -r .suite_digest bench.json)
case $digest in xxh128:????????????????????????????????) ;; *) fail "the digest is '$digest'" ;; esac
echo >>rope_2d/workload.jsonl
expect 0 problem rope_2d bench --device cpu --budget 0.001 --json bench.json
[ "$(jq -r .suite_digest bench.json)" != "$digest" ] || fail "the digest is the same for another file"
expect 0 problem rope_apply verify --case two --device cpu
grep -q '^1 passed' out || fail "--case does not choose a workload"
expect 0 problem kv_cache_update verify --in-place --device cpu
expect 0 problem --help
grep -q 'Exit codes' out || fail "--help does not explain the exit codes"

# ---- what is refused: in one line that holds WORD, with exit 2 and nothing written ----
refuse() { # WORD ARGUMENT...
  word=$1
  shift
  expect 2 problem "$@" --json refused.json
  [ "$(wc -l <err)" -eq 1 ] || fail "problem $*: $(wc -l <err) lines on standard error, not 1: $(head -c 300 err)"
  grep -qF -e "$word" err || fail "problem $*: '$(cat err)' does not say '$word'"
  if [ -s out ] || [ -e refused.json ]; then fail "problem $*: printed or wrote something"; fi
}

# broken FILTER WORD: rope_apply's definition changed by the filter.
broken() {
  mkdir -p broken
  jq "$1" rope_apply/definition.json >broken/definition.json
  cp rope_apply/workload.jsonl broken/workload.jsonl
  refuse "$2" broken
}

# bad_workload FILTER WORD: its first workload changed by the filter; the second line.
bad_workload() {
  mkdir -p broken
  cp rope_apply/definition.json broken/definition.json
  { echo; head -n 1 rope_apply/workload.jsonl | jq -c "$1"; } >broken/workload.jsonl
  refuse "broken/workload.jsonl:2$2" broken
}

# A name is shown, and what a terminal would obey in it is not.
mkdir -p terminal
jq '.name = "a\u001b[31mb"' rope_apply/definition.json >terminal/definition.json
head -n 1 rope_apply/workload.jsonl >terminal/workload.jsonl
expect 0 problem terminal
grep -qF 'suite a?[31mb' out || fail "the name is not shown: $(head -n 1 out)"

refuse 'folder is missing'
refuse "not 'fly'" rope_apply fly
refuse "unknown option '--suite'" rope_apply --suite smoke
refuse 'nowhere/definition.json: No such file' nowhere
mkdir alone && cp rope_apply/definition.json alone
refuse 'alone/workload.jsonl: No such file' alone
: >alone/workload.jsonl
refuse 'workload.jsonl: has no workload' alone
head -c 200 rope_apply/definition.json >alone/definition.json
refuse 'alone/definition.json:' alone
cp rope_apply/definition.json alone
head -c 60 rope_apply/workload.jsonl >alone/workload.jsonl
refuse 'alone/workload.jsonl:1:' alone
printf '{"uuid": "a", "uuid": "a"}\n' >alone/workload.jsonl
refuse 'workload.jsonl:1:' alone
head -n 1 rope_apply/workload.jsonl >line && cat line line >alone/workload.jsonl
refuse 'workload.jsonl:2: uuid: "one" is that of an earlier workload' alone
refuse 'has no case' rope_apply --case three

broken '[.]' 'definition.json: expected an object'
broken 'del(.name)' 'name: expected a string, got nothing'
broken '.inputs = []' 'inputs: expected an object, got a list'
broken 'del(.inputs.cos)' 'inputs.cos: missing'
broken 'del(.outputs.grad_sin)' 'outputs.grad_sin: missing'
broken '.outputs = {y: .outputs.grad_q}' 'outputs: no operator'
broken '.inputs.extra = .inputs.cos' 'inputs.extra: the problem of rope_apply has no such input'
broken '.inputs.grad_q = {shape: null, dtype: "float32"}' 'inputs.grad_q: the problem'
broken '.inputs.cos.dtype = "float8_e4m3fn"' 'inputs.cos.dtype: ropegrad has no dtype "float8_e4m3fn"'
broken '.inputs.cos.dtype = "int64"' 'cos'
broken '.inputs.cos.dtype = "bfloat16"' 'cos'
broken '.inputs.cos.dtype = 32' 'inputs.cos.dtype: expected a string'
broken '.inputs.cos.shape = null' 'inputs.cos.shape: expected a list of 3 axes, got null'
broken '.inputs.cos.shape = ["seq_len"]' 'inputs.cos.shape: expected a list of 3 axes'
broken '.inputs.cos.shape[1] = "nothing"' 'inputs.cos.shape[1]: there is no axis "nothing"'
broken '.inputs.cos.shape[1] = "99999999999999999999"' 'inputs.cos.shape[1]: is 1099511627776, expected 5'
broken '.inputs.cos.shape[2] = "num_heads"' 'expected 4'
broken '.axes.seq_len.type = "some"' 'there is no kind of axis "some"'
broken '.axes.head_dim.value = -2' 'axes.head_dim.value'
broken '.axes.head_dim.value = 7' 'head_dim'
broken '.axes.head_dim = {type: "expr"}' 'axes.head_dim.expression: expected a string'
for wrong in 'seq_len +' '(seq_len' 'seq_len)' 'nothing * 2' 'head_dim' 'seq_len // 0' 'seq_len / 2' '2 ** -1' '9 ** 99' \
  '9999999999999999999' '-seq_len' 'seq_len; 1' ''; do
  broken ".axes.head_dim = {type: \"expr\", expression: \"$wrong\"}" "axes.head_dim, \"$wrong\": "
done
deep=$(printf '%0500d' 0 | tr 0 '(')
broken ".axes.head_dim = {type: \"expr\", expression: \"$deep\"}" 'nested too deep'
deep=$(printf '%0500d' 0 | sed 's/0/1**/g')1
broken ".axes.head_dim = {type: \"expr\", expression: \"$deep\"}" 'nested too deep'

bad_workload '[.]' ': expected an object'
bad_workload 'del(.uuid)' ': uuid: expected a string'
bad_workload '.uuid = "two words"' ': name: expected'
bad_workload '.axes.depth = 3' ': axes.depth: the definition has no var axis'
bad_workload '.axes.head_dim = 16' ': axes.head_dim: the definition has no var axis'
bad_workload 'del(.axes.seq_len)' ': axes.seq_len: missing'
bad_workload '.axes.seq_len = "5"' ': axes.seq_len: expected an integer'
bad_workload '.axes.seq_len = -5' ': axes.seq_len: -5'
bad_workload '.axes.seq_len = 1e15' ': axes.seq_len'
bad_workload '.axes.seq_len = 1099511627776' ': '
bad_workload 'del(.inputs.q)' ': inputs.q: missing'
bad_workload '.inputs.extra = {type: "random"}' ': inputs.extra: the definition has no such input'
bad_workload '.inputs.q = {type: "scalar", value: 1}' ': inputs.q.type: a tensor cannot be a scalar'
bad_workload '.inputs.q = {type: "safetensors", path: "x", tensor_key: "y"}' ': inputs.q.type: ropegrad reads no safetensors'
bad_workload '.inputs.q = {type: "lottery"}' ': inputs.q.type: there is no source "lottery"'
bad_workload '.inputs.q = 3' ': inputs.q.type: expected a string'
bad_workload '{definition: "another", workload: .}' ': definition: is "another"'
jq -c '.inputs.attention_scaling.value = "much"' rotary_embedding/workload.jsonl >alone/workload.jsonl
cp rotary_embedding/definition.json alone
refuse 'attention_scaling: expected a number, got a string' alone

[ "$#" -ge 5 ] || fail "only $# operators"
finish "problem reads problems, and says what is wrong with others"
