"""ropegrad through ctypes: the structs of its headers, a context, a call. Needs no torch.

tests/layout_test.py holds every struct against the C headers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path

from peers.cases import Lacking
from peers.operators import OPERATORS

CPU, CUDA = 1, 2  # kDLCPU, kDLCUDA
DTYPE_CODES = {  # kDLInt, kDLFloat, kDLBfloat, and the bits
    "int32": (0, 32),
    "int64": (0, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
}
ENUMS = {
    "style": ("rotate_half", "interleaved"),
    "sin_pairing": ("adjoint", "same_half"),
    "rounding": ("once", "eager"),
}


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int), ("device_id", ctypes.c_int)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Allocator(ctypes.Structure):
    _fields_ = [("allocate", ctypes.c_void_p), ("release", ctypes.c_void_p), ("user", ctypes.c_void_p)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("variant", ctypes.c_char_p), ("allocator", Allocator)]


def _args_struct(name: str, *fields: tuple[str, type] | str) -> type[ctypes.Structure]:
    """A field that is a name alone is a tensor."""
    tensor = ctypes.POINTER(DLTensor)
    pairs = [(field, tensor) if isinstance(field, str) else field for field in fields]
    return type(name, (ctypes.Structure,), {"_fields_": pairs})


# rg_<operator>_backward_args, field for field.
ARGS: dict[str, type[ctypes.Structure]] = {
    "rotary_embedding": _args_struct(
        "RotaryEmbeddingArgs",
        "grad_cos", "grad_sin", "emb", "inv_freq_expanded",
        ("attention_scaling", ctypes.c_double),
        "grad_position_ids",
    ),
    "rope_2d": _args_struct("Rope2dArgs", "grad_cos", "grad_sin", "idx_theta", "grad_idx_theta"),
    "vision_rotary": _args_struct(
        "VisionRotaryArgs", "grad_cos", "grad_sin", "emb", "pos_ids", "inv_freq", "grad_inv_freq"
    ),
    "rope_apply": _args_struct(
        "RopeApplyArgs",
        "grad_q_embed", "grad_k_embed", "q", "k", "cos", "sin",
        "grad_q", "grad_k", "grad_cos", "grad_sin",
        ("rotary_dim", ctypes.c_int64), ("style", ctypes.c_int), ("sin_pairing", ctypes.c_int),
    ),
    "kv_cache_update": _args_struct(
        "KvCacheUpdateArgs",
        "grad_key_cache", "grad_value_cache", "key_states", "cos", "sin", "cache_position",
        ("in_place", ctypes.c_bool), ("rounding", ctypes.c_int), ("style", ctypes.c_int),
        ("rotary_dim", ctypes.c_int64),
        "grad_key_states", "grad_value_states", "grad_cos", "grad_sin",
        "grad_key_cache_input", "grad_value_cache_input",
    ),
}  # fmt: skip


class RopegradError(Exception):
    """A call that returned another status than RG_OK."""


class Library:
    """libropegrad.so."""

    def __init__(self, path: Path) -> None:
        try:
            self.c = ctypes.CDLL(str(path.resolve()))
        except OSError as error:
            raise Lacking(f"--library: cannot load '{path}' ({error}); `make build` builds it") from error
        context = ctypes.c_void_p
        self._declare("rg_version", ctypes.c_char_p)
        self._declare("rg_status_string", ctypes.c_char_p, ctypes.c_int)
        self._declare("rg_last_error", ctypes.c_char_p, context)
        self._declare("rg_context_create", ctypes.c_int, ctypes.POINTER(context), DLDevice,
                      ctypes.POINTER(ContextOptions))  # fmt: skip
        self._declare("rg_context_destroy", None, context)
        self._declare("rg_context_set_stream", ctypes.c_int, context, ctypes.c_void_p)
        self._declare("rg_context_check", ctypes.c_int, context)
        self._declare("rg_device_status", ctypes.c_int, DLDevice, ctypes.c_char_p, ctypes.c_size_t)
        for op in OPERATORS:
            self._declare(f"rg_{op}_backward", ctypes.c_int, context, ctypes.POINTER(ARGS[op]))

    def _declare(self, name: str, result: type | None, *arguments: type) -> None:
        function = getattr(self.c, name)
        function.restype = result
        function.argtypes = arguments

    def version(self) -> str:
        return str(self.c.rg_version().decode())

    def status_text(self, status: int) -> str:
        return str(self.c.rg_status_string(status).decode())

    def why_unusable(self, device: DLDevice) -> str:
        """"": the device can be used."""
        why = ctypes.create_string_buffer(512)
        status = self.c.rg_device_status(device, why, len(why))
        return "" if status == 0 else why.value.decode() or self.status_text(status)

    def runs(self, device: DLDevice, variant: str) -> bool:
        try:
            Context(self, device, 1, variant).close()
        except Lacking:
            return False
        return True


class Context:
    """An rg_context."""

    def __init__(self, library: Library, device: DLDevice, threads: int = 0, variant: str | None = None) -> None:
        self.library = library
        self.device = device
        self.handle = ctypes.c_void_p()
        options = ContextOptions(threads=threads, variant=None if variant is None else variant.encode())
        status = library.c.rg_context_create(ctypes.byref(self.handle), device, ctypes.byref(options))
        if status != 0:
            why = library.why_unusable(device) or library.status_text(status)
            raise Lacking(f"ropegrad: no context{'' if variant is None else ' for ' + variant}: {why}")

    def set_stream(self, stream: int) -> None:
        self.require(self.library.c.rg_context_set_stream(self.handle, stream or None))

    def check(self) -> None:
        self.require(self.library.c.rg_context_check(self.handle))

    def require(self, status: int) -> None:
        if status != 0:
            detail = self.library.c.rg_last_error(self.handle).decode()
            raise RopegradError(f"{self.library.status_text(status)}: {detail}")

    def close(self) -> None:
        if self.handle:
            self.library.c.rg_context_destroy(self.handle)
            self.handle = ctypes.c_void_p()


class Call:
    """One operator's call on dense tensors. The tensors' places may change between runs, nothing else."""

    def __init__(
        self,
        context: Context,
        op: str,
        shapes: Mapping[str, tuple[int, ...]],
        dtypes: Mapping[str, str],
        options: Mapping[str, object],
    ) -> None:
        """`shapes` names the tensors that are given; an output that it does not name is not wanted."""
        self.context = context
        self.args = ARGS[op]()
        self.tensors: dict[str, DLTensor] = {}
        self._shapes = {name: (ctypes.c_int64 * len(shape))(*shape) for name, shape in shapes.items()}
        for name, shape in self._shapes.items():
            code, bits = DTYPE_CODES[dtypes[name]]
            tensor = DLTensor(device=context.device, ndim=len(shape), dtype=DLDataType(code, bits, 1))
            tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
            self.tensors[name] = tensor
            setattr(self.args, name, ctypes.pointer(tensor))
        for name, value in options.items():
            setattr(self.args, name, ENUMS[name].index(str(value)) if name in ENUMS else value)
        self._function: Callable[..., int] = getattr(context.library.c, f"rg_{op}_backward")
        self._reference = ctypes.byref(self.args)

    def place(self, addresses: Mapping[str, int]) -> None:
        """Where the tensors' first elements are."""
        for name, tensor in self.tensors.items():
            tensor.data = addresses[name]

    def run(self) -> None:
        status = self._function(self.context.handle, self._reference)
        if status != 0:
            self.context.require(status)
