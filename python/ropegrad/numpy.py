"""The operators on NumPy arrays, on the CPU: NAME is the forward pass, NAME_backward returns its gradients.

Arguments are keywords, with the names of the C library. Arrays are read and written where they are, whatever their
strides (0 and negative ones on inputs); nothing is copied. Dtypes are float32, float16 and float64 as NumPy has them,
and bfloat16 of the package ml_dtypes; if one floating array is float64, all are.

A function returns a named tuple of its outputs, in which those that were not wanted are None. Each takes, besides its
own tensors and options,

``wanted``
    names of the outputs to compute. Without it and without ``out``: all whose inputs are given, so that
    ``rope_apply(q=q, cos=cos, sin=sin)`` turns q alone.
``out``
    arrays to write outputs to, by name; they are wanted too. Other outputs are new arrays or, with ``in_place=True``,
    the inputs that they replace.
``dtype``
    where there are outputs whose dtype no input decides: that dtype. Otherwise it is float64 if an array of the call
    is, else float32.

Where there is an option ``rotary_dim``, 0 rotates the whole of head_dim.

Exceptions: ``TypeError`` for what is no array, or of a dtype that ropegrad does not know; ``ValueError`` for names that
the operator does not have; and all of ``ropegrad.errors``, most of them ``ArgumentError``, a ``ValueError``, with a
text that names tensor, dimension, what was expected and what was given. Nothing is written then.

Each thread may call; a call uses all of the processor's cores that the process may use, and lets go of the GIL.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable

from ropegrad._contract import CONTRACTS, Contract
from ropegrad._describe import docstring, has_free_dtype, result_name
from ropegrad._numpy_call import Call


def _signature(contract: Contract) -> inspect.Signature:
    defaults: dict[str, object] = {contract.tensors[t]["name"]: None for t in contract.inputs}
    defaults.update((param["name"], contract.default(param)) for param in contract.params)
    defaults.update(wanted=None, out=None)
    if has_free_dtype(contract):
        defaults["dtype"] = None
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, keyword, default=value) for name, value in defaults.items()])


def _function(contract: Contract) -> Callable[..., object]:
    signature = _signature(contract)
    result = namedtuple(  # type: ignore[misc]
        result_name(contract), [contract.tensors[t]["name"] for t in contract.outputs], module=__name__
    )
    globals()[result.__name__] = result

    def function(**keywords: object) -> object:
        try:
            given = signature.bind(**keywords).arguments
        except TypeError as error:  # it does not say of which function
            raise TypeError(f"{contract.name}() {error}") from None
        call = Call(contract, given)
        call.give_outputs(given.get("out"), given.get("wanted"), given.get("dtype"))
        return result(*call.run())

    function.__name__ = function.__qualname__ = contract.name
    function.__doc__ = docstring(contract)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


__all__ = list(CONTRACTS)
globals().update((name, _function(contract)) for name, contract in CONTRACTS.items())
