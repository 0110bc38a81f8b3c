"""What ropegrad raises. Every exception is an :class:`Error` and, beside it, the built-in one that fits.

The text is the library's: it names the tensor, the dimension, what was expected and what was given. ``status`` is the
library's code; its tens say which kind of error it is.
"""

from __future__ import annotations


class Error(Exception):
    """A call that the library refused or could not finish."""

    status: int

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[Error], tuple[int, str]]:
        return type(self), (self.status, str(self))


class ArgumentError(Error, ValueError):
    """An argument that the operator does not take; nothing was written (10 to 19)."""


class UnsupportedError(Error, NotImplementedError):
    """This build or this machine cannot do it (30 to 39)."""


class OutOfMemoryError(Error, MemoryError):
    """Memory could not be allocated (50 to 59)."""


class DeviceError(Error, RuntimeError):
    """The CUDA driver reported an error (70 to 79)."""


class InternalError(Error, RuntimeError):
    """A defect in ropegrad: please report it."""


_BY_TENS: dict[int, type[Error]] = {1: ArgumentError, 3: UnsupportedError, 5: OutOfMemoryError, 7: DeviceError}


def error_of(status: int, message: str) -> Error:
    """The exception for a status of the library."""
    return _BY_TENS.get(status // 10, InternalError)(status, message)
