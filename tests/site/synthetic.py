"""Records that nobody measured, for tests: right in every field, or wrong where a test asks for it."""

from __future__ import annotations

import json
import pathlib
import random
import statistics
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from peers.digest import file_digest  # noqa: E402

SUITE_FILE = ROOT / "suites/sol-execbench-rope.json"
FORWARD_SUITE_FILE = ROOT / "suites/sol-execbench-rope-forward.json"
COMMIT = "1234567890abcdef1234567890abcdef12345678"
REPETITIONS = 3


def suite_of(path: pathlib.Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def geomean(values: list[float]) -> float:
    return statistics.geometric_mean(values)


def series(rng: random.Random, us: float, calls: int) -> dict[str, Any]:
    samples = [round(us * (1 + abs(rng.gauss(0, 0.01))), 6) for _ in range(REPETITIONS * calls)]
    medians = [statistics.median(samples[r * calls : (r + 1) * calls]) for r in range(REPETITIONS)]
    mean = sum(medians) / REPETITIONS
    return {"us": mean, "medians_us": medians, "spread": (max(medians) - min(medians)) / mean, "samples_us": samples}


def case(rng: random.Random, item: dict[str, Any], gpu: bool, ratio: float, calls: int, in_place: bool) -> dict[str, Any]:
    size = 4
    for extent in item["dims"].values():
        size *= extent
    bytes_per_us = 4.1e6 if gpu else 2.8e4
    floor = series(rng, 1.0 + size / bytes_per_us, calls)
    latency = series(rng, floor["us"] * ratio * (1 + 0.1 * rng.random()), calls)
    return {
        "op": item["op"],
        "name": item["name"],
        "device": "cuda:0" if gpu else "cpu",
        "variant": "cuda.generic" if gpu else "cpu.avx512",
        "in_place": in_place,
        "dims": item["dims"],
        "latency_us": latency["us"],
        "floor_us": floor["us"],
        "ratio": latency["us"] / floor["us"],
        "roofline_us": size / 4.8e6 if gpu else None,
        "below_roofline": False if gpu else None,
        "read_bytes": size * 2 // 3,
        "write_bytes": size - size * 2 // 3,
        "flops": size,
        "warmup_calls": 10,
        "timed_calls": calls,
        "medians_us": latency["medians_us"],
        "spread": latency["spread"],
        "samples_us": latency["samples_us"],
        "sm_clocks_mhz": None,
        "floor": {
            "copy": "avx512 stream x2",
            "copies_tried": 12,
            "medians_us": floor["medians_us"],
            "spread": floor["spread"],
            "samples_us": floor["samples_us"],
        },
        "verify": {
            "status": "pass",
            "allowance_used": round(rng.uniform(0.05, 0.6), 4),
            "worst": None,
            "reason": "",
        },
    }


def operators() -> set[str]:
    return {case["op"] for file in (SUITE_FILE, FORWARD_SUITE_FILE) for case in suite_of(file)["cases"]}


def gpu_json(name: str) -> dict[str, Any]:
    return {
        "name": name, "compute_capability": "9.0", "driver_version": "580.159.04", "driver_cuda_version": "13.0",
        "toolkit_version": "13.0.88", "nvcc_flags": "-O3", "multiprocessors": 132, "l2_bytes": 62914560,
        "memory_bytes": 150000000000, "datasheet_gb_per_s": 4800.0, "sm_clock_max_mhz": 1980,
        "memory_clock_max_mhz": 3201, "sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "temperature_c": 41.0,
        "power_limit_w": 700.0, "power_w": 300.0,
        "images": {op: f"{n:032x}" for n, op in enumerate(sorted(operators()))},
    }  # fmt: skip


def environment(gpu: str | None, cpu: str, utc: str, commit: str | None, argv: list[str]) -> dict[str, Any]:
    return {
        "version": "0.1.0", "commit": commit, "dirty": False if commit else None, "compiler": "GNU 12.2.0",
        "flags": "-O3 -DNDEBUG", "utc": utc, "argv": argv, "cpu_model": cpu, "cpus_online": 2, "cpus_allowed": 2,
        "threads": 2, "openmp": {"OMP_NUM_THREADS": None},
        "caches": [{"level": 3, "type": "Unified", "bytes": 33554432, "instances": 1}], "kernel": "Linux 6.1.0 x86_64",
        "memory_bytes": 25000000000, "governor": None, "frequency_mhz": 3700.0, "transparent_hugepages": "madvise",
        "load_at_start": 0.1, "gpu": gpu_json(gpu) if gpu else None,
    }  # fmt: skip


def protocol(gpu: bool, calls: int) -> dict[str, Any]:
    return {
        "name": "faithful", "method": "cupti" if gpu else "monotonic_clock",
        "method_library_version": 130000 if gpu else None, "warm": False, "flush_bytes": 125829120 if gpu else 67108864,
        "offset_step_bytes": 256, "offset_range_bytes": 65536, "warmup_calls": 10, "timed_calls": calls,
        "repetitions": REPETITIONS, "budget_s": None, "seed": 1, "fresh_inputs": False, "calls_compared": 0,
        "statistic": "mean over the repetitions of the median of a repetition",
    }  # fmt: skip


def summary(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for one in cases:
        groups.setdefault((one["op"], one["in_place"]), []).append(one)
    rows = []
    for (op, in_place), group in groups.items():
        worst = max(group, key=lambda one: one["ratio"])
        rows.append({
            "op": op, "in_place": in_place, "cases": len(group),
            "geomean_latency_us": geomean([one["latency_us"] for one in group]),
            "geomean_floor_us": geomean([one["floor_us"] for one in group]),
            "ratio": geomean([one["ratio"] for one in group]), "worst_ratio": worst["ratio"],
            "worst_case": worst["name"],
        })  # fmt: skip
    return rows


def record(seed: int = 1, *, gpu: str | None = None, cpu: str = "AMD EPYC", day: int = 1, ratio: float = 1.05,
           commit: str | None = COMMIT, calls: int = 10, in_place_of: str | None = None,
           ops: set[str] | None = None, suite_file: pathlib.Path = SUITE_FILE) -> dict[str, Any]:  # fmt: skip
    """A record of a suite's cases, by default the 80; of one operator in place when in_place_of names it."""
    rng = random.Random(seed)
    suite = suite_of(suite_file)
    items = [i for i in suite["cases"] if in_place_of in (None, i["op"]) and (ops is None or i["op"] in ops)]
    cases = [case(rng, item, gpu is not None, ratio, calls, in_place_of is not None) for item in items]
    utc = f"2026-{1 + day // 28 % 12:02}-{1 + day % 28:02}T12:{seed % 60:02}:00Z"
    argv = ["build/ropegrad", "bench", "--device", "cuda" if gpu else "cpu", "--json", "record.json"]
    return {
        "schema": "ropegrad-record-1", "suite": suite["suite"],
        "suite_digest": file_digest(suite_file), "environment": environment(gpu, cpu, utc, commit, argv),
        "passed": len(cases), "failed": 0, "skipped": 0, "protocol": protocol(gpu is not None, calls), "cases": cases,
        "summary": summary(cases),
    }  # fmt: skip


def save(path: pathlib.Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
