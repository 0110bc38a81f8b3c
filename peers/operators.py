"""What the five operators take and give: the tables that cases, inputs, the binding and the checks share.

The library describes itself in `ops/<operator>/<operator>_spec.c`; these tables repeat what a comparison needs of that.
Needs neither torch nor numpy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

DTYPE_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4}
PAYLOAD_DTYPES = ("float32", "bfloat16", "float16", "float64")


@dataclass(frozen=True)
class TensorSpec:
    """One tensor. An axis is the name of a dim, a dim over a number ("head_dim/4"), or a plain number ("2")."""

    name: str
    axes: tuple[str, ...]
    group: str  # tensors of a group have one dtype
    dtype: str  # what the suites' cases have
    fill: str = "normal"  # inputs: see inputs.py
    exact: bool = False  # outputs: copied, so compared bit for bit

    def shape(self, dims: dict[str, int]) -> tuple[int, ...]:
        return tuple(_size(axis, dims) for axis in self.axes)


def _size(axis: str, dims: dict[str, int]) -> int:
    name, _, divisor = axis.partition("/")
    size = int(name) if name.isdigit() else dims[name]
    return size // int(divisor) if divisor else size


@dataclass(frozen=True)
class Operator:
    name: str
    dims: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    options: dict[str, object] = field(default_factory=dict)  # with their defaults
    replaced: dict[str, str] = field(default_factory=dict)  # in place: output -> the input whose memory it takes
    batched: bool = True  # results of different batches do not depend on each other

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return self.inputs + self.outputs

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.outputs)


_BSD = ("batch_size", "seq_len", "head_dim")
_PD = ("total_patches", "head_dim")
_Q = ("batch_size", "num_heads", "seq_len", "head_dim")
_K = ("batch_size", "num_kv_heads", "seq_len", "head_dim")
_CACHE = ("batch_size", "num_kv_heads", "max_seq_len", "head_dim")
_STATES = ("batch_size", "num_kv_heads", "new_seq_len", "head_dim")
_TABLE = ("batch_size", "new_seq_len", "head_dim")

OPERATORS: dict[str, Operator] = {
    op.name: op
    for op in (
        Operator(
            "rotary_embedding",
            dims=_BSD,
            inputs=(
                TensorSpec("grad_cos", _BSD, "gradient", "bfloat16"),
                TensorSpec("grad_sin", _BSD, "gradient", "bfloat16"),
                TensorSpec("emb", _BSD, "angle", "float32"),
                TensorSpec("inv_freq_expanded", ("batch_size", "head_dim/2", "1"), "angle", "float32", "inv_freq"),
            ),
            outputs=(TensorSpec("grad_position_ids", ("batch_size", "seq_len"), "angle", "float32"),),
            options={"attention_scaling": 1.0},
        ),
        Operator(
            "rope_2d",
            dims=_BSD,
            inputs=(
                TensorSpec("grad_cos", _BSD, "gradient", "bfloat16"),
                TensorSpec("grad_sin", _BSD, "gradient", "bfloat16"),
                TensorSpec("idx_theta", _BSD, "angle", "float32"),
            ),
            outputs=(TensorSpec("grad_idx_theta", _BSD, "angle", "float32"),),
        ),
        Operator(
            "vision_rotary",
            dims=("num_images", "total_patches", "max_grid_size", "head_dim"),
            inputs=(
                TensorSpec("grad_cos", _PD, "gradient", "float32"),
                TensorSpec("grad_sin", _PD, "gradient", "float32"),
                TensorSpec("emb", _PD, "angle", "float32"),
                TensorSpec("pos_ids", ("total_patches", "2"), "position", "int64", "grid"),
                TensorSpec("inv_freq", ("head_dim/4",), "angle", "float32", "inv_freq"),
            ),
            outputs=(TensorSpec("grad_inv_freq", ("head_dim/4",), "angle", "float32"),),
            batched=False,
        ),
        Operator(
            "rope_apply",
            dims=("batch_size", "num_heads", "num_kv_heads", "seq_len", "head_dim"),
            inputs=(
                TensorSpec("grad_q_embed", _Q, "q", "float32"),
                TensorSpec("grad_k_embed", _K, "k", "float32"),
                TensorSpec("q", _Q, "q", "float32"),
                TensorSpec("k", _K, "k", "float32"),
                TensorSpec("cos", _BSD, "table", "float32", "cos"),
                TensorSpec("sin", _BSD, "table", "float32", "sin"),
            ),
            outputs=(
                TensorSpec("grad_q", _Q, "q", "float32"),
                TensorSpec("grad_k", _K, "k", "float32"),
                TensorSpec("grad_cos", _BSD, "table", "float32"),
                TensorSpec("grad_sin", _BSD, "table", "float32"),
            ),
            options={"sin_pairing": "adjoint"},
        ),
        Operator(
            "kv_cache_update",
            dims=("batch_size", "new_seq_len", "max_seq_len", "num_kv_heads", "head_dim"),
            inputs=(
                TensorSpec("grad_key_cache", _CACHE, "key", "bfloat16"),
                TensorSpec("grad_value_cache", _CACHE, "value", "bfloat16"),
                TensorSpec("key_states", _STATES, "key", "bfloat16"),
                TensorSpec("cos", _TABLE, "table", "bfloat16", "cos"),
                TensorSpec("sin", _TABLE, "table", "bfloat16", "sin"),
                TensorSpec("cache_position", ("new_seq_len",), "position", "int64", "arange"),
            ),
            outputs=(
                TensorSpec("grad_key_states", _STATES, "key", "bfloat16"),
                TensorSpec("grad_value_states", _STATES, "value", "bfloat16", exact=True),
                TensorSpec("grad_cos", _TABLE, "table", "bfloat16"),
                TensorSpec("grad_sin", _TABLE, "table", "bfloat16"),
                TensorSpec("grad_key_cache_input", _CACHE, "key", "bfloat16", exact=True),
                TensorSpec("grad_value_cache_input", _CACHE, "value", "bfloat16", exact=True),
            ),
            options={"in_place": False},
            replaced={"grad_key_cache_input": "grad_key_cache", "grad_value_cache_input": "grad_value_cache"},
        ),
    )
}


@dataclass(frozen=True)
class Cost:
    """What any implementation must move and compute for all outputs; as the operators' own `cost` counts it."""

    read_bytes: int
    write_bytes: int
    flops: int


def cost(op: Operator, dims: dict[str, int], dtypes: dict[str, str], in_place: bool) -> Cost:
    sizes = {t.name: prod(t.shape(dims)) for t in op.tensors}
    size = {name: n * DTYPE_BYTES[dtypes[name]] for name, n in sizes.items()}
    read = sum(size[t.name] for t in op.inputs)
    write = sum(size[t.name] for t in op.outputs)
    if op.name == "rotary_embedding":  # of each row of emb only the first half, which the second repeats
        return Cost(read - size["emb"] // 2, write, 7 * sizes["emb"] // 2 + sizes["grad_position_ids"])
    if op.name == "rope_2d":
        return Cost(read, write, 3 * sizes["idx_theta"])
    if op.name == "vision_rotary":  # inv_freq gives its shape alone
        return Cost(read - size["inv_freq"], write, 5 * sizes["emb"])
    if op.name == "rope_apply":
        return Cost(read, write, 7 * (sizes["q"] + sizes["k"]))
    states = size["grad_key_states"] + size["grad_value_states"]
    if in_place:  # only the named rows of the caches are touched
        caches = size["grad_key_cache"] + size["grad_value_cache"]
        return Cost(read - caches + states, write - caches + states, 7 * sizes["key_states"])
    return Cost(read, write, 7 * sizes["key_states"])
