"""Timers of PyTorch calls. Each takes the cases and gives one reading for each."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...record import NotHere
from .cases import EMPTY, Case, torch_cases
from .reading import KERNELS, SPAN, Reading, calls_for, issue_ns, middle, notices_of


def _started() -> tuple[Any, list[Case]]:
    try:
        import torch
    except ImportError:
        raise NotHere("PyTorch is not installed", "torch") from None
    if not torch.cuda.is_available():
        raise NotHere("this PyTorch has no CUDA", "torch")
    side = torch.cuda.Stream()
    torch.cuda.set_stream(side)
    return torch, torch_cases(torch)


def fairlap_span(gate: str) -> Iterator[tuple[str, Reading]]:
    from fairlap.engine.cuda.stream_calls import time_on_stream

    torch, cases = _started()
    for case in cases:
        calls = calls_for(case.call, torch.cuda.synchronize)
        result = time_on_stream(
            case.call,
            stream=torch.cuda.current_stream(),
            samples=calls,
            warmup=5,
            calls_per_sample=1,
            gate=gate,  # type: ignore[arg-type]
        )
        note = "; ".join(filter(None, (f"gate {result.settings['gate']}", notices_of(result))))
        yield (
            case.name,
            Reading(result.median_ns, SPAN, result.samples, _cost(torch, case, result.elapsed_s, calls), note),
        )


def fairlap_kernels() -> Iterator[tuple[str, Reading]]:
    from fairlap.engine.cuda.stream_calls import time_on_stream

    torch, cases = _started()
    for case in cases:
        calls = calls_for(case.call, torch.cuda.synchronize)
        result = time_on_stream(
            case.call,
            stream=torch.cuda.current_stream(),
            method="kernel_sum",
            samples=calls,
            warmup=5,
            calls_per_sample=1,
        )
        cost = _cost(torch, case, result.elapsed_s, calls)
        yield case.name, Reading(result.median_ns, KERNELS, result.samples, cost, notices_of(result))


def torch_events() -> Iterator[tuple[str, Reading]]:
    """As it is done by hand: a pair for every call, made before, read after."""
    torch, cases = _started()
    for case in cases:
        calls = calls_for(case.call, torch.cuda.synchronize)
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
        for start, stop in pairs:  # the first record of an event makes it
            start.record()
            stop.record()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for start, stop in pairs:
            start.record()
            case.call()
            stop.record()
        torch.cuda.synchronize()
        spans = [start.elapsed_time(stop) * 1e6 for start, stop in pairs]
        elapsed_s = time.perf_counter() - begun
        yield case.name, Reading(middle(spans), SPAN, calls, _cost(torch, case, elapsed_s, calls))


def triton_do_bench() -> Iterator[tuple[str, Reading]]:
    _, cases = _started()
    try:
        from triton.testing import do_bench
    except ImportError:
        raise NotHere("Triton is not installed", "triton") from None
    for case in cases:
        ms = do_bench(case.call, warmup=25, rep=100, return_mode="median")
        yield case.name, Reading(float(ms) * 1e6, SPAN, 0, note="its cache flush is on: a cold cache")


def torch_profiler() -> Iterator[tuple[str, Reading]]:
    torch, cases = _started()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for case in cases:
        calls = min(100, calls_for(case.call, torch.cuda.synchronize))
        with torch.profiler.profile(activities=activities) as profile:
            for _ in range(calls):
                case.call()
            torch.cuda.synchronize()
        lengths = kernel_lengths_ns(profile)
        note = "" if len(lengths) % calls == 0 else f"{len(lengths)} kernels in {calls} calls"
        yield case.name, Reading(sum(lengths) / calls, KERNELS, calls, note=note or "mean of the calls")


def kernel_lengths_ns(profile: Any, kind: str = "kernel") -> list[float]:
    """From the trace that it writes, whose form changes less than the profiler's own classes."""
    with tempfile.TemporaryDirectory(prefix="fairlap-trace-") as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    return [float(event["dur"]) * 1e3 for event in events if event.get("cat") == kind and "dur" in event]


def nvbench() -> Iterator[tuple[str, Reading]]:
    """Time by NVBench's Python package.

    It holds the stream by a kernel, which calls that wait would never pass: ``sync`` is off only where that is safe,
    and all of these calls only enqueue.
    """
    try:
        try:
            import cuda.bench as bench
        except ImportError:
            import cuda.nvbench as bench
    except ImportError:
        raise NotHere("nvbench's Python package (cuda-bench) is not installed", "cuda-bench") from None
    torch, cases = _started()
    for case in cases:
        yield case.name, _by_nvbench(torch, bench, case)


def _by_nvbench(torch: Any, bench: Any, case: Case) -> Reading:
    """One registered benchmark for each case; its figures are in the file that it writes."""

    def benchmark(state: Any) -> None:
        def launcher(launch: Any) -> None:
            with torch.cuda.stream(torch.cuda.ExternalStream(launch.get_stream().addressof())):
                case.call()

        with torch.cuda.stream(torch.cuda.ExternalStream(state.get_stream().addressof())):
            for _ in range(3):
                case.call()
        torch.cuda.synchronize()
        state.exec(launcher)

    benchmark.__name__ = "".join(letter if letter.isalnum() else "_" for letter in case.name)
    bench.register(benchmark)
    with tempfile.TemporaryDirectory(prefix="fairlap-nvbench-") as folder:
        file = Path(folder) / "figures.json"
        options = ["-b", benchmark.__name__, "--timeout", "2", "--json", str(file)]
        bench.run_all_benchmarks(["fairlap", *options])
        summaries = json.loads(file.read_text())["benchmarks"][0]["states"][0]["summaries"]
    found = {summary["tag"]: _value_of(summary) for summary in summaries}
    seconds = float(found["nv/cold/time/gpu/mean"])
    return Reading(seconds * 1e9, SPAN, int(found.get("nv/cold/sample_size", 0)), note="mean, cold cache, its gate")


def _value_of(summary: Any) -> Any:
    return next((each["value"] for each in summary["data"] if each["name"] == "value"), 0)


def _cost(torch: Any, case: Case, elapsed_s: float, calls: int) -> float | None:
    """Only for the empty kernel: for others the host waits for the device, whatever the timer."""
    if case.name != EMPTY:
        return None
    return elapsed_s * 1e9 / calls - issue_ns(case.call, torch.cuda.synchronize, calls)


TIMERS: dict[str, Callable[[], Iterator[tuple[str, Reading]]]] = {
    "fairlap device_span": lambda: fairlap_span("auto"),
    "fairlap device_span, no gate": lambda: fairlap_span("none"),
    "fairlap kernel_sum": fairlap_kernels,
    "torch.cuda.Event": torch_events,
    "triton do_bench": triton_do_bench,
    "torch.profiler": torch_profiler,
    "nvbench": nvbench,
}
