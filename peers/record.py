"""The record of a run: schema ropegrad-record-1, as `ropegrad bench` writes it, and beside each case its peers.

The schema's own fields hold ropegrad's figures. It has no floor here: `ropegrad bench` measures that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from peers.cases import Case
from peers.check import Verdict
from peers.contenders import Contender
from peers.gpu import cupti_version
from peers.inputs import RANGE_BYTES, STEP_BYTES
from peers.operators import cost
from peers.timing import Protocol, Series, Timing

ROPEGRAD = "ropegrad"


@dataclass
class PeerResult:
    """One contender on one case."""

    contender: Contender
    verdict: Verdict
    series: Series | None = None  # None: not timed
    rival_us: float | None = None  # ropegrad for the same outputs

    @property
    def ratio(self) -> float | None:
        """How many times as long as ropegrad it takes."""
        return self.series.us / self.rival_us if self.series and self.rival_us else None


@dataclass
class CaseResult:
    case: Case
    device: str
    variant: str
    threads: int
    own: PeerResult | None = None  # ropegrad; None: the case was not run
    peers: list[PeerResult] = field(default_factory=list)
    timing: Timing | None = None
    reason: str = ""  # why it was not run

    def columns(self) -> dict[str, PeerResult]:
        """The fastest form of each peer; of one that was never timed, any form, to say why."""
        best: dict[str, PeerResult] = {}
        for peer in self.peers:
            now = best.get(peer.contender.column)
            if now is None or _rank(peer) < _rank(now):
                best[peer.contender.column] = peer
        return best

    def faster_peers(self) -> list[PeerResult]:
        return [p for p in self.columns().values() if p.ratio is not None and p.ratio < 1]


def _rank(peer: PeerResult) -> float:
    return peer.series.us if peer.series else math.inf


def geomean(values: Iterable[float]) -> float | None:
    logs = [math.log(v) for v in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def verify_json(verdict: Verdict) -> dict[str, Any]:
    error = verdict.errors.get(verdict.worst)
    worst = None
    if error is not None:
        worst = {"tensor": verdict.worst, "index": list(error.index), "got": number(error.got),
                 "expected": number(error.expected)}  # fmt: skip
    return {
        "status": verdict.status,
        "allowance_used": None,  # of the library's contract, which `ropegrad verify` checks
        "worst": worst,
        "reason": verdict.reason,
        "peer_tolerance_used": number(verdict.share),
        "errors": {
            name: {"norm": number(e.norm), "peak": number(e.peak), "elements": e.elements}
            for name, e in verdict.errors.items()
        },
    }


def series_json(series: Series | None) -> dict[str, Any]:
    if series is None:
        return {"latency_us": None, "medians_us": [], "spread": None, "samples_us": []}
    data: dict[str, Any] = {
        "latency_us": series.us,
        "medians_us": series.medians,
        "spread": series.spread,
        "samples_us": [round(us, 3) for repetition in series.samples for us in repetition],
    }
    if series.activities:
        data["gpu_activities"] = sorted(series.activities)[len(series.activities) // 2]
        data["gpu_idle_us"] = round(sorted(series.idle)[len(series.idle) // 2], 3)
    return data


def case_json(result: CaseResult, gb_per_s: float | None) -> dict[str, Any]:
    """gb_per_s: the datasheet's, of the GPU's memory."""
    case = result.case
    work = cost(case.op, case.dims, case.dtypes, case.in_place)
    own = result.own
    own_us = own.series.us if own and own.series else None
    roofline_us = (work.read_bytes + work.write_bytes) * 1e-3 / gb_per_s if gb_per_s else None
    best = result.columns()
    return {
        "op": case.op.name,
        "name": case.name,
        "device": result.device,
        "variant": result.variant,
        "in_place": case.in_place,
        "threads": result.threads,
        "floor_us": None,
        "ratio": None,
        "roofline_us": roofline_us,
        "below_roofline": own_us < roofline_us if own_us and roofline_us else None,
        "read_bytes": work.read_bytes,
        "write_bytes": work.write_bytes,
        "flops": work.flops,
        "warmup_calls": result.timing.warmups if result.timing else 0,
        "timed_calls": result.timing.calls if result.timing else 0,
        **series_json(own.series if own else None),
        "sm_clocks_mhz": None,
        "floor": None,
        "verify": verify_json(own.verdict if own else Verdict("skip", result.reason)),
        "peers": [
            {
                "name": p.contender.name,
                "column": p.contender.column,
                "fastest_form": best[p.contender.column] is p,
                "outputs": list(p.contender.outputs),
                "note": p.contender.note,
                **series_json(p.series),
                "ropegrad_us": p.rival_us,
                "ratio": p.ratio,
                "verify": verify_json(p.verdict),
            }
            for p in result.peers
        ],
    }


def summary_json(results: list[CaseResult]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, bool, int], list[CaseResult]] = {}
    for r in results:
        if r.own and r.own.series:
            groups.setdefault((r.case.op.name, r.case.in_place, r.threads), []).append(r)
    rows: list[dict[str, Any]] = []
    for (op, in_place, threads), group in groups.items():
        columns: dict[str, list[PeerResult]] = {}
        for r in group:
            for name, peer in r.columns().items():
                if peer.ratio is not None:
                    columns.setdefault(name, []).append(peer)
        rows.append({
            "op": op,
            "in_place": in_place,
            "threads": threads,
            "cases": len(group),
            "geomean_latency_us": geomean(r.own.series.us for r in group if r.own and r.own.series),
            "geomean_floor_us": None,
            "ratio": None,
            "worst_ratio": None,
            "worst_case": "",
            "peers": [
                {
                    "name": name,
                    "cases": len(found),
                    "geomean_latency_us": geomean(p.series.us for p in found if p.series),
                    "ratio": geomean(p.ratio for p in found if p.ratio),
                    "lowest_ratio": min(p.ratio for p in found if p.ratio),
                }
                for name, found in columns.items()
            ],
            "slower_than_a_peer": [r.case.name for r in group if r.faster_peers()],
        })  # fmt: skip
    return rows


def record_json(
    suite: str,
    suite_digest: str | None,
    environment: dict[str, Any],
    software: dict[str, Any],
    protocol: Protocol,
    on_cuda: bool,
    results: list[CaseResult],
) -> dict[str, Any]:
    gb_per_s = (software.get("gpu") or {}).get("datasheet_gb_per_s")
    statuses = [r.own.verdict.status if r.own else "skip" for r in results]
    return {
        "schema": "ropegrad-record-1",
        "suite": suite,
        "suite_digest": suite_digest,
        "environment": {**environment, **software},
        "passed": statuses.count("pass"),
        "failed": statuses.count("fail"),
        "skipped": statuses.count("skip"),
        "protocol": {
            "name": "faithful",
            "method": "cupti" if on_cuda else "monotonic_clock",
            "method_library_version": cupti_version() if on_cuda else None,
            "warm": False,
            "flush_bytes": protocol.flush_bytes,
            "offset_step_bytes": STEP_BYTES,
            "offset_range_bytes": RANGE_BYTES,
            "warmup_calls": protocol.warmups,
            "timed_calls": protocol.calls,
            "repetitions": protocol.repetitions,
            "budget_s": protocol.budget_s or None,
            "seed": protocol.seed,
            "fresh_inputs": False,
            "calls_compared": 0,
            "statistic": "mean over the repetitions of the median of a repetition",
            "launches_ahead": on_cuda and protocol.launches_ahead,
        },
        "cases": [case_json(r, gb_per_s) for r in results],
        "summary": summary_json(results),
    }
