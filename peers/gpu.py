"""What a record says of the GPU."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

QUERY = ("driver_version", "clocks.max.sm", "clocks.max.memory", "clocks.sm", "clocks.memory", "temperature.gpu",
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


def facts(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    answers = _ask(device.index or 0)

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
        "datasheet_gb_per_s": None,
        "sm_clock_max_mhz": mhz("clocks.max.sm"),
        "memory_clock_max_mhz": mhz("clocks.max.memory"),
        "sm_clock_mhz": mhz("clocks.sm"),
        "memory_clock_mhz": mhz("clocks.memory"),
        "temperature_c": real("temperature.gpu"),
        "power_limit_w": real("power.limit"),
        "power_w": real("power.draw"),
        "images": {},
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
