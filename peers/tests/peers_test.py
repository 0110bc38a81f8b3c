"""The peers on tiny cases, on the CPU: what they compute, what they record, how the command line answers.

Usage: peers_test.py LIBRARY. Exits with 77, after saying why, where Python lacks what this needs.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
SKIPPED = 77

for module in ("torch", "jsonschema"):
    try:
        importlib.import_module(module)
    except ImportError as missing:
        print(f"skipped: {missing} (peers/requirements.txt)")
        sys.exit(SKIPPED)

import torch
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from peers import cli, gpu, machine
from peers.cases import Case, load_suite, select
from peers.check import TOLERANCES, Verdict, check
from peers.contenders import Contender, eager, ropegrad
from peers.inputs import RANGE_BYTES, STEP_BYTES, Arguments
from peers.operators import OPERATORS, cost
from peers.record import CaseResult, PeerResult, record_json
from peers.ropegrad_ctypes import CPU, Call, Context, DLDevice, Library, RopegradError
from peers.timing import Protocol, Series, Timing, TimingError, calls_within, read_spans

LIBRARY = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "libropegrad.so")
CPU_DEVICE = torch.device("cpu")

SMALL = {
    "rotary_embedding": {"batch_size": 3, "seq_len": 5, "head_dim": 10},
    "rope_2d": {"batch_size": 2, "seq_len": 7, "head_dim": 6},
    "vision_rotary": {"num_images": 1, "total_patches": 11, "max_grid_size": 4, "head_dim": 12},
    "rope_apply": {"batch_size": 2, "num_heads": 4, "num_kv_heads": 2, "seq_len": 5, "head_dim": 10},
    "kv_cache_update": {"batch_size": 2, "new_seq_len": 3, "max_seq_len": 7, "num_kv_heads": 2, "head_dim": 10},
}


def small_cases() -> list[Case]:
    """Every operator, in every dtype that its gradients may have, both pairings, both modes."""
    found: list[Case] = []
    for name, dims in SMALL.items():
        op = OPERATORS[name]
        for dtype in ("float32", "bfloat16", "float16", "float64"):
            payload = {"gradient", "q", "k", "table", "key", "value"} | ({"angle"} if dtype == "float64" else set())
            dtypes = {t.name: dtype if t.group in payload else t.dtype for t in op.tensors}
            found.append(Case(op, dtype, dims, dict(op.options), dtypes))
    found += [replace(c, options={"sin_pairing": "same_half"}) for c in found if c.op.name == "rope_apply"]
    found += [c.made_in_place() for c in found if c.op.replaced]
    return found


def problems_of(record: dict[str, Any]) -> list[str]:
    """Where it breaks the schema."""
    schema = json.loads((ROOT / "schema" / "record.schema.json").read_text())
    return [f"{e.json_path}: {e.message[:200]}" for e in Draft202012Validator(schema).iter_errors(record)]


class Correctness(unittest.TestCase):
    def setUp(self) -> None:
        self.library = Library(LIBRARY)
        self.context = Context(self.library, DLDevice(CPU, 0), 2)

    def tearDown(self) -> None:
        self.context.close()

    def results(self, case: Case) -> tuple[dict[str, torch.Tensor], dict[str, dict[str, torch.Tensor]]]:
        """The inputs, and what ropegrad and the plain implementation make of them."""
        arguments = Arguments(case, CPU_DEVICE, seed=7)
        tensors = arguments.move()
        inputs = {t.name: tensors[t.name].clone() for t in case.op.inputs}
        found: dict[str, dict[str, torch.Tensor]] = {}
        for contender in (ropegrad(case, self.context), eager(case)):
            for source in arguments.replaced.values():
                tensors[source].copy_(inputs[source])
            result = contender.collect(contender.prepare(tensors)(), tensors)
            found[contender.name] = {name: value.clone() for name, value in result.items()}
        return inputs, found

    def test_plain_implementations_agree_with_ropegrad(self) -> None:
        for case in small_cases():
            with self.subTest(case=case.title, options=case.options):
                inputs, found = self.results(case)
                for name, verdict in check(case, inputs, found).items():
                    self.assertEqual(verdict.status, "pass", f"{name}: {verdict.reason}")
                for output in case.op.output_names:
                    ours, plain = found["ropegrad"][output], found["eager"][output]
                    self.assertEqual(ours.dtype, plain.dtype)
                    self.assertEqual(ours.shape, plain.shape)
                    narrowest = max((d for d in case.dtypes.values() if d in TOLERANCES), key=lambda d: TOLERANCES[d])
                    scale = float(plain.double().abs().max())
                    far = float((ours.double() - plain.double()).abs().max())
                    self.assertLessEqual(far, 2 * TOLERANCES[narrowest][1] * scale)

    def test_the_adjoint_is_what_autograd_finds(self) -> None:
        """The plain backward passes themselves, against PyTorch's own of a forward pass."""
        case = next(c for c in small_cases() if c.op.name == "rope_apply" and c.name == "float64")
        tensors = Arguments(case, CPU_DEVICE, seed=3).move()
        inputs = [tensors[n].clone().requires_grad_() for n in ("q", "k", "cos", "sin")]
        q, k, cos, sin = inputs
        c, s = cos.unsqueeze(1), sin.unsqueeze(1)

        def turn(x: torch.Tensor) -> torch.Tensor:
            first, second = x.chunk(2, dim=-1)
            return x * c + torch.cat((-second, first), dim=-1) * s

        expected = torch.autograd.grad((turn(q), turn(k)), inputs, (tensors["grad_q_embed"], tensors["grad_k_embed"]))
        for got, value in zip(eager(case).prepare(tensors)(), expected, strict=True):
            torch.testing.assert_close(got, value)

    def test_a_wrong_result_is_found(self) -> None:
        for case in (c for c in small_cases() if not c.in_place):
            inputs, found = self.results(case)
            for output in case.op.output_names:
                with self.subTest(case=case.title, output=output):
                    spoiled = {name: value.clone() for name, value in found["eager"].items()}
                    spoiled[output].flatten()[0] += 3 * spoiled[output].abs().max() + 1
                    verdict = check(case, inputs, {"eager": spoiled})["eager"]
                    self.assertEqual((verdict.status, verdict.worst), ("fail", output))
                    spoiled[output].flatten()[0] = float("nan")
                    self.assertEqual(check(case, inputs, {"eager": spoiled})["eager"].status, "fail")

    def test_outputs_that_are_not_wanted_stay_untouched(self) -> None:
        case = next(c for c in small_cases() if c.op.name == "rope_apply")
        tensors = Arguments(case, CPU_DEVICE, seed=1).move()
        for name in ("grad_cos", "grad_sin"):
            tensors[name].fill_(5)
        ropegrad(case, self.context, ("grad_q", "grad_k")).prepare(tensors)()
        self.assertTrue(bool((tensors["grad_cos"] == 5).all() and (tensors["grad_sin"] == 5).all()))

    def test_a_refused_call_says_why(self) -> None:
        case = next(c for c in small_cases() if c.op.name == "rope_2d")
        shapes = {t.name: t.shape(case.dims) for t in case.op.tensors} | {"grad_sin": (1, 2, 3)}
        call = Call(self.context, "rope_2d", shapes, case.dtypes, {})
        call.place({name: 256 for name in shapes})
        with self.assertRaisesRegex(RopegradError, "grad_sin"):
            call.run()


class Inputs(unittest.TestCase):
    def test_tensors_move_by_the_step_within_the_range(self) -> None:
        for case in small_cases():
            arguments = Arguments(case, CPU_DEVICE, seed=1)
            seen: dict[str, set[int]] = {}
            for _ in range(40):
                for name, tensor in arguments.move().items():
                    self.assertEqual(tensor.data_ptr() % STEP_BYTES, 0)
                    self.assertTrue(tensor.is_contiguous())
                    seen.setdefault(name, set()).add(tensor.data_ptr())
            for name, addresses in seen.items():
                self.assertGreater(len(addresses), 1, name)
                self.assertLess(max(addresses) - min(addresses), 5 * (RANGE_BYTES + 4096), name)

    def test_tables_keep_equal_halves_and_positions_their_order(self) -> None:
        for case in small_cases():
            arguments = Arguments(case, CPU_DEVICE, seed=1)
            for _ in range(10):
                tensors = arguments.move()
                if "cos" in tensors and "sin" in tensors:
                    for table in (tensors["cos"], tensors["sin"]):
                        first, second = table.chunk(2, dim=-1)
                        self.assertTrue(torch.equal(first, second))
                if "cache_position" in tensors:
                    self.assertEqual(tensors["cache_position"].tolist(), [0, 1, 2])

    def test_a_budget_leaves_calls_out(self) -> None:
        protocol = Protocol()
        self.assertEqual(calls_within(0, 1.0, protocol), (10, 50))
        self.assertEqual(calls_within(2, 1e-6, protocol), (10, 50))
        self.assertEqual(calls_within(2, 10.0, protocol), (1, 5))

    def test_cpus_are_cores_of_their_own_first(self) -> None:
        allowed = machine.online()
        self.assertEqual(sorted(machine.cpus_for(len(allowed), allowed)), sorted(allowed))
        self.assertEqual(machine.cpu_list("0-2,5"), [0, 1, 2, 5])


class Spans(unittest.TestCase):
    """What is read out of a profile of the GPU."""

    WAIT, FLUSH = "void spin_kernel(long)", "elementwise_kernel<bitwise_not_kernel>"

    def test_a_call_is_what_stands_between_a_flush_and_the_next_wait(self) -> None:
        activities = [
            (0, 10, self.WAIT), (20, 30, "forward pass, untimed"), (40, 90, self.FLUSH),
            (100, 1100, "a"), (2100, 3100, "b"),
            (4000, 4010, self.WAIT), (4020, 4090, self.FLUSH), (5000, 7000, "c"), (6000, 9000, "overlaps"),
            (9500, 9600, self.WAIT),
        ]  # fmt: skip
        first, second = read_spans(activities, 2)
        self.assertEqual((first.us, first.activities, first.idle), (3.0, 2, 1.0))
        self.assertEqual((second.us, second.activities, second.idle), (4.0, 2, 0.0))

    def test_a_profile_that_lost_something_is_refused(self) -> None:
        whole = [(0, 10, self.WAIT), (20, 30, self.FLUSH), (40, 50, "a")]
        for activities in (whole[:2], whole[1:2] + whole, [whole[0], whole[2]]):
            with self.assertRaises(TimingError):
                read_spans(activities, 1)


class Costs(unittest.TestCase):
    def test_as_the_operators_count_them(self) -> None:
        """Figures of `ropegrad bench` for the first case of each operator of the suite."""
        expected = {
            ("rotary_embedding", False): (6299648, 32768),
            ("rope_2d", False): (1583104, 791552),
            ("vision_rotary", False): (10813440, 72),
        }
        _, cases = load_suite("sol-execbench-rope")
        for (op, in_place), (read, write) in expected.items():
            case = select(cases, [op], [], "no", None)[0]
            work = cost(case.op, case.dims, case.dtypes, in_place)
            self.assertEqual((work.read_bytes, work.write_bytes), (read, write), op)


class Records(unittest.TestCase):
    def test_a_record_of_a_gpu_conforms_to_the_schema(self) -> None:
        case = select(load_suite("sol-execbench-rope")[1], ["rope_apply"], [], "no", None)[0]

        def result(name: str, outputs: tuple[str, ...], us: float, rival_us: float) -> PeerResult:
            series = Series([[us, us + 1, us + 2]] * 3, [2] * 9, [0.5] * 9)
            contender = Contender(name, outputs, lambda _: lambda: None, lambda _r, _t: {})
            return PeerResult(contender, Verdict("pass"), series, rival_us)

        measured = CaseResult(case, "cuda:0", "cuda.sm90.dense", 16, timing=Timing(5, 3, {}))
        measured.own = result("ropegrad", case.op.output_names, 2, 3)
        measured.peers = [result("eager", case.op.output_names, 5, 3), result("liger_kernel", ("grad_q",), 1, 2.5)]
        said = ("580.159.04", "1980", "3201", "345", "3201", "29", "700.00", "76.5")
        answers = dict(zip(gpu.QUERY, said, strict=True))
        sizes = {"multi_processor_count": 132, "L2_cache_size": 60 << 20, "total_memory": 1 << 37}
        properties = mock.Mock(major=9, minor=0, **sizes)
        properties.name = "a GPU"
        with (
            tempfile.TemporaryDirectory() as build,
            mock.patch.object(gpu, "_ask", return_value=answers),
            mock.patch.object(gpu, "_attribute", side_effect=lambda _, a: {36: 2_500_000, 37: 1024}[a]),
            mock.patch.object(torch.cuda, "get_device_properties", return_value=properties),
        ):
            (Path(build) / "cuda").mkdir()
            (Path(build) / "cuda" / "rg_rope_apply_image.fatbin").write_bytes(b"")
            software = {"gpu": gpu.facts(torch.device("cuda", 0), Path(build) / "libropegrad.so")}
        environment = machine.environment(LIBRARY, "0.1.0", ["peers"], 16)
        record = record_json("suite", None, environment, software, Protocol(), True, [measured])
        document = json.loads(json.dumps(record))
        self.assertEqual(problems_of(document), [])
        (row,) = document["summary"]
        self.assertEqual([p["ratio"] for p in row["peers"]], [2.0, 0.8])
        self.assertEqual(row["slower_than_a_peer"], [case.name])
        self.assertEqual(software["gpu"]["datasheet_gb_per_s"], 640)
        self.assertEqual(software["gpu"]["images"], {"rope_apply": "99aa06d3014798d86001c324468d497f"})  # of no bytes
        (entry,) = document["cases"]
        self.assertAlmostEqual(entry["roofline_us"], (entry["read_bytes"] + entry["write_bytes"]) / 640e3)
        self.assertIs(entry["below_roofline"], True)

    def test_the_driver_is_asked_for_fields_that_it_has(self) -> None:
        """One unknown field, and nvidia-smi answers none of them."""
        fields = {"driver_version", "clocks.max.sm", "clocks.max.mem", "clocks.max.memory", "clocks.sm", "clocks.mem",
                  "clocks.current.sm", "clocks.current.memory", "temperature.gpu", "power.limit",
                  "power.draw"}  # fmt: skip
        self.assertEqual(set(gpu.QUERY) - fields, set())

    def test_the_commit_is_what_the_build_left_beside_the_library(self) -> None:
        with tempfile.TemporaryDirectory() as build:
            self.assertIsNone(machine.build_info(Path(build) / "libropegrad.so")["commit"])
            header = Path(build) / "ropegrad_build_info.h"
            header.write_text('#define ROPEGRAD_BUILD_COMMIT "0123abc"\n#define ROPEGRAD_BUILD_DIRTY 0\n')
            info = machine.build_info(Path(build) / "libropegrad.so")
        self.assertEqual((info["commit"], info["dirty"]), ("0123abc", False))


class CompilingAhead(unittest.TestCase):
    def test_a_helper_runs_on_one_thread_and_believes_what_it_is_told_of_vectors(self) -> None:
        """Else as many teams as there are CPUs, each with a thread for every CPU, wait for one another; and every
        helper tries every kind of vector, one helper at a time."""
        script = (
            "from peers.compile_cache import _start_helper, usable_vectors; _start_helper(['avx2'])\n"
            "import ctypes, re, torch\n"
            "from pathlib import Path\n"
            "found = re.search(r'(/\\S*libgomp\\S*)', Path('/proc/self/maps').read_text())\n"
            "print(ctypes.CDLL(found.group(1)).omp_get_thread_limit(), usable_vectors())"
        )
        said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout.strip(), "1 ['avx2']")


class CommandLine(unittest.TestCase):
    def run_peers(self, *argv: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = cli.main([*argv, "--library", str(LIBRARY)])
            except SystemExit as stop:
                code = int(stop.code or 0)
        return code, out.getvalue(), err.getvalue()

    def test_a_record_conforms_to_the_schema(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            suite, record = Path(folder) / "tiny.json", Path(folder) / "record.json"
            cases: list[dict[str, Any]] = [{"op": op, "name": "tiny", "dims": dims} for op, dims in SMALL.items()]
            cases.append({"op": "rope_2d", "name": "strided", "dims": SMALL["rope_2d"],
                          "layouts": {"grad_cos": {"pad": 1}}})  # fmt: skip
            suite.write_text(json.dumps({"suite": "tiny", "cases": cases}))
            code, out, err = self.run_peers(
                *("--suite", str(suite), "--device", "cpu", "--threads", "1", "--peer", "eager"),
                *("--repetitions", "2", "--calls", "3", "--warmups", "1", "--json", str(record)),
            )
            document = json.loads(record.read_text())
        self.assertIn(code, (0, 1), err)  # 1: slower than a peer, which such a short run may show
        self.assertEqual(problems_of(document), [])
        self.assertEqual((document["passed"], document["failed"], document["skipped"]), (6, 0, 1))
        for case in document["cases"]:
            if case["verify"]["status"] == "pass":
                self.assertEqual(len(case["samples_us"]), 6)
                self.assertEqual([p["name"] for p in case["peers"]], ["eager"])
                self.assertAlmostEqual(case["peers"][0]["ratio"], case["peers"][0]["latency_us"] / case["latency_us"])
        self.assertRegex(document["suite_digest"], "^xxh128:[0-9a-f]{32}$")
        self.assertIn("not compared here", out)
        self.assertIn("geometric mean", out)

    def test_a_record_without_a_commit_is_announced(self) -> None:
        unknown = {"commit": None, "dirty": None, "compiler": "", "flags": ""}
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(machine, "build_info", return_value=unknown):
            suite = Path(folder) / "tiny.json"
            suite.write_text(json.dumps({"cases": [{"op": "rope_2d", "name": "tiny", "dims": SMALL["rope_2d"]}]}))
            argv = ("--suite", str(suite), "--device", "cpu", "--threads", "1", "--peer", "eager")
            self.assertNotIn("no commit", self.run_peers(*argv)[1])
            self.assertIn("no commit", self.run_peers(*argv, "--json", str(Path(folder) / "record.json"))[1])

    def test_wrong_use_gets_one_line(self) -> None:
        for code, word, argv in (
            (2, "rope_2d", ("--op", "rope2d")),
            (2, "b2_s773", ("--case", "b2_s77")),
            (2, "suites/ has", ("--suite", "nosuch")),
            (2, "there are eager", ("--peer", "nobody")),
            (3, "--threads 1024", ("--device", "cpu", "--threads", "1024")),
        ):
            with self.subTest(argv=argv):
                got, out, err = self.run_peers(*argv)
                self.assertEqual((got, out), (code, ""))
                self.assertIn(word, err)
                self.assertEqual(err.count("\n"), 1)

    def test_help_teaches(self) -> None:
        code, out, _ = self.run_peers("--help")
        self.assertEqual(code, 0)
        for word in ("Examples:", "Exit codes:", "Protocol:"):
            self.assertIn(word, out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
