"""``fairlap time --device`` as a process, with the fake driver in the place of the real one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import error_code, fairlap, refusal
from cuda_on_fakes import environment_with_fakes

pytestmark = pytest.mark.sanitized

EXAMPLES = Path(__file__).parents[3] / "docs/examples/gpu"
SUPPORT = Path(__file__).parents[2] / "support/frameworks_on_fakes"
KERNELS = """
from fake_device import _cuda, launch, new_stream

stream, other = new_stream(), new_stream()

def fast():
    launch("fast_kernel", stream, 30_000)

def slow():
    launch("slow_kernel", stream, 60_000)

def elsewhere():
    launch("elsewhere", other, 60_000)

written = [0]

def cached():
    fills = _cuda.fake_cuda_call_count(b"cuMemsetD32Async")
    launch("cached_kernel", stream, 30_000 if fills == written[0] else 60_000)
    written[0] = fills

def my_stream():
    return stream

def broken():
    raise ValueError("no")

def draw(rng, n=1):
    return n

def linear(n):
    launch("linear_kernel", stream, 20_000 + 1_000 * n)

def constant(n):
    launch("constant_kernel", stream, 50_000)

def moved(n):
    return 3_000_000 * n
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    variables = environment_with_fakes()
    chosen: dict[str, Any] = {name: variables[name] for name in ("FAIRLAP_LIBCUDA", "FAIRLAP_LIBCUPTI")}
    return fairlap("time", *arguments, cwd=folder, PYTHONPATH=str(SUPPORT), **chosen)


def document(folder: Path, *arguments: object) -> Any:
    done = run(folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_callable_is_timed_on_the_stream_that_cupti_sees_and_its_kernels_are_named(folder: Path) -> None:
    found = document(folder, "kernels:fast", "--device", "cuda", "--samples", 30, "--calls", 1)
    assert found["quantities"]["device_span_ns"]["p50_ns"] == pytest.approx(30_000, rel=0.01)
    assert found["kernels"] == {"fast_kernel": {"per_call": 1.0, "ns_per_call": 30_000.0}}
    assert found["kernels_absent"] == ""
    assert found["calls_per_sample"] == 1


@pytest.mark.slow
def test_a_stream_can_be_named_by_a_module(folder: Path) -> None:
    found = document(folder, "kernels:fast", "--device", "cuda:0", "--stream", "kernels:my_stream", "--samples", 30)
    assert found["quantities"]["device_span_ns"]["p50_ns"] == pytest.approx(30_000, rel=0.01)


def test_every_method_gives_its_own_quantity(folder: Path) -> None:
    for method in ("context_span", "kernel_sum", "host_issue", "wall"):
        found = document(folder, "kernels:fast", "--device", "cuda", "--method", method, "--samples", 20)
        assert next(iter(found["quantities"])) == f"{method}_ns"


def test_a_cold_cache_and_a_graph_are_in_force(folder: Path) -> None:
    cold = document(folder, "kernels:fast", "--device", "cuda", "--cache", "cold", "--samples", 20, "--calls", 1)
    assert "flushed" in cold["settings"]["cache"]
    graph = document(folder, "kernels:fast", "--device", "cuda", "--graph", "--samples", 20)
    assert graph["settings"]["graph"] == "1 node"


@pytest.mark.slow
def test_a_cold_call_is_shown_beside_a_warm_one(folder: Path) -> None:
    """The kernel takes twice as long wherever the cache has been written to since its last call."""
    cold = document(folder, "kernels:cached", "--device", "cuda", "--cache", "cold", "--samples", 20)
    assert cold["quantities"]["device_span_ns"]["p50_ns"] == pytest.approx(60_000, rel=0.01)
    assert "2.00" in cold["settings"]["warm_cache"]
    warm = document(folder, "kernels:cached", "--device", "cuda", "--samples", 20)
    assert warm["quantities"]["device_span_ns"]["p50_ns"] == pytest.approx(30_000, rel=0.01)
    assert "warm_cache" not in warm["settings"]


@pytest.mark.slow
def test_the_regime_is_part_of_the_figure(folder: Path) -> None:
    found = document(folder, "kernels:fast", "--device", "cuda", "--regime", "burst", "--samples", 20, "--calls", 1)
    assert found["settings"]["regime"].startswith("burst")
    assert found["quantities"]["device_span_ns"]["p50_ns"] == pytest.approx(30_000, rel=0.01)


def test_two_callables_are_compared_on_the_device(folder: Path) -> None:
    names = ("kernels:fast", "kernels:slow")
    found = document(folder, *names, "--device", "cuda", "--blocks", 6, "--seconds", "5ms", "--calls", 1)
    [comparison] = found["comparisons"]
    assert {comparison["a"], comparison["b"]} == set(names)
    assert max(comparison["ratio"], 1 / comparison["ratio"]) == pytest.approx(2.0, rel=0.02)
    assert found["kernels_by_callable"]["kernels:slow"]["kernels"].keys() == {"slow_kernel"}


@pytest.mark.slow
def test_callables_on_different_streams_are_not_compared_by_one(folder: Path) -> None:
    done = run(folder, "kernels:fast", "kernels:elsewhere", "--device", "cuda", "--blocks", 6)
    assert (done.returncode, error_code(done)) == (2, "E_REQUEST")
    walls = document(folder, "kernels:fast", "kernels:elsewhere", "--device", "cuda", "--method", "wall", "--blocks", 2)
    assert len(walls["rows"]) == 2


def test_a_callable_that_raises_on_the_device_is_named(folder: Path) -> None:
    done = run(folder, "kernels:broken", "--device", "cuda")
    assert (done.returncode, error_code(done)) == (2, "E_CALLABLE_RAISED")


@pytest.mark.slow
def test_the_kernel_file_of_the_documentation_is_timed(folder: Path) -> None:
    arguments = ("--grid", 16384, "--block", 256, "--args", "buffer:16MiB,buffer:16MiB,f32:2.5,u32:4194304")
    found = document(folder, f"{EXAMPLES / 'saxpy.ptx'}:saxpy", *arguments, "--samples", 20)
    assert found["kernels"].keys() == {"saxpy"}
    assert found["settings"]["call"] == "native"
    text = run(folder, f"{EXAMPLES / 'saxpy.ptx'}:saxpy", *arguments, "--samples", 20).stdout
    assert "in 1 of saxpy" in text


@pytest.mark.slow
def test_two_kernel_files_are_compared(folder: Path) -> None:
    file = EXAMPLES / "saxpy.ptx"
    arguments = ("--args", "buffer:4KiB,buffer:4KiB,f32:2.5,u32:1024", "--blocks", 6, "--seconds", "5ms")
    found = document(folder, f"{file}:saxpy", f"{file}:nothing", *arguments)
    assert len(found["comparisons"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("math:factorial", "--grid", "4"),
        ("math:factorial", "--method", "kernel_sum"),
        ("math:factorial", "--graph"),
        ("math:factorial", "--regime", "burst"),
        ("k.ptx:f", "--method", "wall", "--regime", "sustained"),
        ("math:factorial", "--device", "cpu", "--stream", "hidden"),
        ("k.ptx:f", "math:factorial"),
        ("k.ptx:f", "--device", "cpu"),
        ("k.ptx:f", "--grid", "none"),
        ("k.ptx:f", "--args", "f32"),
        ("k.ptx:f", "--method", "wall", "--graph"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(arguments: tuple[str, ...]) -> None:
    assert refusal("time", *arguments).code == "E_REQUEST"


def test_without_a_driver_the_reason_is_one_line(tmp_path: Path) -> None:
    done = fairlap("time", "os:getpid", "--device", "cuda", FAIRLAP_LIBCUDA=tmp_path / "none.so")
    assert (done.returncode, error_code(done)) == (2, "E_NOT_AVAILABLE")


@pytest.mark.slow
def test_kernels_over_axes_are_timed_on_their_stream(folder: Path) -> None:
    two = ("kernels:linear", "kernels:constant")
    axes = ("--inputs", "kernels:draw", "--axis", "n=10,20,50,100", "--blocks", 14, "--seconds", "1ms")
    found = document(folder, *two, "--device", "cuda", *axes)
    rows = [{row["name"]: row["median_ns"] for row in point["rows"]} for point in found["points"]]
    assert [row["kernels:linear"] for row in rows] == pytest.approx([30_000, 40_000, 70_000, 120_000], rel=0.02)
    assert [row["kernels:constant"] for row in rows] == pytest.approx([50_000] * 4, rel=0.02)
    assert found["quantity"] == "device_span_ns"
    [crossing] = found["crossings"]
    assert (crossing["faster_below"], crossing["low"], crossing["high"]) == ("kernels:linear", 20, 50)
    assert found["costs"][0]["cost"]["slope_ns"]["value"] == pytest.approx(1_000, rel=0.05)


def test_declared_bytes_show_their_rate_and_its_share_of_the_devices_own_roof(folder: Path) -> None:
    """The fake device reads 6 TB/s from its L2 cache of 50 MB, and 3 TB/s from its memory."""
    axes = ("--inputs", "kernels:draw", "--axis", "n=10,20", "--bytes", "kernels:moved", "--blocks", 4)
    arguments = ("kernels:linear", "kernels:constant", "--device", "cuda", *axes, "--seconds", "1ms")
    done = run(folder, *arguments, "-o", "found.json", "-o", "found.md")
    assert done.returncode == 0, done.stderr
    points = json.loads((folder / "found.json").read_text())["points"]
    shares = [(each["roof"], each["share"]) for point in points for each in point["roof_shares"].values()]
    assert [roof for roof, _ in shares] == ["L2", "L2", "memory", "memory"]
    assert [share for _, share in shares] == pytest.approx([1 / 6, 1 / 10, 1 / 2, 2 / 5], rel=0.01)
    rates = [float(rate.replace(",", "")) for rate in re.findall(r"([\d,.]+) GB/s", (folder / "found.md").read_text())]
    assert rates == pytest.approx([1000, 600, 1500, 1200], rel=0.01)
