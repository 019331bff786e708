"""The timers that the proof compares, and the frameworks' methods.

The cases are in real frameworks on the CPU, the rest of the code on the fakes, with kernels of known length in place of
the cases.
"""

from __future__ import annotations

import ctypes
import io
import json
import sys
import tempfile
import types
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.errors import NotAvailable
from gpu.proof.driver import PrimaryContext
from gpu.proof.json_lines import run_and_collect
from gpu.proof.parts import beside_profiler, framework_work, frameworks
from gpu.proof.parts.timers import cases, driver_calls, with_jax, with_torch
from gpu.proof.parts.timers.cases import EMPTY, Case
from gpu.proof.record import Deadline, NotHere, PartRecord, read

pytestmark = pytest.mark.sanitized
needs_frameworks = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "jax"))), reason="`make test` installs frameworks and runs this"
)
KERNEL_NS = 20_000
NEEDS_MORE = ("nvbench", "triton do_bench")  # nothing stands in for them


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "_NORMED", (4, 32))
    monkeypatch.setattr(cases, "_ATTENDED", (1, 2, 16, 8))


@pytest.mark.slow
@needs_frameworks
@pytest.mark.usefixtures("small")
def test_every_case_runs_in_pytorch_and_in_jax() -> None:
    import jax
    import torch

    of_torch = cases.torch_cases(torch, "cpu", gemms=(16,), added=64)
    of_jax = cases.jax_cases(jax, gemms=(16,), added=64)
    names = ["vector add", "layernorm", "gemm 16", "attention", f"chain of {cases.CHAIN}"]
    assert [case.name for case in of_torch] == [case.name for case in of_jax] == names
    for case in of_torch:
        case.call()
    jax.block_until_ready([case.call() for case in of_jax])


@needs_frameworks
def test_the_lengths_in_the_traces_of_both_profilers_are_found() -> None:
    import jax
    import torch

    lengths = {}
    for kind in ("cpu_op", "kernel"):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            torch.ones(64) + 1
        lengths[kind] = with_torch.kernel_lengths_ns(profile, kind)
    assert lengths["cpu_op"]
    assert all(length > 0 for length in lengths["cpu_op"])
    assert lengths["kernel"] == []  # there is no GPU
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(jax.numpy.ones(64) + 1)
        assert with_jax.kernel_lengths_ns(jax, Path(folder)) == []
    with tempfile.TemporaryDirectory() as folder, pytest.raises(RuntimeError, match="wrote no trace"):
        with_jax.kernel_lengths_ns(jax, Path(folder))


class Event:
    """As torch.cuda.Event, on the fake device."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._event = machine, ctypes.c_void_p()
        machine.cuda.cuEventCreate(ctypes.byref(self._event), ctypes.c_uint(0))

    def record(self) -> None:
        self._machine.cuda.cuEventRecord(self._event, ctypes.c_void_p(self._machine.stream))

    def elapsed_time(self, stop: Event) -> float:
        milliseconds = ctypes.c_float()
        code = self._machine.cuda.cuEventElapsedTime_v2(ctypes.byref(milliseconds), self._event, stop._event)
        assert code == 0
        return milliseconds.value


def torch_on(machine: Machine) -> Any:
    """Fake what the timers use of PyTorch on the fake device; its profiler is the real one."""
    import torch

    cuda = types.SimpleNamespace(
        synchronize=machine.synchronize,
        current_stream=lambda: machine.stream,
        Event=lambda enable_timing: Event(machine),
    )
    return types.SimpleNamespace(cuda=cuda, profiler=torch.profiler)


def one_case(machine: Machine) -> list[Case]:
    return [Case(EMPTY, partial(machine.kernel, KERNEL_NS))]


@pytest.mark.slow
@on_fakes
def test_every_timer_of_pytorch_reads_the_length_of_the_kernel() -> None:
    machine = Machine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(with_torch, "_started", lambda: (torch_on(machine), one_case(machine)))
        for name, timer in with_torch.TIMERS.items():
            if name in NEEDS_MORE:
                continue
            [(case, reading)] = timer()
            assert case == EMPTY
            assert reading.samples > 0
            if name == "torch.profiler":  # sees no kernel of the fake device
                assert "in" in reading.note or reading.ns == 0
                continue
            assert reading.ns == pytest.approx(KERNEL_NS, abs=1), name
            assert reading.host_ns_per_sample is not None


@pytest.mark.slow
@on_fakes
def test_a_timer_that_is_not_installed_is_named() -> None:
    machine = Machine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(with_torch, "_started", lambda: (torch_on(machine), one_case(machine)))
        for module in ("triton", "triton.testing", "cuda", "cuda.bench", "cuda.nvbench"):
            patch.setitem(sys.modules, module, None)
        packages = []
        for name in NEEDS_MORE:
            with pytest.raises(NotHere) as absent:
                list(with_torch.TIMERS[name]())
            packages.append(absent.value.package)
    assert packages == ["cuda-bench", "triton"]


@pytest.mark.slow
@on_fakes
def test_every_timer_of_jax_reads_the_length_of_the_kernel() -> None:
    import jax

    machine = Machine()
    add = jax.jit(lambda x: x + 1)
    x = jax.numpy.ones(4)

    def call() -> Any:
        machine.kernel(KERNEL_NS)
        return add(x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(with_jax, "_started", lambda: (jax, [Case("one", call)]))
        for name, timer in with_jax.TIMERS.items():
            [(case, reading)] = timer()
            assert case == "one"
            if name.startswith("fairlap"):
                assert reading.ns == pytest.approx(KERNEL_NS, rel=0.01), name


SAMPLES = 200


@on_fakes
def test_each_of_the_drivers_calls_in_a_sample_is_timed_by_itself_and_as_often_as_samples_have_it() -> None:
    from fairlap.engine.cuda.stream_calls import time_on_stream

    machine = Machine()
    counted: dict[str, list[int]] = {}
    for samples in (SAMPLES, 2 * SAMPLES):
        machine.cuda.fake_cuda_reset_call_counts()
        time_on_stream(
            lambda: machine.kernel(KERNEL_NS),
            stream=machine.stream,
            samples=samples,
            warmup=5,
            calls_per_sample=1,
            gate="stream_wait",
        )
        for name in driver_calls.OF_A_SAMPLE:
            counted.setdefault(name, []).append(machine.cuda.fake_cuda_call_count(name.encode()))
    assert {name: round((more - few) / SAMPLES) for name, (few, more) in counted.items()} == driver_calls.OF_A_SAMPLE
    before = machine.outstanding()
    costs = dict(driver_calls.costs_ns(PrimaryContext()))
    assert set(costs) == {*driver_calls.OF_A_SAMPLE, *driver_calls.OF_A_PAIR, *driver_calls.ASKING}
    assert all(ns > 0 for ns in costs.values())
    assert machine.outstanding() == before + 3  # the context that was retained, is current, and has a stream
    assert driver_calls.sum_ns({"cuEventRecord": 2.0, "cuEventElapsedTime": 3.0}, driver_calls.OF_A_PAIR) == 7.0


def lines_of(act: Callable[[], None]) -> list[dict[str, Any]]:
    with redirect_stdout(io.StringIO()) as printed:
        act()
    return [json.loads(line) for line in printed.getvalue().splitlines()]


def work_on(machine: Machine, stream: object, **more: Any) -> framework_work.Work:
    return framework_work.Work(
        lambda: machine.kernel(KERNEL_NS), lambda _: machine.synchronize(), stream or machine.stream, **more
    )


@pytest.mark.slow
@on_fakes
def test_every_method_is_tried_on_the_stream_that_is_exposed_or_found() -> None:
    machine = Machine()
    exposed = lines_of(lambda: framework_work.report_all(work_on(machine, 0)))
    find = lambda _call: machine.stream  # noqa: E731
    found = lines_of(lambda: framework_work.report_all(work_on(machine, framework_work.HIDDEN, find=find)))
    methods = {row["method"] for row in exposed}
    assert methods == {row["method"] for row in found}
    assert len(methods) == len(exposed) == 6
    for row in (*exposed, *found):
        assert row["invalid"] == 0, row
        if row["method"].startswith(("device_span", "kernel_sum", "context_span, waited")):
            assert row["ns"] == pytest.approx(KERNEL_NS, abs=32), row
    assert [row["streams"] == [row["handed_over"]] for row in (exposed[-1], found[-1])] == [True, True]


def none_found(_call: object) -> object:
    raise NotAvailable("the call works on 2 streams")


@pytest.mark.slow
@on_fakes
def test_a_stream_that_is_not_found_is_a_row_and_the_other_methods_are_tried() -> None:
    machine = Machine()
    rows = lines_of(lambda: framework_work.report_all(work_on(machine, framework_work.HIDDEN, find=none_found)))
    by_method = {row["method"]: row for row in rows}
    assert "2 streams" in by_method[framework_work.SEARCH]["note"]
    assert by_method["context_span, waited for"]["ns"] == pytest.approx(KERNEL_NS, abs=32)
    assert not any(method.startswith("device_span") for method in by_method)


def kernel_times_around_another_profiler(machine: Machine) -> None:
    """Register a clock of cycles between, as libkineto does at the start of every session of PyTorch's profiler."""
    cycles = ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: 3)
    work = work_on(machine, machine.stream)
    beside_profiler._ours(work, "before")
    assert machine.cupti.cuptiActivityRegisterTimestampCallback(cycles) == 0
    beside_profiler._ours(work, "after one session")


@on_fakes
def test_the_part_on_methods_records_what_its_programs_report() -> None:
    """The probes are the real ones on the fakes; a program of known kernels stands in for those of the frameworks."""
    machine = Machine()
    rows = lines_of(lambda: framework_work.report_all(work_on(machine, 0)))
    without_stream = framework_work.HIDDEN
    failed = lines_of(lambda: framework_work.report_all(work_on(machine, without_stream, find=none_found)))
    in_turns = lines_of(partial(kernel_times_around_another_profiler, machine))

    def collect(module: str, *names: str, limit_s: float, each: Callable[[dict[str, Any]], None]) -> None:
        if "probes" in module:
            return run_and_collect(module, limit_s=limit_s, each=each)
        for row in in_turns if not names else failed if names == ("tensorflow",) else rows:
            each(row)
        return None

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(frameworks, "run_and_collect", collect)
        record = PartRecord(Path(folder) / "part.json", 4, "made up")
        frameworks.run(record, Deadline(600))
        record.end()
        content = read(Path(folder) / "part.json")
    assert content is not None
    assert content["status"] == "finished", content["reason"]
    assert {"probe event_quantum", "probe context_events", "methods"} <= set(content["tables"])
    goals = {goal["goal"]: goal["reached"] for goal in content["goals"]}
    assert len(goals) == 2 * len(framework_work.FRAMEWORKS) + len(("jax", "tensorflow")) + len(("beside a profiler",))
    assert [row["ns"] for row in content["tables"]["records beside PyTorch's profiler"]] == [KERNEL_NS] * 2
    unknown = sorted(name for name, reached in goals.items() if reached is None)
    assert [name.partition(" ")[:1] for name in unknown] == [("tensorflow:",)] * 2  # its span, and its stream
    assert False not in goals.values()
