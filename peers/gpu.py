"""What a record says of the GPU."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

from peers.digest import file_digest
from peers.operators import OPERATORS

MEMORY_CLOCK_KHZ, MEMORY_BUS_BITS = 36, 37  # CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, _GLOBAL_MEMORY_BUS_WIDTH

QUERY = ("driver_version", "clocks.max.sm", "clocks.max.memory", "clocks.sm", "clocks.mem", "temperature.gpu",
         "power.limit", "power.draw")  # fmt: skip


def _ask(index: int) -> dict[str, str]:
    """By nvidia-smi, which only reads here; {}: there is none."""
    command = ["nvidia-smi", f"--id={index}", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in answer.strip().splitlines()[0].split(",")]
    return dict(zip(QUERY, values, strict=True)) if len(values) == len(QUERY) else {}


def _driver_cuda_version() -> str:
    """ "13.0"; "": the driver does not say."""
    version = ctypes.c_int()
    try:
        status: int = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return ""
    return f"{version.value // 1000}.{version.value % 1000 // 10}" if status == 0 else ""


def _attribute(index: int, attribute: int) -> int:
    """Of the index-th GPU, as the driver knows it; 0: it does not say."""
    value, handle = ctypes.c_int(), ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(handle), index):
            return 0
        status: int = driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
    except (OSError, AttributeError):
        return 0
    return value.value if status == 0 else 0


def datasheet_gb_per_s(clock_khz: int, bus_bits: int) -> float | None:
    """Two transfers a clock of the whole bus, as `ropegrad bench` reckons."""
    return 2 * clock_khz * 1e3 * (bus_bits / 8) * 1e-9 or None


def images(library: Path) -> dict[str, str]:
    """The digests of the device code that the build embedded: it leaves each operator's beside the library."""
    found = {op: library.resolve().parent / "cuda" / f"rg_{op}_image.fatbin" for op in OPERATORS}
    digests = {op: file_digest(path) for op, path in found.items() if path.exists()}
    return {op: digest.removeprefix("xxh128:") for op, digest in digests.items() if digest}


def facts(device: torch.device, library: Path) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    index = device.index or 0
    answers = _ask(index)

    def real(name: str) -> float | None:
        try:
            return float(answers[name])
        except (KeyError, ValueError):
            return None

    def mhz(name: str) -> int | None:
        value = real(name)
        return int(value) if value else None

    return {
        "name": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "driver_version": answers.get("driver_version"),
        "driver_cuda_version": _driver_cuda_version(),
        "toolkit_version": None,
        "nvcc_flags": None,
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
        "datasheet_gb_per_s": datasheet_gb_per_s(
            _attribute(index, MEMORY_CLOCK_KHZ), _attribute(index, MEMORY_BUS_BITS)
        ),
        "sm_clock_max_mhz": mhz("clocks.max.sm"),
        "memory_clock_max_mhz": mhz("clocks.max.memory"),
        "sm_clock_mhz": mhz("clocks.sm"),
        "memory_clock_mhz": mhz("clocks.mem"),
        "temperature_c": real("temperature.gpu"),
        "power_limit_w": real("power.limit"),
        "power_w": real("power.draw"),
        "images": images(library),
    }


def cupti_version() -> int | None:
    """Of the CUPTI that PyTorch's profiler has loaded; None: it has none, or does not say."""
    found = re.search(r"(/\S*libcupti\S*)", Path("/proc/self/maps").read_text(encoding="utf-8"))
    if not found:
        return None
    version = ctypes.c_uint32()
    try:
        status: int = ctypes.CDLL(found.group(1)).cuptiGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return version.value if status == 0 else None
