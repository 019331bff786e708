"""Set-up that every test relies on."""

from __future__ import annotations

import functools
import gc
import math
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from example_installed import install_example
from postgresql_server import CannotStart, Server
from slow_cases import mark_slow_cases

# Read when NumPy is imported, which nothing above does. BLAS's threads spin while they wait for each other, which
# takes the cores from the tests beside these and doubles the time of references.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Until the engine is loaded, `fairlap.engine._native` is a stand-in that holds no names, so that monkeypatch would
# take a replaced name for a new one and delete it from the engine afterwards.
import_module("fairlap.engine._native")

TOP = Path(__file__).parents[1]
UNIT, TRUST = (TOP / "tests" / name for name in ("unit", "trust"))
HEAVY_ENVIRONMENTS = "FAIRLAP_TEST_ENVIRONMENTS"
_ALL_LEFT_OUT = re.compile(r"^pytestmark = .*\.mark\.(slow|thorough)\b", re.MULTILINE)


# Modules, syntax trees and results are millions of objects; looking at them every 700 took a third of the time.
gc.set_threshold(50_000, 20, 50)

# A busy machine is slow, and no test is of speed. Half of the usual number of examples: each run draws others.
hypothesis.settings.register_profile(
    "fairlap", max_examples=50, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("fairlap")

_scratch = tempfile.TemporaryDirectory(prefix="fairlap-tests-")


def pytest_configure() -> None:
    """Restore ignored signals, and keep runs and races apart from the user's.

    A background process or nohup ignores these signals, and every program that a test starts would inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    os.environ["FAIRLAP_STORE"] = str(Path(_scratch.name) / "runs.sqlite")
    os.environ["FAIRLAP_LOCK"] = _scratch.name  # tests that run side by side do not wait for each other
    os.environ["XDG_DATA_HOME"] = str(Path(_scratch.name) / "data")


def pytest_unconfigure() -> None:
    _scratch.cleanup()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file whose tests are all left out: every process would import its frameworks, for seconds."""
    if config.option.markexpr != "not slow and not thorough" or collection_path.suffix != ".py":
        return None
    return True if _ALL_LEFT_OUT.search(collection_path.read_text()) else None


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_slow_cases(items)
    if os.environ.get(HEAVY_ENVIRONMENTS) == "1":
        return
    skipped = pytest.mark.skip(reason=f"creates environments of hundreds of megabytes; set {HEAVY_ENVIRONMENTS}=1")
    for item in items:
        if item.get_closest_marker("heavy_environments"):
            item.add_marker(skipped)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and tests, which live to the end."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    """Have PyTorch draw the same numbers in every run, whatever the tests before this one have drawn."""
    if (seed := getattr(sys.modules.get("torch"), "manual_seed", None)) is not None:
        seed(0)


@pytest.fixture(scope="module", autouse=True)
def _brief_races(request: pytest.FixtureRequest) -> Iterator[None]:
    """Shorten the warm-up of races, except of those that are held against loops by hand.

    A process that has the machine for itself would warm up until its times have settled, which on a busy machine they
    never do: for two seconds. And time an empty call of each contestant, for a tenth of a second, only where that is
    what is tested.
    """
    one_process, bench = map(sys.modules.get, ("fairlap.race.processes.one_process", "fairlap.race.processes.bench"))
    with pytest.MonkeyPatch.context() as patch:
        if one_process is not None and not {UNIT, TRUST}.isdisjoint(request.path.parents):
            patch.setattr(one_process, "_WARM_UP_S", 0.02)
            patch.setattr(one_process.ProcessRun, "_take", _after_a_brief_warm_up(one_process))
        if bench is not None and request.path.stem != "test_overheads":
            patch.setattr(bench.Overheads, "measured", _without_overhead)
        yield


@pytest.fixture(scope="session", autouse=True)
def _same_machine() -> Iterator[None]:
    """Look up once what every race records of the machine and what stays: versions, and the revision of this tree."""
    from fairlap.machine import facts, software

    of_folder = facts.revision_facts
    versions, revision = functools.cache(software.installed_versions), functools.cache(of_folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(software, "installed_versions", lambda: dict(versions()))
        patch.setattr(facts, "revision_facts", lambda folder: (revision if folder == TOP else of_folder)(folder))
        yield


def _after_a_brief_warm_up(one_process: Any) -> Callable[..., None]:
    take = one_process.ProcessRun._take

    def taken(run: Any, seconds: float, *, warmup: int | None = None, **how: Any) -> None:
        if warmup is None:
            warmup = math.ceil(one_process._WARM_UP_S / max(run._call_s, one_process._SHORTEST_CALL_S))
        take(run, seconds, warmup=warmup, **how)

    return taken


def _without_overhead(_overheads: Any, _worker: Any, result: Any, _plan: Any) -> bool:
    result.overhead_absent = "most tests leave it out"
    return True


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """One server for all tests of a process; each makes databases of its own."""
    pytest.importorskip("psycopg", reason="needs psycopg, which `make test` installs")
    try:
        server = Server()
    except CannotStart as error:
        pytest.skip(f"{error}; run it where the group dev is installed")
    yield server
    server.stop()


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch use one thread: on a busy machine several wait for each other at every small operation."""
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def shared_url(postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of an empty database, which is the user's store, beside an empty file for this machine."""
    url = postgresql.url(postgresql.new_database())
    monkeypatch.setenv("FAIRLAP_STORE", url)
    monkeypatch.setenv("FAIRLAP_LOCAL_STORE", str(tmp_path / "local.sqlite"))
    return url


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example package, and write weights and inputs for this test alone."""
    install_example(tmp_path / "installed", monkeypatch)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def example_of_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install it once for all tests of a file, which may share a race."""
    folder = tmp_path_factory.mktemp("example")
    with pytest.MonkeyPatch.context() as patch:
        install_example(folder / "installed", patch)
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write weights and inputs for this test alone."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore afterwards what opening a model sets for its process."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "1")
