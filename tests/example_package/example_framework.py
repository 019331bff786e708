"""A framework that runs every model by its reference, in float32. Its variants go wrong on purpose, one way each."""

from __future__ import annotations

import cProfile
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.frameworks.contract import (
    Contestant,
    Fed,
    Framework,
    Phase,
    Settings,
    Unsupported,
)
from fairlap.frameworks.contract_parts.compilation import Compilation, Operators, Types
from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Profiler, Spent
from fairlap.models.arrays import Arrays
from fairlap.models.draw import rounded_to_bfloat16
from fairlap.models.workload import Workload

VARIANTS = (
    *("slow", "cold", "loud", "daemon"),  # these do the work all the same
    *("other-threads", "other-precision", "other-weights", "cached", "swapped", "transposed", "silent-bf16"),
    *("nan", "late-nan", "one-output-less", "unsupported", "raises"),
    *("fed-cached", "fed-shifted", "fed-writes", "fed-not"),  # wrong only when they are fed
    *("compiles", "one-batch", "crash-at-others"),  # what compiling did is known of these
    *("crash", "hang-prepare", "hang-call", "hang-measure", "memory", "rubbish"),
)


class Example(Framework):
    name = "example"
    packages = ("numpy",)
    module = "numpy"
    variants = ("", *VARIANTS)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        variant = wanted.variant
        with phase("build"):
            weights = {name: np.array(array) for name, array in work.weights.items()}
        at_once: dict[str, Callable[[], Any]] = {
            "unsupported": _unsupported,
            "raises": _raise_a_key_error,
            "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
            "hang-prepare": lambda: time.sleep(1000),
            "memory": _eat_memory,
            "rubbish": lambda: _to_pipe(b"this is no message\n"),
            "daemon": lambda: subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True
            ),
            "loud": lambda: (
                print("printed " * 50_000),
                os.write(1, b'{"say":"bye"}\n'),
                print("on stderr", file=sys.stderr),
            ),
        }
        at_once.get(variant, lambda: None)()
        # Of a user's model, what its kind of source has for this framework; else the model's reference.
        own = work.package.startswith("/")
        model = work.implementation("example") if own else work.implementation_of_reference()
        forward = partial(model.forward, _spoiled(weights, variant))
        bind = partial(_call, forward, variant=variant)
        return Contestant(
            bind=bind,
            done=None,
            outputs=lambda result: {name: np.array(value, np.float32) for name, value in result.items()},
            weights=lambda: weights if variant != "other-weights" else {**weights, "extra": np.zeros(1, np.float32)},
            in_force={
                "threads": str(wanted.threads + (variant == "other-threads")),
                "precision": "bf16" if variant == "other-precision" else work.precision,
            },
            deal=None if variant else _dealt_by(weights),
            fed=None if variant == "fed-not" else Fed(np.from_dlpack, _fed(forward, variant)),
            profiler=None if variant == "slow" else Profiler("cProfile", _profiled),
            compilation=partial(_COMPILATIONS[variant], bind, work.inputs) if variant in _COMPILATIONS else None,
        )

    def version(self) -> str:
        return str(np.__version__)


def _dealt_by(weights: dict[str, Any]) -> Callable[[], None]:
    """Move the weights, which the reference reads from this dictionary at every call."""

    def deal() -> None:
        weights.update({name: array.copy() for name, array in weights.items()})

    return deal


def _profiled(call: Callable[[], Any], calls: int, _trace: Path | None) -> list[ProfiledCall]:
    """By Python's own profiler, since this framework has none. It has no timeline, so it writes no trace."""
    found = []
    for _ in range(calls):
        profiler = cProfile.Profile()
        began_ns = time.perf_counter_ns()
        profiler.runcall(call)
        wall_ns = float(time.perf_counter_ns() - began_ns)
        spent: dict[str, Spent] = {}
        for entry in profiler.getstats():
            name = entry.code if isinstance(entry.code, str) else entry.code.co_name
            before = spent.get(name, Spent(0, 0.0))
            spent[name] = Spent(before.calls + entry.callcount, before.self_ns + 1e9 * entry.inlinetime)
        found.append(ProfiledCall(wall_ns, spent))
    return found


def _call(forward: Callable[[Arrays], Any], inputs: Arrays, variant: str) -> Callable[[], Any]:
    calls = itertools.count(1)

    def call() -> Any:
        number = next(calls)
        if variant == "hang-call" or (variant == "hang-measure" and number > 1):
            time.sleep(1000)
        if variant == "slow":
            time.sleep(0.002)
        if variant == "cold":
            _sleep_longer_after_a_pause()
        answer = forward(inputs)
        if variant == "cached":
            answer = _KEPT.setdefault("answer", answer)
        if variant == "nan" or (variant == "late-nan" and number > 1):
            answer = {name: value * np.nan for name, value in answer.items()}
        return {} if variant == "one-output-less" else answer

    return call


COLD_CALLS, STEADY_S, COLD_S, PAUSE_S = 2, 0.008, 0.08, 0.04
_LATELY = {"calls": 0, "ended_s": 0.0}


def _sleep_longer_after_a_pause() -> None:
    """As calls do whose caches others have used meanwhile."""
    if time.monotonic() - _LATELY["ended_s"] > PAUSE_S:
        _LATELY["calls"] = 0
    _LATELY["calls"] += 1
    time.sleep(COLD_S if _LATELY["calls"] <= COLD_CALLS else STEADY_S)
    _LATELY["ended_s"] = time.monotonic()


Bind = Callable[[Arrays], Callable[[], Any]]


def _compiling(bind: Bind, own: Arrays) -> Compilation:
    """Make a graph for each batch, size and type that it is called with, as jax.jit does."""
    compiled = {_key(own)}
    added: list[str] = []

    def on_any(inputs: Arrays) -> Callable[[], Any]:
        call, key = bind(inputs), _key(inputs)

        def compiled_call() -> Any:
            if key not in compiled:
                time.sleep(0.05)
                compiled.add(key)
                added.append(f"{key} is new")
            return call()

        return compiled_call

    @contextmanager
    def reasons() -> Iterator[list[str]]:
        added.clear()
        yield added

    return Compilation(
        graphs=lambda: len(compiled),
        breaks=lambda: ["a print"],
        operators=lambda: Operators(6, 4, "operators, and kernels"),
        bind=on_any,
        bind_as=lambda inputs, types: on_any(_in_types(inputs, types)),
        reasons=reasons,
    )


def _key(inputs: Arrays) -> str:
    first = next(iter(inputs.values()))
    return f"batch {len(first)}, {list(first.shape[1:])} of {first.dtype}"


def _in_types(inputs: Arrays, types: Types) -> Arrays:
    """NumPy has no bfloat16, and raises TypeError."""
    return {name: array.astype(types.get(name, array.dtype)) for name, array in inputs.items()}


def _of_one_batch(_bind: Bind, _own: Arrays) -> Compilation:
    def refusing(_inputs: Arrays, _types: Types) -> Callable[[], Any]:
        raise ValueError("code 2: INVALID_ARGUMENT")

    return Compilation(
        graphs=lambda: 1,
        bind_as=refusing,
        fixed_types="the graph declares them",
        absent={"breaks": "it has none", "operators": "it counts none"},
    )


def _crashing(_bind: Bind, _own: Arrays) -> Compilation:
    return Compilation(graphs=lambda: 1, bind=lambda _inputs: lambda: os.kill(os.getpid(), signal.SIGSEGV))


_COMPILATIONS = {"compiles": _compiling, "one-batch": _of_one_batch, "crash-at-others": _crashing}


def _fed(forward: Callable[[Arrays], Any], variant: str) -> Callable[[Arrays], Any]:
    def run(inputs: Arrays) -> Any:
        answer = forward(inputs)
        if variant == "fed-cached":
            answer = _KEPT.setdefault("fed", answer)
        if variant == "fed-shifted":
            answer = {name: np.roll(value, 1, axis=0) for name, value in answer.items()}
        if variant == "fed-writes":
            for array in inputs.values():
                array += 1
        return answer

    return run


_KEPT: dict[str, Any] = {}


def _spoiled(weights: dict[str, Any], variant: str) -> dict[str, Any]:
    """Make the mistakes that people make: the model runs, and looks right."""
    spoiled = dict(weights)
    if variant == "swapped":
        spoiled["norm.weight"], spoiled["norm.bias"] = weights["norm.bias"], weights["norm.weight"]
    if variant == "transposed":
        spoiled["second.weight"] = weights["second.weight"].T
    if variant == "silent-bf16":
        spoiled = {name: rounded_to_bfloat16(array) for name, array in weights.items()}
    return spoiled


def _raise_a_key_error() -> None:
    raise KeyError("nothing")


def _unsupported() -> None:
    raise Unsupported("example does not do this")


def _eat_memory() -> None:
    kept = []
    while True:
        kept.append(np.ones(10_000_000))


def _to_pipe(text: bytes) -> None:
    """Write to the worker's own end, as a framework would reach it by accident."""
    arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    os.write(int(arguments[arguments.index(b"--write") + 1]), text)
    time.sleep(1000)
