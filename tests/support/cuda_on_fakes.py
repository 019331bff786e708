"""Runs tests against the fake driver. A process opens its driver once, so they run in one of their own."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # contestants of the tests import this
    import pytest
    from fairlap.engine.cuda.stream_measurement import StreamMeasurement

_ROOT = Path(__file__).parents[2]
_INSIDE = "FAIRLAP_TESTS_ON_FAKES"
ILLEGAL_ADDRESS = 700


def fakes() -> Path:
    """Where the fake libraries are built."""
    folder = Path(os.environ.get("FAIRLAP_FAKES", _ROOT / "build/release/cpp/fakes"))
    assert (folder / "libfairlap_fake_cuda.so").exists(), f"no fakes in {folder}; `make test` builds them"
    return folder


def environment_with_fakes() -> dict[str, str]:
    return {
        **os.environ,
        "FAIRLAP_LIBCUDA": str(fakes() / "libfairlap_fake_cuda.so"),
        "FAIRLAP_LIBCUPTI": str(fakes() / "libfairlap_fake_cupti.so"),
    }


def on_fakes(test: Callable[..., None]) -> Callable[..., None]:
    """Lets the test run in the process that has the fakes; here it fails or passes as it did there."""
    if os.environ.get(_INSIDE):
        return test
    file = test.__code__.co_filename
    _decorated.setdefault(file, []).append(test.__name__)

    def run_here(pytestconfig: pytest.Config) -> None:
        failures, output = _run_inside(file, tuple(_decorated[file]), pytestconfig.getoption("markexpr"))
        assert test.__name__ in failures, output
        assert failures[test.__name__] is None, failures[test.__name__]

    run_here.__name__ = test.__name__
    run_here.__doc__ = test.__doc__
    return run_here


_decorated: dict[str, list[str]] = {}
"""The tests of each file that run on the fakes. The others, and slow ones that nobody asked for, do not run there."""


@functools.cache
def _run_inside(file: str, tests: tuple[str, ...], marks: str) -> tuple[dict[str, str | None], str]:
    """Run these tests, and return what went wrong in each, None where nothing did, and all that was printed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        names = [f"{file}::{test}" for test in tests]
        plugins = ("-p", "no:cacheprovider", "-p", "pytest_timeout")  # the others take longer to import than most tests
        misused = Path(folder) / "misused.txt"
        inside = {_INSIDE: "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDA_FAKE_REPORT": str(misused)}
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *names, "-m", marks, f"--junit-xml={report}", *plugins, "-q"],
            env={**environment_with_fakes(), **inside},
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if misused.exists() and (uses := [line for line in misused.read_text().splitlines() if " used " in line]):
            return dict.fromkeys(tests, f"failure: {'; '.join(dict.fromkeys(uses))}"), run.stdout + run.stderr
        cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ()
        return {case.attrib["name"]: _failure_of(case) for case in cases}, run.stdout + run.stderr


def _failure_of(case: ElementTree.Element) -> str | None:
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            return f"{kind}: {found.text}"
    return None


class Machine:
    """A faked device on which a framework is at work. Every call is free until said otherwise."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL(str(fakes() / "libfairlap_fake_cuda.so"))
        self.cupti = ctypes.CDLL(str(fakes() / "libfairlap_fake_cupti.so"))
        address, number = ctypes.c_uint64, ctypes.c_int64
        for function in ("activate_primary_context", "create_context", "create_stream", "current_context"):
            getattr(self.cuda, f"fake_cuda_{function}").restype = address
        for function in ("now_ns", "call_count", "outstanding", "pending_work"):
            getattr(self.cuda, f"fake_cuda_{function}").restype = number
        self.cuda.fake_cuda_kernel.argtypes = (address, ctypes.c_char_p, number)
        self.cuda.fake_cuda_create_stream.argtypes = (address, ctypes.c_int)
        self.cuda.fake_cuda_destroy_stream.argtypes = (address,)
        self.cuda.fake_cuda_make_current.argtypes = (address,)
        self.cuda.fake_cuda_set_cost.argtypes = (ctypes.c_char_p, number)
        self.cuda.fake_cuda_set_event_tick.argtypes = (number,)
        self.cuda.fake_cuda_fail.argtypes = (ctypes.c_char_p, number, ctypes.c_int)
        self.cuda.fake_cuda_outstanding.argtypes = (ctypes.c_char_p,)
        self.cuda.fake_cuda_pending_work.argtypes = (address,)
        self.cuda.cuStreamSynchronize.argtypes = (address,)
        self.cuda.fake_cuda_reset()
        self.cuda.cuInit(0)
        self.cupti.fake_cupti_reset()
        self.cuda.fake_cuda_set_cost(b"*", 0)
        self.cuda.fake_cuda_set_event_tick(1)
        self.context = self.cuda.fake_cuda_activate_primary_context(0)
        self.cuda.fake_cuda_make_current(self.context)
        self.stream = self.new_stream()

    def new_stream(self) -> int:
        return int(self.cuda.fake_cuda_create_stream(self.context, 1))

    def kernel(self, duration_ns: int, name: str = "work", stream: int | None = None) -> int:
        return int(self.cuda.fake_cuda_kernel(self.stream if stream is None else stream, name.encode(), duration_ns))

    def synchronize(self) -> int:
        return int(self.cuda.cuStreamSynchronize(self.stream))

    def fail(self, function: str, nth: int, error: int = ILLEGAL_ADDRESS) -> None:
        self.cuda.fake_cuda_fail(function.encode(), nth, error)

    def outstanding(self) -> int:
        kinds = (
            b"streams",
            b"events",
            b"device_allocations",
            b"host_allocations",
            b"graphs",
            b"graph_execs",
            b"further_modules",  # one stays in each context
        )
        return sum(
            int(self.cuda.fake_cuda_outstanding(kind)) for kind in (*kinds, b"primary_retains", b"pushed_contexts")
        )


def timed(machine: Machine, fn: Callable[..., object], **options: object) -> StreamMeasurement:
    from fairlap.engine.cuda.stream_calls import time_on_stream

    wanted: dict[str, object] = {"samples": 20, "warmup": 4, "calls_per_sample": 1, "stream": machine.stream, **options}
    return time_on_stream(fn, **wanted)  # type: ignore[arg-type]


__all__ = ["ILLEGAL_ADDRESS", "Machine", "environment_with_fakes", "fakes", "on_fakes", "timed"]
