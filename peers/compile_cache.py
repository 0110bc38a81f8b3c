"""Compiles what torch.compile will be asked for, in several processes, into a cache that the timing process then reads.

Timing happens in one process, after this; without it, compiling some hundred functions one after another takes longer
than timing them.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peers.cases import Case

if TYPE_CHECKING:
    from peers.contenders import Form

CUDA_HELPERS = 14  # at most: each has a context of its own on the GPU


@contextmanager
def private_cache() -> Iterator[None]:
    """An empty cache of torch.compile's for this run and its helpers, so that no earlier run matters; or the one that
    the environment names."""
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        yield


@dataclass(frozen=True)
class Job:
    case: Case
    form: Form | str  # of torch.compile, or the name of a public peer that has kernels to compile
    device: str
    threads: int


def configure(threads: int) -> None:
    """Of this process; the same in the helpers as where the functions are timed, or the cache is not hit."""
    import torch
    import torch._dynamo
    import torch._inductor.config

    torch.set_num_threads(threads)
    torch._inductor.config.cpp.threads = threads
    # One function object serves every shape of an operator; by default the 9th shape would not be compiled any more.
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 1024)


def _compile(job: Job) -> None:
    import torch

    from peers.contenders import PUBLIC, compiled_arguments, compiled_function
    from peers.inputs import blank

    configure(job.threads)
    case, form = job.case, job.form
    names = [t.name for t in case.op.inputs] if isinstance(form, str) else compiled_arguments(case, form)
    tensors = {name: blank(case.shape(name), case.dtypes[name], job.device) for name in names}
    with torch.no_grad():
        if isinstance(form, str):
            PUBLIC[case.op.name][form](case).prepare(tensors)()
        else:
            compiled_function(case, form)(*tensors.values())


def usable_vectors() -> list[str] | None:
    """The kinds of vectors that torch.compile may use on this CPU; None: this PyTorch does not say. It tries each kind
    by compiling a sample and starting a Python that loads it, under a lock: one process at a time."""
    try:
        from torch._inductor import cpu_vec_isa

        return [str(kind) for kind in cpu_vec_isa.valid_vec_isa_list()]
    except (ImportError, AttributeError):
        return None


def _start_helper(vectors: list[str] | None = None) -> None:
    """The helpers are the parallelism: what they compile they also run once, and a team of threads in each would wait
    for CPUs that the others hold. They take the timing process's word on vectors, as trying them again would let one
    helper in at a time."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["OMP_THREAD_LIMIT"] = "1"  # heard when torch is imported, so not later than here
    if vectors is not None:
        from torch._inductor import cpu_vec_isa

        found = [kind for kind in cpu_vec_isa.supported_vec_isa_list if str(kind) in vectors]
        setattr(cpu_vec_isa, "valid_vec_isa_list", lambda: found)  # noqa: B010  a function, which mypy would keep


def compile_all(jobs: list[Job], helpers: int, tell: Callable[[int, int], None]) -> None:
    """A job that fails here fails again, and is then reported, where it would be timed."""
    if helpers <= 1 or len(jobs) < 2:
        return
    on_cpu = jobs[0].device == "cpu"
    helpers = min(helpers, len(jobs), len(jobs) if on_cpu else CUDA_HELPERS)
    vectors = usable_vectors() if on_cpu else None
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(helpers, mp_context=context, initializer=_start_helper, initargs=(vectors,)) as pool:
        # The largest first: they decide when the last helper ends.
        pending = [pool.submit(_compile, job) for job in sorted(jobs, key=lambda j: -j.case.bytes())]
        try:
            for done, future in enumerate(as_completed(pending), 1):
                future.exception()
                tell(done, len(pending))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
