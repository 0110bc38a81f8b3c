"""`python -m ropegrad.torch.host_cost`: how long the host takes for an eager call, beside the C call within it.

Tensors are tiny, so that on CUDA the GPU ends its work before the host has launched the next call, and on the CPU the
arithmetic is nothing. The C call is the extension's, on tensors described before: it reads the arguments, checks them
and, on CUDA, launches.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ropegrad.torch import _rope_apply, apply_rotary_pos_emb
from ropegrad.torch._contexts import context_of
from ropegrad.torch._launch import heads, table

BATCH, BATCHES = 200, 40  # calls timed together; the fastest batch counts: the host does other things too


def microseconds(call: Callable[[], Any], device: torch.device) -> float:
    times = []
    for _ in range(BATCHES + 2):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        begin = time.perf_counter_ns()
        for _ in range(BATCH):
            call()
        times.append(time.perf_counter_ns() - begin)
    return min(times[2:]) / BATCH * 1e-3


def plain(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)

    def rotate_half(x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def c_calls(tensors: list[Tensor], grads: tuple[Tensor, Tensor]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The forward pass, and the backward pass with the gradients of q and k."""
    device = tensors[0].get_device()
    q, k, cos, sin = (*(heads(t, device, 1) for t in tensors[:2]), *(table(t, device) for t in tensors[2:]))
    results = [torch.empty_like(t) for t in tensors[:2]]
    made, given = [heads(t, device, 1) for t in results], [heads(t, device, 1) for t in grads]
    columns = tensors[2].shape[-1]

    def forward(keep: Any = results) -> None:
        arguments = (q, k, cos, sin, *made)
        context_of(device).call(_rope_apply._FORWARD, arguments, (columns, 0, False))

    def backward(keep: Any = results) -> None:
        arguments = (*given, None, None, cos, sin, *made, None, None)
        context_of(device).call(_rope_apply._BACKWARD, arguments, (columns, 0, 0))

    return forward, backward


def measure(device: torch.device) -> list[dict[str, Any]]:
    tensors = [torch.randn(1, h, 8, 64, device=device) for h in (8, 2)]
    tensors += [torch.randn(1, 8, 64, device=device) for _ in range(2)]
    grads = (torch.randn_like(tensors[0]), torch.randn_like(tensors[1]))
    forward, backward = c_calls(tensors, grads)
    c_forward, c_backward = microseconds(forward, device), microseconds(backward, device)
    recorded = [t.requires_grad_(t.dim() == 4) for t in [t.clone() for t in tensors]]

    rotate: Callable[..., Any] = apply_rotary_pos_emb

    def step(function: Callable[..., Any]) -> None:
        torch.autograd.grad(function(*recorded), recorded[:2], grads)

    rows = []
    for name, arguments, c_us in (
        ("without gradients", tensors, c_forward),
        ("recorded by autograd", recorded, c_forward),
    ):
        own = microseconds(partial(rotate, *arguments), device)
        eager = microseconds(partial(plain, *arguments), device)
        rows.append({"call": name, "us": own, "c_call_us": c_us, "over_us": own - c_us, "plain_us": eager})
    own, eager = microseconds(lambda: step(rotate), device), microseconds(lambda: step(plain), device)
    c_us = c_forward + c_backward
    rows.append(
        {"call": "forward and backward", "us": own, "c_call_us": c_us, "over_us": own - c_us, "plain_us": eager}
    )
    return rows


def show(rows: list[dict[str, Any]], device: torch.device) -> None:
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"Host time of apply_rotary_pos_emb, microseconds; PyTorch {torch.__version__}, {where}")
    print(f"{'eager call':22}{'ropegrad':>10}{'C call':>10}{'over it':>10}{'plain PyTorch':>15}")
    for row in rows:
        print(f"{row['call']:22}{row['us']:10.2f}{row['c_call_us']:10.2f}{row['over_us']:10.2f}{row['plain_us']:15.2f}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m ropegrad.torch.host_cost", description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", help="write the figures to this file too")
    options = parser.parse_args(argv)
    device = torch.device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # otherwise it is the other threads' waking that is timed
    rows = measure(device)
    show(rows, device)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": str(device), "torch": torch.__version__, "host_cost": rows}, file, indent=1)


if __name__ == "__main__":
    main()
