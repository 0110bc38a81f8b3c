"""How an operator of ropegrad becomes one of PyTorch: `Operator` registers it under `torch.ops.ropegrad`.

There are two ways to the kernel. Through PyTorch's dispatcher, where tracing, compiling, tensor subclasses, modes and
transforms see the operator and its fake implementation; and straight, when nobody of these looks on, which takes half
the time. Both run the same kernel and the same autograd function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ropegrad import _core

LIBRARY = torch.library.Library("ropegrad", "DEF")

# The strides of results are made from those of the arguments, so those must be what the fake implementation saw.
_TAGS = [
    tag
    for name in ("needs_fixed_stride_order", "pt2_compliant_tag")
    if (tag := getattr(torch.Tag, name, None)) is not None
]
_PLAIN = (Tensor, torch.nn.Parameter)

is_compiling = torch.compiler.is_compiling
# What may have to know of a call beside the kernel.
_WATCHERS = (
    torch._C._len_torch_dispatch_stack,
    torch._C._len_torch_function_stack,  # tracing before dispatch is one of these, too
    torch._C._are_functorch_transforms_active,
    torch._C._is_tracing,
    torch._C._autograd._profiler_enabled,
)
_is_grad_enabled = torch.is_grad_enabled
_creation_meta = torch._C._autograd._get_creation_meta
_VIEW_OF_ITS_OWN = torch._C._autograd.CreationMeta.DEFAULT


def saved(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """What autograd can keep: of a tensor made in inference mode, such as a table, a copy."""
    for tensor in tensors:
        if tensor is not None and tensor.is_inference():
            return tuple(t.clone() if t is not None and t.is_inference() else t for t in tensors)
    return tensors


def check_in_place(*tensors: Tensor) -> None:
    """Refuses what autograd would refuse too, but only when the values have been overwritten."""
    for tensor in tensors:
        base = tensor._base if tensor._is_view() else tensor
        if tensor.requires_grad and (tensor.is_leaf or base is None or base.is_leaf):
            raise RuntimeError("in_place: a leaf that requires a gradient, or a view of one, cannot be overwritten")
        if tensor._is_view() and _creation_meta(tensor) != _VIEW_OF_ITS_OWN:
            raise RuntimeError(
                "in_place: autograd lets nobody overwrite a view that was made beside others, as by split, or in "
                "another mode: take a slice"
            )


def straight(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """function.apply, without what only functorch's transforms need."""
    apply: Callable[..., Any] = super(torch.autograd.Function, function).apply  # type: ignore[misc]
    return apply


class Function(torch.autograd.Function):
    """An autograd function whose first argument is what runs the operator: its kernel, or the dispatcher's entry."""


class Operator:
    """Calling it runs the operator, differentiably where it has a `function`.

    The first `tensors` arguments of the schema are tensors. `kernel` runs the library on real tensors, `fake` makes
    results of the same shapes and strides without values.
    """

    def __init__(
        self,
        schema: str,
        tensors: int,
        kernel: Callable[..., Any],
        fake: Callable[..., Any],
        function: type[Function] | None = None,
    ) -> None:
        name = schema.partition("(")[0]
        LIBRARY.define(schema, tags=_TAGS)
        for key in ("CPU", "CUDA"):
            LIBRARY.impl(name, kernel, key)
        LIBRARY.impl(name, self._autograd, "Autograd")
        torch.library.register_fake(f"ropegrad::{name}", _on_one_device(fake), lib=LIBRARY)
        self.name = name
        self.tensors = tensors
        self.overload = getattr(torch.ops.ropegrad, name).default
        self.returns_list = "-> Tensor[]" in schema
        self.function = function or _no_gradient(name)
        self.eager = self.eager_by(kernel)

    def eager_by(self, kernel: Callable[..., Any]) -> _core.Eager:
        """The operator where nothing is traced or compiled."""
        return _core.Eager(
            self.tensors, _PLAIN, _WATCHERS, forward_ad, Tensor.is_neg, torch.is_grad_enabled, kernel,
            straight(self.function), self.overload,
        )  # fmt: skip

    def __call__(self, *arguments: Any) -> Any:
        return self.overload(*arguments) if is_compiling() else self.eager(*arguments)

    def _autograd(self, *arguments: Any) -> Any:
        """What the dispatcher calls first. Within an autograd function's forward, gradients are off."""
        if forward_ad._current_level >= 0:
            self._refuse_tangents(arguments)
        if _is_grad_enabled() and any([isinstance(a, Tensor) and a.requires_grad for a in arguments]):
            results = self.function.apply(self.overload, *arguments)
            return list(results) if self.returns_list else results
        with torch._C._AutoDispatchBelowAutograd():
            return self.overload(*arguments)

    def _refuse_tangents(self, arguments: tuple[Any, ...]) -> None:
        """Rather than to lose them."""
        for tensor in arguments[: self.tensors]:
            if isinstance(tensor, Tensor) and forward_ad.unpack_dual(tensor).tangent is not None:
                raise NotImplementedError(f"ropegrad::{self.name} has no derivative in forward mode")


def _on_one_device(fake: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch takes the fake implementation as soon as one tensor is on the meta device; but where others have values,
    so would have results that nobody writes."""

    def checked(*arguments: Any) -> Any:
        devices = sorted({str(a.device) for a in arguments if isinstance(a, Tensor)})
        if len(devices) > 1:
            raise ValueError(f"expected all tensors on one device, got tensors on {' and '.join(devices)}")
        return fake(*arguments)

    return checked


def _no_gradient(name: str) -> type[Function]:
    class NoGradient(Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            raise RuntimeError(f"ropegrad::{name} has no gradient: call it on tensors that require none")

    return NoGradient
