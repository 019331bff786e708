"""The pytest plugin: the fixture ``fairlap`` measures a callable and compares it with a stored baseline.

Importing it loads neither NumPy nor the engine; a test that uses the fixture does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairlap.speed_tests.speed import Session, SpeedTest

_PROCESSES = 6
_FEWEST_PROCESSES = 4  # of which two sets can differ at 5 %
_LIMIT_S = 300.0
_FILE = "fairlap-baseline.json"
_OWN_NAME = "fairlap"  # of the entry point


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fairlap", "speed of callables, measured by fairlap")
    group.addoption(
        "--fairlap-baseline",
        metavar="FILE",
        default=None,
        help=f"Compare with the baselines in FILE.  [default: {_FILE} in the root folder]",
    )
    group.addoption("--fairlap-save", action="store_true", help="Save what is measured as the baselines.")
    group.addoption(
        "--fairlap-processes",
        type=int,
        default=_PROCESSES,
        metavar="N",
        help=f"Fresh processes of each test with a baseline.  [default: {_PROCESSES}]",
    )
    group.addoption("--fairlap-strict", action="store_true", help="Fail tests whose comparison is not decided.")


_session = pytest.StashKey["Session"]()


def pytest_configure(config: pytest.Config) -> None:
    processes = config.getoption("--fairlap-processes")
    if processes < _FEWEST_PROCESSES:
        raise pytest.UsageError(
            f"--fairlap-processes must be at least {_FEWEST_PROCESSES}: fewer can show no difference (got {processes})"
        )


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the session in one line, before anything is measured, for a file that cannot be read or saved."""
    config = session.config
    uses = any(_OWN_NAME in getattr(item, "fixturenames", ()) for item in session.items)
    if uses and not config.option.collectonly and not hasattr(config, "workerinput"):
        _session_of(config)


@pytest.fixture
def fairlap(request: pytest.FixtureRequest) -> SpeedTest:
    """Measure a callable, ``fairlap(lambda: f(x), max_slowdown="5%")``; fail when it is slower than its baseline."""
    from fairlap.speed_tests.fresh_processes import REPORT
    from fairlap.speed_tests.speed import SpeedTest

    report = os.environ.get(REPORT)
    return SpeedTest(_session_of(request.config), request.node.nodeid, Path(report) if report else None)


def _session_of(config: pytest.Config) -> Session:
    if _session not in config.stash:
        from fairlap.errors import FairlapError
        from fairlap.speed_tests.fresh_processes import FreshProcesses
        from fairlap.speed_tests.speed import Session

        chosen = config.getoption("--fairlap-baseline")
        count = config.getoption("--fairlap-processes")
        session = Session(
            file=Path(chosen).absolute() if chosen else config.rootpath / _FILE,
            processes=FreshProcesses(_command(config), config.rootpath, config.invocation_params.dir, count, _LIMIT_S),
            saves=config.getoption("--fairlap-save"),
            strict=config.getoption("--fairlap-strict"),
            why_not_alone=_why_not_alone(config),
        )
        try:
            session.require_usable()
        except FairlapError as error:
            raise pytest.UsageError(f"{error} [{error.code}]") from None
        config.stash[_session] = session
    return config.stash[_session]


def _why_not_alone(config: pytest.Config) -> str:
    return "other workers run tests at the same time; run speed tests without -n" * hasattr(config, "workerinput")


def _command(config: pytest.Config) -> tuple[str, ...]:
    """Build this session's command for one test, without options that measure coverage or start workers."""
    places = set(config.option.file_or_dir or ())
    given = [str(each) for each in config.invocation_params.args if str(each) not in places]
    plugins = config.pluginmanager
    own = ["-n0"] * plugins.hasplugin("xdist") + ["--no-cov"] * plugins.hasplugin("_cov")
    name = plugins.get_name(sys.modules[__name__])
    if name != _OWN_NAME and not any(__name__ in each for each in given):
        own += ["-p", __name__]
    return (sys.executable, "-m", "pytest", *given, *own, "-p", "no:cacheprovider", f"--rootdir={config.rootpath}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = session.config.stash.get(_session, None)
    if found is None:
        return
    from fairlap.errors import FairlapError

    try:
        found.save()
    except FairlapError as error:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        print(f"\nfairlap: {error} [{error.code}]", file=sys.stderr)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(_session, None)
    if found is None or not found.speeds:
        return
    terminalreporter.section("fairlap")
    for each in found.speeds:
        terminalreporter.line(str(each))
