"""`python -m ropegrad.torch.host_cost`: how long the host takes for an eager call, beside the C call within it.

Tensors are tiny, so that on CUDA the GPU ends its work before the host has launched the next call, and on the CPU the
arithmetic is nothing. The C call is the extension's, on tensors described before: it reads the arguments, checks them
and, on CUDA, launches. Bare PyTorch is what no operator made in Python goes without: it allocates the results, and
where gradients are needed does so in an autograd function that keeps cos and sin and does nothing else.
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
from ropegrad.torch._dispatch import straight
from ropegrad.torch._launch import run

BATCH, ROUNDS = 100, 60  # calls timed together; the fastest batch counts: the host does other things too
Call = Callable[[], Any]


def microseconds(calls: dict[str, Call], device: torch.device) -> dict[str, float]:
    """Of each call. They take turns, batch by batch: the speed of a host changes from one second to the next."""
    fastest = dict.fromkeys(calls, float("inf"))
    for turn in range(ROUNDS + 2):  # two to warm up
        for name, call in calls.items():
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            begin = time.perf_counter_ns()
            for _ in range(BATCH):
                call()
            us = (time.perf_counter_ns() - begin) / BATCH * 1e-3
            if turn >= 2:
                fastest[name] = min(fastest[name], us)
    return fastest


def plain(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)

    def rotate_half(x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class Bare(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Any:
        ctx.save_for_backward(cos, sin)
        return torch.empty_like(q), torch.empty_like(k)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return (*map(torch.empty_like, grads), None, None)


def c_calls(tensors: list[Tensor], grads: tuple[Tensor, Tensor]) -> tuple[Call, Call]:
    """The forward pass, and the backward pass with the gradients of q and k."""
    q, k, cos, sin = tensors
    device, results = q.get_device(), (torch.empty_like(q), torch.empty_like(k))
    columns = cos.shape[-1]
    of_forward = (*tensors, *results)
    of_backward = (*grads, None, None, cos, sin, *results, None, None)
    return (
        partial(run, _rope_apply._FORWARD, device, of_forward, (columns, 0, False)),
        partial(run, _rope_apply._BACKWARD, device, of_backward, (columns, 0, 0)),
    )


def measure(device: torch.device) -> list[dict[str, Any]]:
    tensors = [torch.randn(1, h, 8, 64, device=device) for h in (8, 2)]
    tensors += [torch.randn(1, 8, 64, device=device) for _ in range(2)]
    grads = (torch.randn_like(tensors[0]), torch.randn_like(tensors[1]))
    recorded = [t.requires_grad_(t.dim() == 4) for t in [t.clone() for t in tensors]]
    forward, backward = c_calls(tensors, grads)
    rotate: Callable[..., Any] = apply_rotary_pos_emb
    bare = straight(Bare)

    def step(function: Callable[..., Any]) -> Call:
        return lambda: torch.autograd.grad(function(*recorded), recorded[:2], grads)

    us = microseconds(
        {
            "c forward": forward,
            "c backward": backward,
            "bare": lambda: (torch.empty_like(tensors[0]), torch.empty_like(tensors[1])),
            "own": partial(rotate, *tensors),
            "plain": partial(plain, *tensors),
            "bare recorded": partial(bare, *recorded),
            "own recorded": partial(rotate, *recorded),
            "plain recorded": partial(plain, *recorded),
            "bare step": step(bare),
            "own step": step(rotate),
            "plain step": step(plain),
        },
        device,
    )
    rows = []
    for call, suffix, c_us in (
        ("without gradients", "", us["c forward"]),
        ("recorded by autograd", " recorded", us["c forward"]),
        ("forward and backward", " step", us["c forward"] + us["c backward"]),
    ):
        own = us["own" + suffix]
        rows.append(
            {"call": call, "us": own, "c_call_us": c_us, "over_us": own - c_us, "bare_us": us["bare" + suffix],
             "plain_us": us["plain" + suffix]}
        )  # fmt: skip
    return rows


def show(rows: list[dict[str, Any]], device: torch.device) -> None:
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"Host time of apply_rotary_pos_emb, microseconds; PyTorch {torch.__version__}, {where}")
    columns = {"us": "ropegrad", "c_call_us": "C call", "over_us": "over it", "bare_us": "bare PyTorch",
               "plain_us": "plain PyTorch"}  # fmt: skip
    print(f"{'eager call':22}" + "".join(f"{title:>14}" for title in columns.values()))
    for row in rows:
        print(f"{row['call']:22}" + "".join(f"{row[key]:14.2f}" for key in columns))


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
