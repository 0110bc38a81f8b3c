"""The ctypes structs are laid out as the C headers say: a C program prints every size and offset.

Usage: layout_test.py CC INCLUDE_FOLDERS (separated by colons). Needs neither torch nor numpy.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from peers import ropegrad_ctypes as binding

STRUCTS: dict[str, type[ctypes.Structure]] = {
    "DLDevice": binding.DLDevice,
    "DLDataType": binding.DLDataType,
    "DLTensor": binding.DLTensor,
    "rg_allocator": binding.Allocator,
    "rg_context_options": binding.ContextOptions,
    **{f"rg_{op}_backward_args": struct for op, struct in binding.ARGS.items()},
}
CONSTANTS = {
    "kDLCPU": binding.CPU,
    "kDLCUDA": binding.CUDA,
    "kDLInt": binding.DTYPE_CODES["int64"][0],
    "kDLFloat": binding.DTYPE_CODES["float32"][0],
    "kDLBfloat": binding.DTYPE_CODES["bfloat16"][0],
    **{f"RG_{key}_{value}".upper().replace("SIN_PAIRING", "SIN"): number
       for key, values in binding.ENUMS.items() for number, value in enumerate(values)},
}  # fmt: skip


def expected() -> dict[str, int]:
    found = dict(CONSTANTS)
    for name, struct in STRUCTS.items():
        found[f"sizeof({name})"] = ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            found[f"offsetof({name}, {field})"] = getattr(struct, field).offset
            found[f"sizeof((({name} *)0)->{field})"] = getattr(struct, field).size
    return found


def in_c(compiler: str, folders: list[str], expressions: list[str]) -> dict[str, int]:
    lines = [f'  printf("%lld\\n", (long long)({e}));' for e in expressions]
    source = "\n".join(["#include <ropegrad/operators.h>", "#include <stddef.h>", "#include <stdio.h>",
                        "int main(void) {", *lines, "  return 0;", "}", ""])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layout.c"
        path.write_text(source, encoding="utf-8")
        program = str(path.with_suffix(""))
        flags = [f"-I{folder}" for folder in folders]
        subprocess.run([compiler, "-std=c11", "-w", *flags, str(path), "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, output.split()), strict=True))


def main(compiler: str, folders: str) -> int:
    ours = expected()
    theirs = in_c(compiler, folders.split(":"), list(ours))
    wrong = [e for e in ours if ours[e] != theirs[e]]
    for e in wrong:
        print(f"{e}: {theirs[e]} in C, {ours[e]} here")
    print(f"{len(ours) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong or not ours else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
