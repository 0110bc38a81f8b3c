"""The digest of a file as records state it: XXH3 of 128 bits, what `xxh128sum` prints."""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path


class _Hash128(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


def file_digest(path: Path) -> str | None:
    """None: libxxhash is not installed, so that the digest is not known."""
    found = ctypes.util.find_library("xxhash")
    if found is None:
        return None
    library = ctypes.CDLL(found)
    library.XXH3_128bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    library.XXH3_128bits.restype = _Hash128
    content = path.read_bytes()
    digest = library.XXH3_128bits(content, len(content))
    return f"xxh128:{digest.high:016x}{digest.low:016x}"
