"""Timers of JAX calls, whose streams are hidden."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...record import NotHere
from .cases import Case, jax_cases
from .reading import KERNELS, SPAN, Reading, calls_for, notices_of


def _started() -> tuple[Any, list[Case]]:
    try:
        import jax
    except ImportError:
        raise NotHere("JAX is not installed", "jax") from None
    if not any(device.platform == "gpu" for device in jax.devices()):
        raise NotHere("this JAX has no CUDA", "jax")
    return jax, jax_cases(jax)


def _waiting(jax: Any, case: Case) -> int:
    last: list[Any] = []

    def call() -> None:
        last[:] = [case.call()]

    return calls_for(call, lambda: jax.block_until_ready(last))


def fairlap(method: str) -> Iterator[tuple[str, Reading]]:
    from fairlap.engine.cuda.stream_calls import time_on_stream

    jax, cases = _started()
    for case in cases:
        calls = _waiting(jax, case)
        result = time_on_stream(
            case.call,
            stream="hidden",
            method=method,  # type: ignore[arg-type]
            done=jax.block_until_ready,
            samples=calls,
            warmup=5,
            calls_per_sample=1,
        )
        quantity = KERNELS if method == "kernel_sum" else SPAN
        yield case.name, Reading(result.median_ns, quantity, result.samples, note=notices_of(result))


def jax_profiler() -> Iterator[tuple[str, Reading]]:
    jax, cases = _started()
    for case in cases:
        calls = min(100, _waiting(jax, case))
        with tempfile.TemporaryDirectory(prefix="fairlap-trace-") as folder:
            with jax.profiler.trace(folder):
                for _ in range(calls):
                    last = case.call()
                jax.block_until_ready(last)
            lengths = kernel_lengths_ns(jax, Path(folder))
        note = "" if len(lengths) % calls == 0 else f"{len(lengths)} kernels in {calls} calls; "
        yield case.name, Reading(sum(lengths) / calls, KERNELS, calls, note=f"{note}mean of the calls")


def kernel_lengths_ns(jax: Any, folder: Path, plane_begins: str = "/device:GPU") -> list[float]:
    """Return the length of everything on the devices' streams except copies."""
    files = sorted(folder.rglob("*.xplane.pb"))
    if not files:
        raise RuntimeError("JAX's profiler wrote no trace")
    planes = jax.profiler.ProfileData.from_file(str(files[-1])).planes
    return [
        float(event.duration_ns)
        for plane in planes
        if plane.name.startswith(plane_begins)
        for line in plane.lines
        if line.name.startswith("Stream")
        for event in line.events
        if not event.name.lower().startswith(("memcpy", "memset"))
    ]


TIMERS: dict[str, Callable[[], Iterator[tuple[str, Reading]]]] = {
    "fairlap context_span, JAX": lambda: fairlap("context_span"),
    "fairlap kernel_sum, JAX": lambda: fairlap("kernel_sum"),
    "JAX's profiler": jax_profiler,
}
