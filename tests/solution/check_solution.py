#!/usr/bin/env python3
"""Builds solutions that `ropegrad export-solution` wrote as SOL-ExecBench's harness does, by PyTorch's extension builder,
and holds what they compute against plain PyTorch in float64, on a GPU. Needs PyTorch with CUDA, ninja and nvcc.

    check_solution.py [--add-fast-math] [--build-only] SOLUTION.json...

A line per solution: the largest error, and the largest share of the contract's allowance (1.00 is the limit). Each
workload runs twice, once on the current stream and once on another, from the same inputs: the bits must agree, and the
inputs must be what they were. --add-fast-math builds with the flags that earlier versions of the harness add; --build-only
stops after importing the extension, which needs no GPU. Exit codes: 0 fine, 1 a mismatch, 2 it could not be built or run,
3 no GPU.
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile

import torch
import torch.utils.cpp_extension

U = 2.0**-24
BF16, F32, F64, I64 = torch.bfloat16, torch.float32, torch.float64, torch.int64


class Expected:
    """An output: its float64 value, the sum of the absolute values of its terms, how many terms it sums (0: a copy)."""

    def __init__(self, value, magnitude, terms, dtype):
        self.value, self.magnitude, self.terms, self.dtype = value, magnitude, terms, dtype

    def allowance(self):
        if self.terms == 0:
            return torch.zeros_like(self.value)
        allowed = (8 + math.sqrt(self.terms) / 16) * U * self.magnitude + U * self.value.abs()
        if self.dtype == BF16:  # half the spacing of 8 significant bits
            half = torch.ldexp(torch.full_like(self.value, 0.5), torch.frexp(self.value).exponent - 8)
            allowed = allowed + torch.where(self.value == 0, 0.0, half)
        return allowed


def normal(*shape, dtype=F32):
    return torch.randn(shape, device="cuda", dtype=F32).to(dtype)


def halves(x):
    return x.chunk(2, dim=-1)


# ---- the operators: inputs in the order of the benchmark's calls, and what comes out ----


def rotary_embedding(batch, seq, dim, scaling):
    gc, gs = normal(batch, seq, dim, dtype=BF16), normal(batch, seq, dim, dtype=BF16)
    emb, inv = normal(batch, seq, dim) * 100, normal(batch, dim // 2, 1)
    c1, c2, s1, s2 = *halves(gc.double()), *halves(gs.double())
    angle, weight = halves(emb.double())[0], inv.double().transpose(1, 2)
    a = float(torch.tensor(scaling, dtype=F32))
    value = a * (weight * ((s1 + s2) * angle.cos() - (c1 + c2) * angle.sin())).sum(-1)
    magnitude = abs(a) * (weight.abs() * (c1.abs() + c2.abs() + s1.abs() + s2.abs())).sum(-1)
    return [gc, gs, emb, inv, scaling], [Expected(value, magnitude, 2 * dim, F32)]


def rope_2d(batch, seq, dim):
    gc, gs = normal(batch, seq, dim, dtype=BF16), normal(batch, seq, dim, dtype=BF16)
    theta = normal(batch, seq, dim) * 1000
    value = gs.double() * theta.double().cos() - gc.double() * theta.double().sin()
    return [gc, gs, theta], [Expected(value, gc.double().abs() + gs.double().abs(), 2, F32)]


def vision_rotary(patches, grid, dim):
    gc, gs, emb = normal(patches, dim), normal(patches, dim), normal(patches, dim)
    pos, inv = torch.randint(0, grid, (patches, 2), device="cuda", dtype=I64), normal(dim // 4)
    ge = gs.double() * emb.double().cos() - gc.double() * emb.double().sin()
    size = gc.double().abs() + gs.double().abs()
    by_axis = [x.view(patches, 2, 2, dim // 4) for x in (ge, size)]  # patch, half, axis, frequency
    value, magnitude = ((x.sum(1) * pos.double().abs().unsqueeze(-1)).sum((0, 1)) for x in by_axis)
    return [gc, gs, pos, inv, emb], [Expected(value, magnitude, 4 * patches, F32)]


def table_gradients(pairs, dtype):
    """Of cos and sin, from (gradient of the rotated, what was rotated), summed over the heads."""
    cos = cos_size = sin = sin_size = 0
    terms = 0
    for g, x in pairs:
        (g1, g2), (x1, x2) = halves(g), halves(x)
        turned = torch.cat((-g1 * x2, g2 * x1), -1)
        cos, cos_size = cos + (g * x).sum(1), cos_size + (g * x).abs().sum(1)
        sin, sin_size = sin + turned.sum(1), sin_size + turned.abs().sum(1)
        terms += g.shape[1]
    return [Expected(cos, cos_size, terms, dtype), Expected(sin, sin_size, terms, dtype)]


def rope_apply(batch, q_heads, k_heads, seq, dim):
    gq, q = normal(batch, q_heads, seq, dim), normal(batch, q_heads, seq, dim)
    gk, k = normal(batch, k_heads, seq, dim), normal(batch, k_heads, seq, dim)
    cos, sin = normal(batch, seq, dim).cos(), normal(batch, seq, dim).sin()  # halves of sin drawn apart
    c, (s1, s2) = cos.double().unsqueeze(1), halves(sin.double().unsqueeze(1))
    expected = []
    for g in (gq.double(), gk.double()):
        g1, g2 = halves(g)
        other = torch.cat((g2 * s1, -g1 * s2), -1)  # g * cos - rotate_half(g) * sin
        expected.append(Expected(g * c + other, (g * c).abs() + other.abs(), 2, F32))
    expected += table_gradients([(gq.double(), q.double()), (gk.double(), k.double())], F32)
    return [gq, gk, q, k, cos, sin], expected


def kv_cache_update(batch, new, rows, heads, dim):
    gk, gv = normal(batch, heads, rows, dim, dtype=BF16), normal(batch, heads, rows, dim, dtype=BF16)
    key = normal(batch, heads, new, dim, dtype=BF16)
    angles = normal(batch, new, dim // 2).repeat(1, 1, 2)  # halves of sin alike, as in every model
    cos, sin = angles.cos().to(BF16), angles.sin().to(BF16)
    position = torch.arange(new, device="cuda", dtype=I64)
    g, c, s = gk[:, :, position].double(), cos.double().unsqueeze(1), sin.double().unsqueeze(1)
    g1, g2 = halves(g)
    s1, s2 = halves(s)
    other = torch.cat((g2 * s2, -g1 * s1), -1)
    exact = [gv[:, :, position].double()]
    for cache in (gk, gv):
        passed = cache.double()
        passed[:, :, position] = 0
        exact.append(passed)
    states = Expected(g * c + other, (g * c).abs() + other.abs(), 2, BF16)
    values, *caches = (Expected(x, torch.zeros_like(x), 0, BF16) for x in exact)
    tables = table_gradients([(g, key.double())], BF16)
    return [gk, gv, key, cos, sin, position], [states, values, *tables, *caches]


OPERATORS = {
    rotary_embedding: [(1, 1, 2, 1.0), (2, 37, 64, 0.125), (4, 293, 128, 0.0883883), (16, 613, 128, 1.5)],
    rope_2d: [(1, 1, 2), (2, 773, 128), (3, 41, 46), (16, 1024, 128)],
    vision_rotary: [(1, 4, 72), (196, 14, 72), (541, 24, 72), (12288, 112, 72), (100, 9, 64)],
    rope_apply: [(1, 1, 1, 1, 2), (1, 32, 8, 293, 128), (2, 12, 3, 65, 64), (4, 32, 8, 1024, 128)],
    kv_cache_update: [(1, 1, 4, 8, 128), (1, 691, 2048, 8, 128), (2, 5, 64, 3, 64), (4, 773, 4096, 8, 128)],
}

# ---- the harness ----


def build(solution, folder, fast_math):
    """As the harness does: the files as they are, those of the top folder compiled."""
    for source in solution["sources"]:
        path = folder / source["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source["content"])
    options = solution["spec"]["compile_options"]
    added = ["-O3", "--use_fast_math"] if fast_math else []
    if torch.cuda.is_available():
        sm = "%d%d" % torch.cuda.get_device_capability()
        added.append(f"-gencode=arch=compute_{sm},code=sm_{sm}")
    else:
        added.append("-gencode=arch=compute_90,code=sm_90")
    compiled = [str(p) for p in folder.iterdir() if p.suffix in (".cu", ".cpp", ".cc", ".cxx", ".c") and p.is_file()]
    module = torch.utils.cpp_extension.load(
        name="benchmark_kernel_" + solution["name"], sources=compiled, extra_cflags=options["cflags"],
        extra_cuda_cflags=added + options["cuda_cflags"], extra_ldflags=options["ld_flags"],
        extra_include_paths=[str(folder)], build_directory=str(folder), verbose=False)
    return getattr(module, solution["spec"]["entry_point"].split("::")[1])


def call(run, inputs, expected):
    """Outputs are filled with what no result is, so that an element left alone shows."""
    outputs = [torch.full(e.value.shape, math.nan, dtype=e.dtype, device="cuda") for e in expected]
    run(*inputs, *outputs)
    torch.cuda.synchronize()
    return outputs


def check(run, operator, sizes):
    """The largest error and share of the allowance; a word of what is wrong besides, or none."""
    inputs, expected = operator(*sizes)
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    outputs = call(run, inputs, expected)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        again = call(run, inputs, expected)
    error = share = 0.0
    for got, want in zip(outputs, expected):
        difference = (got.double() - want.value).abs()
        if not torch.isfinite(difference).all():
            return math.inf, math.inf, "an output is not finite, or was not written"
        used = torch.where(difference == 0, 0.0, difference / want.allowance())
        error, share = max(error, difference.max().item()), max(share, used.max().item())
    if any(not torch.equal(a, b) for a, b in zip(outputs, again)):
        return error, share, "the bits differ from run to run"
    if any(isinstance(a, torch.Tensor) and not torch.equal(a, b) for a, b in zip(inputs, before)):
        return error, share, "an input was written"
    return error, share, ""


def check_all(run, name):
    operator, workloads = next((o, w) for o, w in OPERATORS.items() if name == "ropegrad_" + o.__name__)
    error, share, wrong = 0.0, 0.0, ""
    for sizes in workloads:
        one_error, one_share, one_wrong = check(run, operator, sizes)
        error, share = max(error, one_error), max(share, one_share)
        if one_wrong or one_share > 1:
            wrong = wrong or f"{sizes}: {one_wrong or 'outside the allowance'}"
    print(f"{name}: {len(workloads)} workloads, largest error {error:.3g}, allowance used {share:.2f}"
          + (f": FAILED at {wrong}" if wrong else ""))
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add-fast-math", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("solution", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if not options.build_only and not torch.cuda.is_available():
        print("there is no GPU: --build-only is what can be checked here", file=sys.stderr)
        return 3
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    good = True
    for path in options.solution:
        with tempfile.TemporaryDirectory() as folder:
            try:
                solution = json.loads(path.read_text())
                run = build(solution, pathlib.Path(folder), options.add_fast_math)
                if options.build_only:
                    print(f"{solution['name']}: built, imported")
                else:
                    good = check_all(run, solution["name"]) and good
            except Exception as error:  # a line for the solution; the others are still checked
                print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
                return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
