"""The operators as Python sees them, read from the library's own contracts: nothing else lists a name."""

from __future__ import annotations

import numbers

from ropegrad import _core


class Contract:
    """One operator. Tensors, dims and params are in the order in which ``_core.Context.call`` takes them."""

    def __init__(self, spec: _core.Operator) -> None:
        self.spec = spec
        self.index = spec["index"]
        # rg_rope_2d_forward is rope_2d here, rg_rope_2d_backward is rope_2d_backward.
        self.name = spec["function"][len("rg_") :]
        if spec["direction"] == "forward":
            self.name = self.name[: -len("_forward")]
        self.tensors = spec["tensors"]
        self.params = spec["params"]
        self.place = {tensor["name"]: t for t, tensor in enumerate(self.tensors)}
        self.inputs = [t for t, tensor in enumerate(self.tensors) if tensor["role"] == "input"]
        self.outputs = [t for t, tensor in enumerate(self.tensors) if tensor["role"] == "output"]

    def default(self, param: _core.Param) -> object:
        """What an option is where nobody says: the library's own zero, or a factor of 1."""
        if param["kind"] == "enum":
            return param["values"][0]
        if param["kind"] == "bool":
            return False
        return param["suggested"] if param["kind"] == "double" else 0

    def number(self, param: _core.Param, value: object) -> _core.Number:
        """An option as the library takes it."""
        if param["kind"] == "enum":
            if value not in param["values"]:
                expected = " or ".join(repr(name) for name in param["values"])
                raise ValueError(f"{self.name}: {param['name']}: expected {expected}, got {value!r}")
            return param["values"].index(str(value))
        if param["kind"] == "double" and isinstance(value, numbers.Real):  # NumPy's numbers too
            return float(value)
        if param["kind"] != "double" and isinstance(value, (int, numbers.Integral)):
            return int(value)
        raise TypeError(f"{self.name}: {param['name']}: expected {param['kind']}, got {type(value).__name__}")

    def shape_text(self, t: int) -> str:
        """As the headers write it: [B or 1, S, R]."""
        tensor = self.tensors[t]
        sizes = []
        for dim, divisor in tensor["axes"]:
            symbol = str(divisor) if dim < 0 else self.spec["dims"][dim]["symbol"]
            sizes.append(f"{symbol}/{divisor}" if dim >= 0 and divisor > 1 else symbol)
        if tensor["broadcast_first"]:
            sizes[0] += " or 1"
        return f"[{', '.join(sizes)}]"


CONTRACTS: dict[str, Contract] = {contract.name: contract for contract in map(Contract, _core.operators())}
