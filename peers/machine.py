"""What a record says of the machine, the library's build and this run: the `environment` of the record's schema."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

CPUS = Path("/sys/devices/system/cpu")
UNKNOWN_CACHE_BYTES = 64 << 20
OPENMP_SETTINGS = ("OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "OMP_DYNAMIC",
                   "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT")  # fmt: skip


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _cpuinfo(name: str) -> str:
    found = re.search(rf"^{name}\s*:\s*(.*)$", read(Path("/proc/cpuinfo")), re.MULTILINE)
    return found.group(1).strip() if found else ""


def cpu_list(text: str) -> list[int]:
    """ "0-2,5" -> [0, 1, 2, 5]."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def caches() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for index in sorted((CPUS / "cpu0" / "cache").glob("index*")):
        size = read(index / "size")
        if not size.endswith("K"):
            continue
        sharing = [cpu_list(read(CPUS / f"cpu{cpu}" / "cache" / index.name / "shared_cpu_list")) for cpu in online()]
        instances = len({cpus[0] for cpus in sharing if cpus})
        found.append({"level": int(read(index / "level") or 0), "type": read(index / "type") or None,
                      "bytes": int(size[:-1]) * 1024, "instances": instances})  # fmt: skip
    return found


def last_level_cache_bytes() -> int:
    """Of all last-level caches together."""
    known = caches()
    if not known:
        return UNKNOWN_CACHE_BYTES
    last = max(known, key=lambda cache: cache["level"])
    return int(last["bytes"] * last["instances"]) or UNKNOWN_CACHE_BYTES


def online() -> list[int]:
    return cpu_list(read(CPUS / "online")) or list(range(os.cpu_count() or 1))


def cpus_for(threads: int, allowed: Sequence[int]) -> list[int]:
    """As many of the allowed CPUs, each on a core of its own as far as there are cores."""
    cores: dict[str, int] = {}
    order: list[tuple[int, int]] = []
    for cpu in sorted(allowed):
        core = read(CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list") or str(cpu)
        order.append((cores.setdefault(core, 0), cpu))
        cores[core] += 1
    return [cpu for _, cpu in sorted(order)][:threads]


def pin(cpus: Sequence[int]) -> None:
    """Every thread of this process, and those still to come, may run on these CPUs alone."""
    for task in Path("/proc/self/task").iterdir():
        try:
            os.sched_setaffinity(int(task.name), cpus)
        except (ProcessLookupError, OSError):
            continue  # a thread that has just ended


def build_info(library: Path) -> dict[str, Any]:
    """From the header that the build writes; beside the library, or in its folder's build_info/."""
    text = ""
    for folder in (library.resolve().parent, library.resolve().parent / "build_info"):
        text = text or read(folder / "ropegrad_build_info.h")

    def value(name: str) -> str:
        found = re.search(rf'#define ROPEGRAD_BUILD_{name} "?([^"\n]*)"?', text)
        return found.group(1) if found else ""

    commit = value("COMMIT")
    return {"commit": commit or None, "dirty": value("DIRTY") == "1" if commit else None,
            "compiler": value("COMPILER"), "flags": value("FLAGS")}  # fmt: skip


def environment(library: Path, version: str, argv: list[str], threads: int) -> dict[str, Any]:
    frequency = _cpuinfo("cpu MHz")
    return {
        "version": version,
        **build_info(library),
        "utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "argv": argv,
        "cpu_model": _cpuinfo("model name") or None,
        "cpus_online": len(online()),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "threads": threads,
        "openmp": {name: os.environ.get(name) for name in OPENMP_SETTINGS},
        "caches": caches(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "governor": read(CPUS / "cpu0" / "cpufreq" / "scaling_governor") or None,
        "frequency_mhz": float(frequency) if frequency else None,
        "transparent_hugepages": read(Path("/sys/kernel/mm/transparent_hugepage/enabled")) or None,
        "load_at_start": os.getloadavg()[0],
    }
