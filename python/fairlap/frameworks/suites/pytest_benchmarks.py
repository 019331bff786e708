"""Tests that use the fixture ``benchmark`` of pytest-benchmark, whose package need not be installed.

pytest runs as usual, with this module as a plug-in that puts its own fixture in the place of that one. A test that is
raced is suspended in the fixture, where its samples are taken for as long as they are asked for.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import pytest

from fairlap.frameworks.suites.timed_samples import TimedSamples

FIXTURE = "benchmark"
_OPTIONS = (
    "-q",
    "--no-header",
    "--capture=no",
    "-o",
    "console_output_style=classic",
    "-o",
    "cache_dir={scratch}/cache",
)
_OF_PLUG_INS = {  # whatever the configuration has: neither coverage nor workers, and no benchmark left out
    "pytest_cov": ("--no-cov",),
    "xdist": ("-n0",),
    "pytest_benchmark": ("--benchmark-only", "--benchmark-enable", "--benchmark-storage=file://{scratch}/saved"),
}
_EXPLAINED = re.compile(r"^E\s+(.+)", re.MULTILINE)
_OF_OPTIONS = re.compile(r": error: (.+)")
_SETTINGS = re.compile(r"^\s*inifile: (?!None$)(.+)", re.MULTILINE)


class Suspended(Protocol):
    """Takes the samples of a test that has come to its benchmark."""

    def __call__(self, samples: TimedSamples, first: Callable[[], Any]) -> None: ...


class Session:
    """What one run of pytest is for: to list its benchmarks, or to run one of them, suspended or not."""

    def __init__(self, node_id: str = "", suspended: Suspended | None = None) -> None:
        self.node_id, self.suspended = node_id, suspended
        self.found: list[tuple[str, str, tuple[str, ...]]] = []  # node ids with their files and groups
        self.root = ""  # to which node ids are relative
        self.broken: list[tuple[str, str]] = []  # what could not be collected, with the reason
        self.refused = ""  # why pytest ended before it came to a test, in its own words
        self.outcome: Literal["", "passed", "skipped", "failed"] = ""
        self.why = ""
        self.used = False


_now = Session()


def run_pytest(place: str, session: Session, scratch: str, root: str = "") -> None:
    """Run pytest on a file or folder, with the options of its configuration, but without coverage and workers.

    What it would leave in the current folder goes into the folder ``scratch``.
    """
    global _now
    _now = session
    installed = [word for module, words in _OF_PLUG_INS.items() if find_spec(module) for word in words]
    of_plug_ins, own = ([each.replace("{scratch}", scratch) for each in words] for words in (installed, _OPTIONS))
    options = [*own, *of_plug_ins]
    options += [f"--rootdir={root}"] if root else []
    options += [] if session.node_id else ["--collect-only"]
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:  # of a worker that runs fairlap
        del os.environ[name]
    status = pytest.main([place, *options], plugins=[sys.modules[__name__]])
    if unknown := set(session.refused.split()) & set(of_plug_ins):  # the project disables a plug-in that is installed
        session.refused = ""
        options = [each for each in options if each not in unknown]
        status = pytest.main([place, *options], plugins=[sys.modules[__name__]])
    fine = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if not session.outcome and not session.broken and status not in fine:
        why = f": {session.refused}" if session.refused else ""
        session.broken.append((place, f"pytest ended with status {int(status)}{why}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_parse() -> Generator[None, Any, None]:
    """Keep what is wrong with its options or a conftest.py, which it only prints."""
    outcome = yield
    if outcome.excinfo is not None:
        _now.refused = _words_of(outcome.excinfo[1])


pytest_cmdline_main = pytest_cmdline_parse


def pytest_internalerror(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    _now.refused = f"{excinfo.typename}: {_words_of(excinfo.value)}"


def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Keep the reason of pytest.exit, too."""
    _now.refused = _words_of(excinfo.value)


def _words_of(error: BaseException) -> str:
    """Take one line: the wrong option without the usage before it, and the file that has it."""
    text = str(error)
    if wrong := _OF_OPTIONS.search(text):
        settings = _SETTINGS.search(text)
        return f"{wrong[1]} (inifile: {settings[1]})" if settings else wrong[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0]


@pytest.fixture(name=FIXTURE)
def _benchmark(request: pytest.FixtureRequest) -> StandIn:
    return StandIn(request, _now)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> StandIn | None:
    """Put this fixture in the place of that of pytest-benchmark, if it is installed."""
    if fixturedef.argname != FIXTURE:
        return None
    found = StandIn(request, _now)
    fixturedef.cached_result = (found, fixturedef.cache_key(request), None)
    return found


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{FIXTURE}(group=...): options of a benchmark.")
    _now.root = str(config.rootpath)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [each for each in items if FIXTURE in getattr(each, "fixturenames", ())]
    _now.found = [(each.nodeid, str(each.path), _groups(each)) for each in items]
    if _now.node_id:
        items[:] = [each for each in items if each.nodeid == _now.node_id]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _now.broken.append((report.nodeid, _why(report)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _now.outcome, _now.why = "skipped", str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
    elif report.failed:
        _now.outcome, _now.why = "failed", _why(report)
    elif report.when == "call" and not _now.outcome:
        _now.outcome = "passed"


def _groups(item: pytest.Item) -> tuple[str, ...]:
    marker = item.get_closest_marker(FIXTURE)
    group = marker.kwargs.get("group") if marker else None
    return (str(group),) if group else ()


def _why(report: pytest.CollectReport | pytest.TestReport) -> str:
    text = report.longreprtext
    explained = _EXPLAINED.findall(text)
    where = f" in {report.when}" if isinstance(report, pytest.TestReport) and report.when != "call" else ""
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{(explained or lines[-1:] or ['it gave no reason'])[0]}{where}"


def _base() -> type:
    """Find the type without which pytest-benchmark, where it is installed, refuses a fixture."""
    try:
        from pytest_benchmark.fixture import BenchmarkFixture
    except ImportError:
        return object
    found: type = BenchmarkFixture
    return found


class StandIn(_base()):  # type: ignore[misc]
    """Has what tests use of the fixture: it is called once, or its ``pedantic`` is."""

    enabled = True

    def __init__(self, request: Any, session: Session) -> None:
        node = request.node
        self.name, self.fullname = node.name, node.nodeid
        spec = getattr(node, "callspec", None)
        self.param = spec.id if spec else None
        self.params: Mapping[str, Any] | None = spec.params if spec else None
        marker = node.get_closest_marker(FIXTURE)
        self._options: Mapping[str, Any] = dict(marker.kwargs) if marker else {}
        self.group = self._options.get("group")
        self.extra_info: dict[str, Any] = {}
        self.disabled, self.stats = False, None
        self._session = session

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        call = partial(function, *args, **kwargs) if args or kwargs else function
        with self._once() as suspended:
            if suspended is not None:
                suspended(self._samples(lambda: call), call)
        return call()

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        if iterations < 1 or rounds < 1 or warmup_rounds < 0:
            raise ValueError("iterations and rounds must be positive, and warmup_rounds not negative")
        if setup is not None and iterations > 1:
            raise ValueError("Can't use more than 1 `iterations` with a `setup` function.")
        last: tuple[Sequence[Any], Mapping[str, Any]] | None = None

        def before() -> Callable[[], Any]:
            nonlocal last
            if last is not None and teardown is not None:
                teardown(*last[0], **last[1])
            own, named = args, kwargs or {}
            if setup is not None and (made := setup()):
                if args or kwargs:
                    raise TypeError("Can't use `args` or `kwargs` if `setup` returns the arguments.")
                own, named = made
            last = own, named
            return partial(target, *own, **named) if own or named else target

        with self._once() as suspended:
            if suspended is not None:
                suspended(self._samples(before, iterations), before())
        found = before()()
        if teardown is not None and last is not None:
            teardown(*last[0], **last[1])
        return found

    def weave(self, *_args: Any, **_kwargs: Any) -> Any:
        pytest.skip("fairlap does not time benchmark.weave; call benchmark(function) instead")

    patch = weave

    def _samples(self, before: Callable[[], Callable[[], Any]], number: int = 0) -> TimedSamples:
        return TimedSamples(
            before,
            number=number,
            timer=self._options.get("timer"),
            pause_gc=bool(self._options.get("disable_gc", False)),
        )

    @contextmanager
    def _once(self) -> Iterator[Suspended | None]:
        if self._session.used:
            raise RuntimeError("Fixture can only be used once.")
        self._session.used = True
        yield self._session.suspended
