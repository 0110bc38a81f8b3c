"""What a run prints: a table per operator, geometric means, and the cases in which a peer was faster."""

from __future__ import annotations

from peers.record import CaseResult, PeerResult, geomean

WORD_COLUMNS = 1  # the first ones hold words, the others numbers


def print_rows(head: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        padded = [
            text.ljust(width) if i < WORD_COLUMNS else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(padded).rstrip())


def cells(peer: PeerResult | None) -> list[str]:
    if peer is None:
        return ["-", "-"]
    if peer.series is None:
        return ["wrong" if peer.verdict.status == "fail" else "-", "-"]
    return [f"{peer.series.us:.2f}", f"{peer.ratio:.2f}" if peer.ratio else "-"]


def print_group(results: list[CaseResult]) -> None:
    """The cases of one operator, mode and number of threads."""
    first = results[0]
    mode = " in place" if first.case.in_place else ""
    where = f"{first.device}, {first.threads} threads" if first.device == "cpu" else first.device
    print(f"\n{first.case.op.name}{mode} ({where})")
    columns = list(dict.fromkeys(name for r in results for name in r.columns()))
    head = ["case", "ropegrad us"] + [title for name in columns for title in (f"{name} us", "ratio")]
    rows = []
    for r in results:
        if r.timing is None:
            continue
        by_name = r.columns()
        own = f"{r.own.series.us:.2f}" if r.own and r.own.series else "-"
        rows.append([r.case.name, own] + [c for name in columns for c in cells(by_name.get(name))])
    if rows:
        rows.append(_means(results, columns))
        print_rows(head, rows)
    _print_notes(results)


def _means(results: list[CaseResult], columns: list[str]) -> list[str]:
    own = geomean(r.own.series.us for r in results if r.own and r.own.series)
    row = ["geometric mean", f"{own:.2f}" if own else "-"]
    for name in columns:
        timed = [p for p in (r.columns().get(name) for r in results) if p and p.series]
        us, ratio = geomean(p.series.us for p in timed if p.series), geomean(p.ratio for p in timed if p.ratio)
        row += [f"{us:.2f}" if us else "-", f"{ratio:.2f}" if ratio else "-"]
    return row


def _print_notes(results: list[CaseResult]) -> None:
    """Each reason once, with how many cases it holds for."""
    notes: dict[str, int] = {}
    for r in results:
        if r.own is None or r.own.series is None:
            text = f"{r.case.name}: {r.reason or (r.own.verdict.reason if r.own else '')}"
            notes[text] = notes.get(text, 0) + 1
        for p in r.peers:
            if p.series is None:
                status = {"fail": "wrong, not timed", "skip": "not timed"}.get(p.verdict.status, p.verdict.status)
                text = f"{p.contender.name}: {status}: {p.verdict.reason}"
                notes[text] = notes.get(text, 0) + 1
    for text, count in notes.items():
        print(f"  {text}" + (f" ({count} cases)" if count > 1 else ""))


def print_losses(results: list[CaseResult]) -> int:
    """The cases in which any peer was faster. Returns how many there are."""
    timed = [r for r in results if r.own and r.own.series]
    losses = [(r, p) for r in timed for p in r.faster_peers()]
    cases = {id(r) for r, _ in losses}
    print(f"\nCases in which ropegrad is slower than a peer: {len(cases)} of {len(timed)}")
    for r, p in losses:
        assert p.series is not None and p.rival_us is not None and r.own is not None and r.own.series is not None
        threads = f", {r.threads} threads" if r.device == "cpu" else ""
        spread = 100 * max(p.series.spread, r.own.series.spread)
        print(f"  {r.case.title}{threads}: {p.contender.name} {p.series.us:.2f} us, ropegrad {p.rival_us:.2f} us; "
              f"spread {spread:.0f} %")  # fmt: skip
    return len(cases)


def print_inexact(results: list[CaseResult]) -> None:
    """The largest error of every contender, in the norm of each output."""
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    for r in results:
        for p in [r.own, *r.peers] if r.own else []:
            for output, error in p.verdict.errors.items():
                key = (r.case.op.name, p.contender.name)
                if key not in worst or error.norm > worst[key][0]:
                    worst[key] = (error.norm, output)
    if worst:
        print("\nLargest error against float64, of an output's norm")
        print_rows(
            ["operator", "error", "contender (output)"],
            [[op, f"{norm:.1e}", f"{name} ({output})"] for (op, name), (norm, output) in worst.items()],
        )
