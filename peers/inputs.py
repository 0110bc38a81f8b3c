"""The memory of one case: inputs filled once, and every tensor at another place before each call.

All contenders of a case share these tensors, so that they read the same values in the same memory.
"""

from __future__ import annotations

import random
from math import prod

import torch
from torch import Tensor

from peers.cases import Case
from peers.operators import DTYPE_BYTES, TensorSpec

STEP_BYTES = 256  # tensors move by multiples of this ...
RANGE_BYTES = 64 * 1024  # ... below this
SLOTS = 4  # of tensors that cannot start anywhere in random memory
POOL = 1_048_573  # random values; a prime, so that no row length divides it. Longer tensors repeat them
ROPE_BASE = 10_000.0

TORCH_DTYPES = {name: getattr(torch, name) for name in DTYPE_BYTES}


def blank(shape: tuple[int, ...], dtype: str, device: str) -> Tensor:
    """What torch.compile sees of a tensor that will move: its contents do not matter, that it starts within its memory
    does."""
    memory = torch.zeros(prod(shape) + STEP_BYTES, dtype=TORCH_DTYPES[dtype], device=device)
    return tensor_in(memory, STEP_BYTES // 8, shape)


def tensor_in(memory: Tensor, offset: int, shape: tuple[int, ...]) -> Tensor:
    """A dense tensor that starts `offset` elements into the memory, and is no view in autograd's eyes."""
    empty = torch.empty(0, dtype=memory.dtype, device=memory.device)
    return empty.set_(memory.untyped_storage(), offset, shape)  # type: ignore[call-overload, no-any-return]


class Memory:
    """One tensor and the room that it moves in.

    Tensors of independent random values have one room and start anywhere in it: what they then hold is other random
    values. A table whose halves agree, or a list of positions, would not be one any more; it lies at several places.
    """

    def __init__(self, spec: TensorSpec, case: Case, device: torch.device, generator: torch.Generator) -> None:
        self.shape = spec.shape(case.dims)
        self.dtype = TORCH_DTYPES[case.dtypes[spec.name]]
        self.itemsize = DTYPE_BYTES[case.dtypes[spec.name]]
        anywhere = spec.fill in ("normal", "grid")
        bytes_each = prod(self.shape) * self.itemsize
        self.pitch = -(-(bytes_each + RANGE_BYTES) // STEP_BYTES) * STEP_BYTES
        self.slots = 1 if anywhere else SLOTS
        elements = (self.pitch * self.slots + 2 * STEP_BYTES) // self.itemsize
        self.base = torch.empty(elements, dtype=self.dtype, device=device)
        # Bytes to the first address that is a multiple of the step; not 0, for which torch.compile has code of its own.
        self.first = STEP_BYTES - self.base.data_ptr() % STEP_BYTES
        self.shifts: list[int] = []
        if anywhere:
            fill_anywhere(self.base, spec.fill, case, generator)
        else:
            steps = RANGE_BYTES // STEP_BYTES
            picks = torch.randint(0, steps, (SLOTS,), generator=generator).tolist()
            self.shifts = [slot * self.pitch + pick * STEP_BYTES for slot, pick in enumerate(picks)]
            values = structured(spec.fill, self.shape, generator).to(self.dtype)
            for shift in self.shifts:
                self.at(shift).copy_(values)

    def at(self, shift: int) -> Tensor:
        return tensor_in(self.base, (self.first + shift) // self.itemsize, self.shape)

    def draw(self, rng: random.Random) -> Tensor:
        """The tensor at a new place."""
        if self.shifts:
            return self.at(rng.choice(self.shifts))
        return self.at(rng.randrange(RANGE_BYTES // STEP_BYTES) * STEP_BYTES)


def fill_anywhere(target: Tensor, fill: str, case: Case, generator: torch.Generator) -> None:
    count = min(POOL, target.numel())
    if fill == "grid":  # positions of patches: whole numbers below the grid's size
        pool = torch.randint(0, max(1, case.dims.get("max_grid_size", 64)), (count,), generator=generator)
    else:
        pool = torch.randn(count, generator=generator)
    pool = pool.to(target.dtype).to(target.device)
    whole = target.numel() // count * count
    target[:whole].view(-1, count).copy_(pool)
    target[whole:].copy_(pool[: target.numel() - whole])


def structured(fill: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if fill == "arange":
        return torch.arange(shape[0])
    if fill == "inv_freq":
        count = next(size for size in reversed(shape) if size > 1 or len(shape) == 1)
        values = ROPE_BASE ** (-torch.arange(count, dtype=torch.float64) / count)
        return values.view(-1, 1).expand(shape) if len(shape) == 3 else values
    # cos and sin of an angle for each pair, the same in both halves, as in every table made from angles.
    half = torch.rand((*shape[:-1], shape[-1] // 2), generator=generator) * 6.25
    return torch.cat((half, half), dim=-1).cos() if fill == "cos" else torch.cat((half, half), dim=-1).sin()


class Arguments:
    """The tensors of a case."""

    def __init__(self, case: Case, device: torch.device, seed: int) -> None:
        self.case = case
        self.rng = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        replaced = case.op.replaced if case.in_place else {}
        owned = [spec for spec in case.op.tensors if spec.name not in replaced]
        self.memory = {spec.name: Memory(spec, case, device, generator) for spec in owned}
        self.replaced = dict(replaced)
        # What an in-place call has set to zero is written again before the next one.
        rows = [s for s in case.op.outputs if s.name in ("grad_key_states", "grad_value_states")] if replaced else []
        self.rows = [Memory(spec, case, device, generator).at(0) for spec in rows]

    def move(self) -> dict[str, Tensor]:
        """Every tensor at a new place, by name."""
        tensors = {name: memory.draw(self.rng) for name, memory in self.memory.items()}
        for output, source in self.replaced.items():
            tensors[output] = tensors[source]
        self.restore(tensors)
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """cache_position is 0, 1, ...: the named rows are the first ones."""
        for source, rows in zip(self.replaced.values(), self.rows, strict=True):
            tensors[source][:, :, : rows.shape[2]].copy_(rows)
