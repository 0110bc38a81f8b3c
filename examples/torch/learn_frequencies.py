"""Puts ropegrad into a tiny transformer in place of transformers' rotary embedding, lets it learn its frequencies, and
times both.

    pip install '.[examples]'
    python examples/torch/learn_frequencies.py --out build/example

The model is a block of causal attention that is to say which token stood `DISTANCE` places before: a matter of positions
alone. It starts with frequencies that are too low to tell neighbours apart, and either keeps them, as models do, or
learns them. Then a training step of RoPE alone is timed: eager PyTorch's formulas against ropegrad's. The picture,
learn_frequencies.svg and .png, shows both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from ropegrad.torch import RotaryEmbedding, apply_rotary_pos_emb
from torch import Tensor, nn
from torch.nn import functional

TOKENS, LENGTH, DISTANCE, WIDTH, HEADS, BATCH, STEPS = 16, 32, 5, 64, 4, 32, 300
HEAD_DIM = WIDTH // HEADS


# ---- before: as transformers' models have it ----


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def plain_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


# ---- after: two names from ropegrad.torch ----


class Model(nn.Module):
    def __init__(self, learned: bool) -> None:
        super().__init__()
        slow = 0.02 * torch.linspace(1, 0.1, HEAD_DIM // 2)  # radians per position
        self.rotary = RotaryEmbedding(inv_freq=slow, learned=learned)
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.queries_and_keys = nn.Parameter(torch.randn(2, HEADS, 1, HEAD_DIM))  # the same for every token
        self.values = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, length = tokens.shape
        x = self.embedding(tokens)
        positions = torch.arange(length, device=tokens.device)[None]
        cos, sin = self.rotary(x, positions)
        q, k = (t[None].expand(batch, HEADS, length, HEAD_DIM) for t in self.queries_and_keys)
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        v = self.values(x).view(batch, length, HEADS, HEAD_DIM).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


def train(learned: bool) -> tuple[list[float], Tensor, Tensor]:
    """The losses, and the frequencies before and after."""
    torch.manual_seed(0)
    model = Model(learned)
    before = model.rotary.inv_freq.detach().clone()
    fast = [p for name, p in model.named_parameters() if "inv_freq" not in name]
    slow = [p for name, p in model.named_parameters() if "inv_freq" in name]
    groups = [{"params": fast, "lr": 2e-2}] + ([{"params": slow, "lr": 2e-2}] if slow else [])
    optimizer = torch.optim.Adam(groups)
    losses = []
    for _ in range(STEPS):
        tokens = torch.randint(0, TOKENS, (BATCH, LENGTH))
        scores = model(tokens)[:, DISTANCE:]
        loss = functional.cross_entropy(scores.flatten(0, 1), tokens[:, :-DISTANCE].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, before, model.rotary.inv_freq.detach().clone()


# ---- timing ----


def milliseconds(rotary: Callable[..., tuple[Tensor, Tensor]], device: torch.device) -> float:
    """Of a forward and backward pass, all four gradients; the median of ten."""
    size = 2048 if device.type == "cuda" else 512
    shapes = ((1, 32, size, 128), (1, 8, size, 128), (1, size, 128), (1, size, 128))
    inputs = [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]
    times = []
    for _ in range(13):
        if device.type == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        made = rotary(*inputs)
        torch.autograd.grad(made, inputs, [y.detach() for y in made])
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times[3:])[5]


def draw(folder: Path, runs: dict[str, tuple[list[float], Tensor, Tensor]], times: dict[str, float], where: str) -> None:
    figure, (losses, frequencies, bars) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for name, (values, _, _) in runs.items():
        losses.plot(values, label=name)
    losses.set(title="A transformer finds the token 5 places back", xlabel="step", ylabel="cross entropy, nats")
    losses.legend()
    _, before, after = runs["learned frequencies"]
    frequencies.plot(before, "o-", label="before")
    frequencies.plot(after, "o-", label="after")
    frequencies.set(title="Frequencies", xlabel="pair of columns", ylabel="radians per position")
    frequencies.legend()
    bars.bar(list(times), list(times.values()), color=["tab:gray", "tab:blue"])
    bars.set(title=f"Forward and backward, {where}", ylabel="milliseconds")
    for place, value in enumerate(times.values()):
        bars.text(place, value, f"{value:.3g}", ha="center", va="bottom")
    for ending in ("svg", "png"):
        figure.savefig(folder / f"learn_frequencies.{ending}", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    runs = {name: train(name.startswith("learned")) for name in ("fixed frequencies", "learned frequencies")}
    for name, (losses, _, _) in runs.items():
        print(f"{name:20}  loss {losses[0]:.3f} -> {losses[-1]:.3f}")

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    times = {"PyTorch, eager": milliseconds(plain_rotary, device), "ropegrad": milliseconds(apply_rotary_pos_emb, device)}
    for name, ms in times.items():
        print(f"{name:20}  {ms:.3f} ms, forward and backward on {device.type}")
    draw(options.out, runs, times, torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU")
    print(f"wrote {options.out / 'learn_frequencies.svg'} and .png")


if __name__ == "__main__":
    main()
