"""How an operator of ropegrad becomes one of PyTorch: `Operator` registers it under `torch.ops.ropegrad`.

There are two ways to the kernel. Through PyTorch's dispatcher, where tracing, compiling, tensor subclasses, modes and
transforms see the operator and its fake implementation; and straight, when nobody of these looks on, which takes half
the time. Both run the same kernel and the same autograd function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

LIBRARY = torch.library.Library("ropegrad", "DEF")

# The strides of results are made from those of the arguments, so those must be what the fake implementation saw.
_TAGS = [
    tag
    for name in ("needs_fixed_stride_order", "pt2_compliant_tag")
    if (tag := getattr(torch.Tag, name, None)) is not None
]
_PLAIN = frozenset((Tensor, torch.nn.Parameter, type(None)))


def is_watched(tensors: Sequence[Tensor | None]) -> bool:
    """Does anything but the kernel have to know of a call on these tensors?"""
    return (
        not _PLAIN.issuperset(map(type, tensors))
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._are_functorch_transforms_active()
        or torch._C._get_tracing_state() is not None
    )


def needs_grad(arguments: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any([isinstance(a, Tensor) and a.requires_grad for a in arguments])


def saved(*tensors: Tensor | None) -> list[Tensor | None]:
    """What autograd can keep: of a tensor made in inference mode, such as a table, a copy."""
    return [t.clone() if t is not None and t.is_inference() else t for t in tensors]


class Function(torch.autograd.Function):
    """An autograd function whose first argument is what runs the operator: its kernel, or the dispatcher's entry."""

    @classmethod
    def apply_straight(cls, *arguments: Any) -> Any:
        """`apply`, without what only functorch's transforms need."""
        return super(torch.autograd.Function, cls).apply(*arguments)  # type: ignore[misc]


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
        torch.library.register_fake(f"ropegrad::{name}", fake, lib=LIBRARY)
        self.name = name
        self.tensors = tensors
        self.kernel = kernel
        self.function = function
        self.overload = getattr(torch.ops.ropegrad, name).default
        self.is_list = str(self.overload._schema.returns[0].type) == "List[Tensor]" if self.overload._schema.returns else False

    def __call__(self, *arguments: Any) -> Any:
        if torch.compiler.is_compiling() or is_watched(arguments[: self.tensors]):
            return self.overload(*arguments)
        if needs_grad(arguments[: self.tensors]):
            return self._differentiable().apply_straight(self.kernel, *arguments)
        return self.kernel(*arguments)

    def _differentiable(self) -> type[Function]:
        if self.function is None:
            raise RuntimeError(f"ropegrad::{self.name} has no gradient: call it without gradients, or out of place")
        return self.function

    def _autograd(self, *arguments: Any) -> Any:
        """What the dispatcher calls first. Within an autograd function's forward, gradients are off."""
        if needs_grad(arguments):
            results = self._differentiable().apply(self.overload, *arguments)
            return list(results) if self.is_list else results
        with torch._C._AutoDispatchBelowAutograd():
            return self.overload(*arguments)
