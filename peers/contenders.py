"""Who is timed: ropegrad, plain PyTorch, torch.compile, and other public kernels where they can be imported.

A contender prepares a call on given tensors, untimed, and hands back the call, which is timed. What a framework does
once per training step and not once per operator (its forward pass, views of tensors) belongs to the preparation.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from peers.cases import Case
from peers.reference import PLAIN, kv_cache_update_masked
from peers.ropegrad_ctypes import Call, Context

Tensors = dict[str, Tensor]
TimedCall = Callable[[], Any]

COMPILED = "torch.compile"  # the column; its forms stand in the record


@dataclass(frozen=True)
class Form:
    """One way to have a plain function compiled."""

    name: str
    dynamic: bool = False  # one compilation for every shape
    given: bool = False  # results stored in tensors given after the inputs, as ropegrad is called
    masked: bool = False  # kv_cache_update: see reference.py


STATIC = Form(COMPILED)
DYNAMIC = Form("torch.compile dynamic", dynamic=True)
GIVEN = Form("torch.compile into given outputs", given=True)
MASKED = Form("torch.compile masked", masked=True)
MASKED_GIVEN = Form("torch.compile masked into given outputs", masked=True, given=True)


def forms(case: Case, on_cuda: bool) -> list[Form]:
    """What is tried for a case; the fastest counts. README.md says what was seen of those that are left out."""
    if on_cuda:  # where new results are free: they come from memory that the allocator keeps
        return [STATIC, DYNAMIC, MASKED] if masks(case) else [STATIC, DYNAMIC]
    return [STATIC, GIVEN, MASKED_GIVEN] if masks(case) else [STATIC, GIVEN]


def masks(case: Case) -> bool:
    return case.op.name == "kv_cache_update" and not case.in_place


@dataclass
class Contender:
    name: str
    outputs: tuple[str, ...]
    prepare: Callable[[Tensors], TimedCall]
    collect: Callable[[Any, Tensors], Tensors]  # from what the call returned
    column: str = ""  # forms of one peer share a column: the fastest is shown
    note: str = ""

    def __post_init__(self) -> None:
        self.column = self.column or self.name


def _returned(names: tuple[str, ...]) -> Callable[[Any, Tensors], Tensors]:
    return lambda result, _tensors: dict(zip(names, result, strict=True))


def _given(names: tuple[str, ...]) -> Callable[[Any, Tensors], Tensors]:
    return lambda _result, tensors: {name: tensors[name] for name in names}


# ---- ropegrad ----


def ropegrad(case: Case, context: Context, outputs: tuple[str, ...] = ()) -> Contender:
    """With `outputs`, only these are wanted: the counterpart of a peer that has no others."""
    wanted = outputs or case.op.output_names
    given = {t.name: t.shape(case.dims) for t in case.op.inputs}
    given |= {t.name: t.shape(case.dims) for t in case.op.outputs if t.name in wanted}
    call = Call(context, case.op.name, given, case.dtypes, case.options)

    def prepare(tensors: Tensors) -> TimedCall:
        call.place({name: tensors[name].data_ptr() for name in given})
        return call.run

    name = "ropegrad" if not outputs else f"ropegrad ({', '.join(outputs)})"
    return Contender(name, wanted, prepare, _given(wanted))


# ---- PyTorch ----


def eager(case: Case) -> Contender:
    names = [t.name for t in case.op.inputs]
    function = partial(PLAIN[case.op.name], **case.options)

    def prepare(tensors: Tensors) -> TimedCall:
        return partial(function, *[tensors[name] for name in names])

    return Contender("eager", case.op.output_names, prepare, _returned(case.op.output_names))


def stores_results(function: Callable[..., tuple[Tensor, ...]], inputs: int) -> Callable[..., None]:
    """The function, its results stored in tensors given after the inputs. torch.compile makes no copies of it."""

    def into(*tensors: Tensor) -> None:
        results = function(*tensors[:inputs])
        for target, result in zip(tensors[inputs:], results, strict=False):  # replaced ones come last, without target
            target.copy_(result)

    return into


def compiled_function(case: Case, form: Form) -> Callable[..., Any]:
    """Compiling happens at the first call."""
    plain: Callable[..., Any] = kv_cache_update_masked if form.masked else PLAIN[case.op.name]
    function: Callable[..., Any] = partial(plain, **case.options)
    if form.given:
        function = stores_results(function, len(case.op.inputs))
    return torch.compile(function, fullgraph=True, dynamic=form.dynamic)


def compiled_arguments(case: Case, form: Form) -> list[str]:
    names = [t.name for t in case.op.inputs]
    if form.given:
        names += [t.name for t in case.op.outputs if not (case.in_place and t.name in case.op.replaced)]
    return names


def compiled(case: Case, form: Form, kept: dict[tuple[object, ...], Callable[..., Any]]) -> Contender:
    """`kept` holds the dynamic functions, of which one serves every shape."""
    key = (form, case.op.name, *case.options.items(), *case.dtypes.items())
    function = kept.get(key) or compiled_function(case, form)
    if form.dynamic:
        kept[key] = function
    names = compiled_arguments(case, form)

    def prepare(tensors: Tensors) -> TimedCall:
        return partial(function, *[tensors[name] for name in names])

    outputs = case.op.output_names
    return Contender(form.name, outputs, prepare, _given(outputs) if form.given else _returned(outputs), COMPILED)


# ---- other public kernels; each for the outputs that it has ----


def transformers_autograd(case: Case) -> Contender:
    """Hugging Face's rotary embedding and the backward pass that autograd makes of it. The forward pass is untimed."""
    module = importlib.import_module("transformers.models.llama.modeling_llama")
    rotate = module.apply_rotary_pos_emb

    def prepare(t: Tensors) -> TimedCall:
        inputs = [t[name].detach().requires_grad_() for name in ("q", "k", "cos", "sin")]
        with torch.enable_grad():
            turned = rotate(*inputs)
        return partial(torch.autograd.grad, turned, inputs, (t["grad_q_embed"], t["grad_k_embed"]))

    return Contender("transformers", case.op.output_names, prepare, _returned(case.op.output_names),
                     note="apply_rotary_pos_emb, backward by autograd")  # fmt: skip


def liger(case: Case) -> Contender:
    """The Triton kernel of liger_kernel's backward pass. It turns the gradients where they lie, after a copy where
    their layout is not [B, S, H, D]; it has no gradients of the tables."""
    backward = importlib.import_module("liger_kernel.ops.rope").rope_backward
    outputs = ("grad_q", "grad_k")
    if 1 in (case.dims["seq_len"], case.dims["num_heads"], case.dims["num_kv_heads"]):
        raise ImportError("it would overwrite the gradients, whose layout then is its own")

    def prepare(t: Tensors) -> TimedCall:
        return partial(backward, t["grad_q_embed"], t["grad_k_embed"], t["cos"], t["sin"])

    return Contender("liger_kernel", outputs, prepare, lambda result, _t: dict(zip(outputs, result[:2], strict=True)),
                     note="no grad_cos, grad_sin")  # fmt: skip


def flash_attn(case: Case) -> Contender:
    """The Triton kernel of flash_attn's rotary layer: one table for every batch, so only cases of one batch."""
    apply = importlib.import_module("flash_attn.ops.triton.rotary").apply_rotary
    outputs = ("grad_q", "grad_k")
    if case.dims["batch_size"] != 1:
        raise ImportError("its tables cannot differ between batches")

    def prepare(t: Tensors) -> TimedCall:
        half = t["cos"].shape[-1] // 2
        cos, sin = t["cos"][0, :, :half].contiguous(), t["sin"][0, :, :half].contiguous()
        gradients = [t[name].transpose(1, 2) for name in ("grad_q_embed", "grad_k_embed")]
        return lambda: [apply(g, cos, sin, conjugate=True) for g in gradients]

    def collect(result: Any, _tensors: Tensors) -> Tensors:
        return {name: value.transpose(1, 2) for name, value in zip(outputs, result, strict=True)}

    return Contender("flash_attn", outputs, prepare, collect, note="no grad_cos, grad_sin; one batch")


def apex(case: Case) -> Contender:
    """apex's fused CUDA kernel: layout [S, B, H, D], one table for every batch."""
    kernels = importlib.import_module("fused_rotary_positional_embedding")
    outputs = ("grad_q", "grad_k")
    if case.dims["batch_size"] != 1:
        raise ImportError("its tables cannot differ between batches")

    def prepare(t: Tensors) -> TimedCall:
        cos, sin = (t[name].permute(1, 0, 2).unsqueeze(2).contiguous() for name in ("cos", "sin"))
        gradients = [t[name].permute(2, 0, 1, 3) for name in ("grad_q_embed", "grad_k_embed")]
        return lambda: [kernels.backward_cached(g, cos, sin, True) for g in gradients]

    def collect(result: Any, _tensors: Tensors) -> Tensors:
        return {name: value.permute(1, 2, 0, 3) for name, value in zip(outputs, result, strict=True)}

    return Contender("apex", outputs, prepare, collect, note="no grad_cos, grad_sin; one batch")


PUBLIC: dict[str, dict[str, Callable[[Case], Contender]]] = {
    "rope_apply": {
        "transformers": transformers_autograd,
        "liger_kernel": liger,
        "flash_attn": flash_attn,
        "apex": apex,
    }
}
PUBLIC_NAMES = sorted({name for makers in PUBLIC.values() for name in makers})
COMPILES = {"liger_kernel", "flash_attn"}  # Triton kernels
CUDA_ONLY = {"liger_kernel", "flash_attn", "apex"}
