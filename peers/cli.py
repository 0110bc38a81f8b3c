"""The command line of `python3 -m peers`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from peers import compile_cache
from peers.cases import BadInput, Lacking, load_suite, select

FINE, LOST, WRONG_USE, LACKING = 0, 1, 2, 3
ROOT = Path(__file__).resolve().parent.parent

DESCRIPTION = """\
Times ropegrad beside eager PyTorch, torch.compile and, where they can be imported, other public kernels: the same
cases, the same memory, one process, one protocol. Every contender is first checked against float64; one that is wrong
is shown as wrong and not timed."""

EPILOG = """\
Columns: microseconds of one call, then how many times as long as ropegrad it takes (above 1: ropegrad is faster). A
peer that has not all outputs is compared with ropegrad asked for the same ones. Of torch.compile the fastest form is
shown: compiled for one shape, for any shape, or with its results stored in given tensors; the record has them all.

Protocol: before each call every tensor moves to another place and the caches are overwritten; 3 repetitions of 10
warm-ups and 50 timed calls, the contenders taking turns; a repetition counts by its median, a case by their mean. On
the CPU by the monotonic clock; on CUDA from the start of a call's first activity on the GPU to the end of its last.

Examples:
  python3 -m peers --device cpu --threads 2,16 --json peers-cpu.json
  python3 -m peers --device cuda --op rope_2d --case b2_s773 --budget 0
  python3 -m peers --peer torch.compile --repetitions 1 --calls 9

Exit codes: 0 fine; 1 ropegrad was wrong, could not run a case, or was slower than a peer; 2 wrong use or a bad file;
3 this machine lacks what was asked."""


def thread_counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1 or max(counts) > 1024:
        raise argparse.ArgumentTypeError(f"takes numbers from 1 to 1024, such as 2 or 2,16, not '{text}'")
    return counts


def byte_count(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    digits, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    if not digits.isdigit() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"takes a number of bytes such as 100000, 64K, 512M or 2G, not '{text}'")
    return int(digits) * unit


def whole(low: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            raise argparse.ArgumentTypeError(f"takes a whole number from {low}, not '{text}'")
        return int(text)

    return convert


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python3 -m peers",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    which = p.add_argument_group("which cases")
    which.add_argument("--suite", default="sol-execbench-rope", metavar="NAME|FILE", help="default: %(default)s")
    which.add_argument("--op", action="append", default=[], metavar="OP", help="of this operator only (repeatable)")
    which.add_argument("--case", action="append", default=[], metavar="NAME", help="of this name only (repeatable)")
    which.add_argument(
        "--in-place", choices=("both", "only", "no"), default="both",
        help="whether cases of operators that can work in place come in that mode too (default: both)",
    )  # fmt: skip
    which.add_argument("--max-bytes", type=byte_count, metavar="N", help="leave out cases whose tensors take more")
    how = p.add_argument_group("how")
    how.add_argument("--device", default=None, metavar="D", help="cpu, cuda or cuda:N; default: cuda where it can run")
    how.add_argument("--threads", type=thread_counts, metavar="N[,N]", help="CPU: each in turn; default: all CPUs")
    how.add_argument("--library", type=Path, default=ROOT / "build" / "libropegrad.so", metavar="FILE",
                     help="ropegrad's shared library (default: build/libropegrad.so)")  # fmt: skip
    how.add_argument("--variant", help="of ropegrad, such as cpu.avx2; default: its own choice")
    how.add_argument("--peer", action="append", default=[], metavar="NAME",
                     help="time this peer only (repeatable): eager, torch.compile, transformers, liger_kernel, "
                     "flash_attn, apex; default: all that can be imported")  # fmt: skip
    how.add_argument("--repetitions", type=whole(1), default=3, metavar="N", help="default: 3")
    how.add_argument("--warmups", type=whole(0), default=10, metavar="N", help="of a repetition (default: 10)")
    how.add_argument("--calls", type=whole(1), default=50, metavar="N", help="timed, of a repetition (default: 50)")
    how.add_argument("--budget", type=float, default=2.0, metavar="SECONDS",
                     help="that a case may take, checks and compiling apart (default: 2); calls are left out to keep "
                     "to it, 5 a repetition at the least; 0: take them all")  # fmt: skip
    how.add_argument("--deadline", type=float, default=0.0, metavar="SECONDS",
                     help="begin no case after this time of the run; what is left out is said (default: none)",
                     )  # fmt: skip
    how.add_argument("--launch-gaps", action="store_true",
                     help="CUDA: count the time that the GPU waits for Python within a call of several kernels; "
                     "default: they are queued before the first one starts")  # fmt: skip
    how.add_argument("--compile-jobs", type=whole(1), default=os.cpu_count() or 1, metavar="N",
                     help="processes that compile ahead of the timing (default: one per CPU)")  # fmt: skip
    how.add_argument("--seed", type=whole(0), default=1, metavar="N", help="of the inputs (default: 1)")
    how.add_argument("--json", type=Path, metavar="FILE", help="write the record, schema ropegrad-record-1 with peers")
    return p


def complain(code: int, text: str) -> int:
    print(f"peers: {text}", file=sys.stderr)
    return code


def stop(number: int, _frame: object) -> None:
    """Ends the run as an exception does, so that what was measured is written."""
    raise SystemExit(128 + number)


def main(argv: list[str]) -> int:
    options = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, stop)
    try:
        if options.json and not options.json.resolve().parent.is_dir():
            raise BadInput(f"--json: no folder '{options.json.parent}'")
        suite, cases = load_suite(options.suite)
        chosen = select(cases, options.op, options.case, options.in_place, options.max_bytes)
        with compile_cache.private_cache():
            try:
                from peers.session import Session
            except ModuleNotFoundError as error:
                raise Lacking(f"{error}; peers/requirements.txt says what is needed") from error
            session = Session(options, ["peers", *argv])
            try:
                losses = session.run(suite, chosen)
            finally:  # what was measured before something broke is not lost
                if options.json and session.results:
                    options.json.write_text(json.dumps(session.record(), allow_nan=False) + "\n", encoding="utf-8")
    except BadInput as error:
        return complain(WRONG_USE, str(error))
    except Lacking as error:
        return complain(LACKING, str(error))
    return LOST if losses else FINE
