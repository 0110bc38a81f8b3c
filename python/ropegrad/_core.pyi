from collections.abc import Callable
from typing import Any, TypedDict

# (data_ptr, dtype, shape, strides): a dtype of DTYPES, strides in elements or None for row-major.
Tensor = tuple[int, int, tuple[int, ...], tuple[int, ...] | None]
Number = int | float

class Dim(TypedDict):
    name: str  # "batch_size"
    symbol: str  # "B"
    multiple_of: int
    kind: str  # "bound": read off the tensors; "derived": from options; "descriptive": no tensor has it

class TensorSpec(TypedDict):
    name: str
    role: str  # "input" or "output"
    rank: int
    axes: tuple[tuple[int, int], ...]  # (dim, divisor): dims[dim] / divisor elements; (-1, n): exactly n
    broadcast_first: bool  # axis 0 may also have size 1
    in_place_of: int  # outputs: the input that it may be with the in_place option; -1: none
    dtype_group: int  # tensors of one group share their dtype
    dtypes: str  # which: "payload", "table", "angle", "int64", "index" or "position"
    needed_for: int  # inputs: bit t is set where output number t reads it

class Param(TypedDict):
    name: str
    kind: str  # "double", "int64", "bool" or "enum"
    values: tuple[str, ...]  # of an enum
    suggested: float  # of a double: what it is where nobody says

class Operator(TypedDict):
    index: int
    name: str  # "rope_2d_forward"; "rope_2d" is the backward pass
    function: str  # "rg_rope_2d_forward"
    direction: str  # "forward" or "backward"
    title: str
    formula: str
    in_place_param: int  # number of the in_place option; -1: none
    dims: tuple[Dim, ...]
    tensors: tuple[TensorSpec, ...]
    params: tuple[Param, ...]

class Context:
    def __new__(cls, device_type: int, device_id: int, threads: int = 0, variant: str | None = None) -> Context: ...
    def call(
        self, op_index: int, tensors: tuple[object, ...], params: tuple[Number, ...], form: int = 0, /
    ) -> None: ...
    def sizes(
        self, op_index: int, tensors: tuple[Tensor | None, ...], params: tuple[Number, ...], form: int = 0, /
    ) -> tuple[int, ...]: ...
    def read_tensors_by(self, capsule: object, /) -> None: ...
    def set_stream(self, handle: int, /) -> None: ...
    def check(self) -> None: ...
    @property
    def variant(self) -> str: ...

class Eager:
    def __new__(
        cls,
        count: int,
        types: tuple[type, ...],
        watchers: tuple[Callable[[], object], ...],
        level_of: object,
        is_lazy: Callable[..., bool],
        records: Callable[[], bool],
        kernel: Callable[..., object],
        record: Callable[..., object],
        dispatch: Callable[..., object],
    ) -> Eager: ...
    def __call__(self, *arguments: Any) -> Any: ...

CPU: int
CUDA: int
DTYPES: dict[str, int]
VERSION: str

def operators() -> list[Operator]: ...
