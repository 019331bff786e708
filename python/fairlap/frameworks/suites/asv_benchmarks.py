"""Benchmarks of asv as its documentation describes them: found by name, with setup, parameters and attributes.

Only the standard library is imported here, since this runs in the process whose memory may be measured.
"""

from __future__ import annotations

import inspect
import itertools
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import isfinite
from types import ModuleType
from typing import Any

from fairlap.frameworks.suites.process_memory import peak_bytes
from fairlap.frameworks.suites.timed_samples import SAMPLE_TIME_S, WARM_UP_S, TimedSamples

KINDS = {
    "time": re.compile(r"(Time[A-Z_].+)|(time_.+)"),
    "timeraw": re.compile(r"(Timeraw[A-Z_].+)|(timeraw_.+)"),
    "peakmem": re.compile(r"(PeakMem[A-Z_].+)|(peakmem_.+)"),
    "mem": re.compile(r"(Mem[A-Z_].+)|(mem_.+)"),
    "track": re.compile(r"(Track[A-Z_].+)|(track_.+)"),
}
"""By the names of their functions."""

TIMEOUT_S = 60.0  # asv's own
_ADDRESS = re.compile(r"^(<.*) at 0x[\da-fA-F]+(>)$")
_RAW = (
    "from timeit import timeit, default_timer as timer\n"
    "print(repr(timeit(stmt={stmt!r}, setup={setup!r}, number={number}, timer=timer)))"
)


class Skipped(Exception):
    """The benchmark says that it cannot run here."""


class Unusable(Exception):
    """What it gave is not a figure that can be compared."""


@dataclass(frozen=True)
class Benchmark:
    """One function; ``sources`` are where its attributes are looked up: itself, its object, its module."""

    name: str
    kind: str
    function: Callable[..., Any]
    sources: Sequence[object]
    module: str

    def attribute(self, name: str, default: Any) -> Any:
        return next((found for each in self.sources if (found := getattr(each, name, None)) is not None), default)

    def cases(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Its name with each set of parameters, ``suite.time_solve(n=100)``, and their values."""
        given = list(self.attribute("params", []))
        if given and not isinstance(given[0], (tuple, list)):
            given = [given]  # a single parameter
        names = [str(each) for each in self.attribute("param_names", [])][: len(given)]
        names += [f"param{number}" for number in range(len(names) + 1, len(given) + 1)]
        texts = [_told_apart([_shown(each) for each in values]) for values in given]
        if not given:
            yield self.name, ()
            return
        for shown, values in zip(itertools.product(*texts), itertools.product(*given), strict=True):
            listed = ", ".join(f"{name}={text}" for name, text in zip(names, shown, strict=True))
            yield f"{self.name}({listed})", values


def benchmarks_in(root: str, only: str = "") -> Iterator[Benchmark | tuple[str, Exception]]:
    """Find those below the package ``root``, or of one module of it, and what cannot be imported, with the reason."""
    for module in _modules(only or root, deep=not only):
        if isinstance(module, tuple):
            yield module
            continue
        prefix = module.__name__.split(".", 1)[1:]
        for name, value in [each for each in vars(module).items() if not each[0].startswith("_")]:
            if inspect.isclass(value) and not inspect.isabstract(value):
                yield from _of_class(module, prefix, value)
            elif inspect.isfunction(value) and (found := _benchmark(name, prefix, value, [value, module], module)):
                yield found


def _of_class(module: ModuleType, prefix: list[str], of: type) -> Iterator[Benchmark | tuple[str, Exception]]:
    for name, function in inspect.getmembers(of):
        if not (inspect.isfunction(function) or inspect.ismethod(function)) or not _kind(function, name):
            continue
        try:
            instance = of()
            bound = getattr(instance, name)
        except Exception as error:
            yield ".".join([*prefix, of.__name__, name]), error
            continue
        if found := _benchmark(name, [*prefix, of.__name__], bound, [bound, instance, module], module):
            yield found


def _benchmark(
    name: str, prefix: list[str], function: Callable[..., Any], sources: Sequence[object], module: ModuleType
) -> Benchmark | None:
    kind = _kind(function, name)
    shown = name if inspect.ismethod(function) else function.__name__
    own = getattr(function, "benchmark_name", None) or ".".join([*prefix, shown])
    return Benchmark(own, kind, function, sources, module.__name__) if kind else None


def _kind(function: Callable[..., Any], name: str) -> str:
    searched = getattr(function, "benchmark_name", name).rpartition(".")[2]
    return next((kind for kind, pattern in KINDS.items() if pattern.match(searched)), "")


def _modules(name: str, *, deep: bool) -> Iterator[ModuleType | tuple[str, Exception]]:
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:
        yield name.partition(".")[2] or name, error if isinstance(error, Exception) else Unusable(str(error))
        return
    yield module
    if deep and (path := getattr(module, "__path__", None)):
        for _, inner, _ in pkgutil.iter_modules(path, f"{name}."):
            yield from _modules(inner, deep=True)


class Case:
    """A benchmark with one set of parameters. ``cache`` gives what its ``setup_cache`` returned, where it has one."""

    def __init__(
        self, benchmark: Benchmark, params: tuple[Any, ...], cache: Callable[[], Any], places: Sequence[str]
    ) -> None:
        self._of, self._params, self._cache, self._places = benchmark, params, cache, places
        self.kind = benchmark.kind
        self.timeout_s = float(benchmark.attribute("timeout", TIMEOUT_S))
        self._setups = list(_in_any_case(benchmark.sources, "setup"))[::-1]
        self._teardowns = list(_in_any_case(benchmark.sources, "teardown"))
        self._timed: TimedSamples | None = None
        self._value: float | None = None

    @property
    def unit(self) -> str:
        if self.kind == "track":
            return str(self._of.attribute("unit", "unit"))
        return "bytes" if self.kind in ("peakmem", "mem") else "seconds"

    def set_up(self) -> None:
        """Run what comes before the samples; raises Skipped where the benchmark does not apply here."""
        if getattr(self._of.function, "skip_benchmark", False):
            raise Skipped("it is marked to be skipped")
        skipped = getattr(self._of.function, "skip_params", ())
        if any((tuple(each) if isinstance(each, (tuple, list)) else (each,)) == self._params for each in skipped):
            raise Skipped("it is marked to be skipped for these parameters")
        if self._of.attribute("setup_cache", None) is not None and (cached := self._cache()) is not None:
            self._params = (cached, *self._params)
        self._set_up()

    def _set_up(self) -> None:
        try:
            for each in self._setups:
                each(*self._params)
        except NotImplementedError as error:
            raise Skipped(f"its setup raised NotImplementedError{f': {error}' if str(error) else ''}") from error

    def _again(self) -> Callable[[], Any]:
        self.tear_down()
        self._set_up()
        return self._call()

    def _call(self) -> Callable[[], Any]:
        return partial(self._of.function, *self._params) if self._params else self._of.function

    def tear_down(self) -> None:
        for each in self._teardowns:
            each(*self._params)

    def try_once(self) -> None:
        """Set up, one call and teardown, so that what fails is known before anything is raced."""
        self.set_up()
        if self.kind == "timeraw":
            self._raw_ns(1)
        elif self.kind == "time":
            self._call()()
        else:
            self._figure()
        self.tear_down()

    def warm_up(self) -> None:
        if self.kind != "time":
            return
        read = self._of.attribute
        warm_up_s, timer = float(read("warmup_time", -1)), read("timer", None)
        self._timed = TimedSamples(
            self._again,
            number=int(read("number", 0)),
            sample_time_s=float(read("sample_time", SAMPLE_TIME_S)),
            warm_up_s=WARM_UP_S if warm_up_s < 0 else warm_up_s,
            timer=timer,
        )
        self._timed.warm_up(self._call())

    def sample(self) -> float:
        """Nanoseconds of a call, or, once in a process, the bytes or the value."""
        if self._timed is not None:
            return self._timed.sample_ns()
        if self.kind == "timeraw":
            self._again()
            return self._raw_ns(int(self._of.attribute("number", 1)))
        if self._value is None:
            self._value = self._figure()
        return self._value

    def _figure(self) -> float:
        found = self._call()()
        if self.kind == "peakmem":
            return float(peak_bytes())
        value = float(_size_bytes(found) if self.kind == "mem" else found)
        if not (isfinite(value) and value > 0):
            raise Unusable(f"it gave {value:g}; a ratio needs a finite figure above 0")
        return value

    def _raw_ns(self, number: int) -> float:
        given = self._call()()
        stmt, setup = given if isinstance(given, tuple) else (given, "")
        code = _RAW.format(stmt=textwrap.dedent(stmt), setup=textwrap.dedent(setup), number=number)
        first = f"import sys; sys.path[:1] = {list(self._places)!r}\n"  # in the place of the current folder
        done = subprocess.run([sys.executable, "-c", first + code], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unusable(f"its code failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
        return float(done.stdout.strip().splitlines()[-1]) * 1e9 / number


def _size_bytes(found: object) -> int:
    """As asv does: what a second one of the same would need."""
    import copy

    try:
        from pympler import asizeof
    except ImportError:
        raise Skipped("mem_ benchmarks need the package pympler") from None
    size: Callable[..., int] = asizeof.asizeof
    return size([found, copy.copy(found)]) - size([found, found])


def _in_any_case(sources: Sequence[object], name: str) -> Iterator[Callable[..., Any]]:
    for source in sources:
        found = [getattr(source, each) for each in dir(source) if each.lower() == name]
        yield from (each for each in found[:1] if callable(each))


def _shown(value: object) -> str:
    """Without an address, which differs from process to process."""
    return _ADDRESS.sub(r"\1\2", repr(value))


def _told_apart(texts: Sequence[str]) -> list[str]:
    often: Mapping[str, int] = Counter(texts)
    seen: Counter[str] = Counter()
    found = []
    for text in texts:
        found.append(f"{text} ({seen[text]})" if often[text] > 1 else text)
        seen[text] += 1
    return found
