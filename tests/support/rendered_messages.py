"""A plugin of pytest that records the errors and warnings that fairlap makes: ``-p rendered_messages``.

``make messages-rendered`` prints one of each code, as users read it.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_alone import environment_alone

TOP = Path(__file__).parents[2]
SOURCE = str(TOP / "python" / "fairlap") + os.sep
FILE = "FAIRLAP_RENDERED_MESSAGES"
"""The variable that names the file into which the plugin writes each message with its test and code."""

SKIPPED = "skipped"  # in place of a code

Rendered = dict[tuple[str, str], str]
"""The text by the test, without its parameters, and the code."""


def rendered_by(tests: Sequence[str], folder: Path) -> tuple[Rendered, str]:
    """Run tests in a fresh process; return what fairlap said in them, and what pytest printed."""
    file = folder / "rendered.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "rendered_messages", *tests]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    environment = {**environment_alone(), FILE: str(file), "PYTHONPATH": path}
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True)
    found: Rendered = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        test, code, text = json.loads(line)
        found.setdefault((test, code), text)
    return found, done.stdout + done.stderr


_made: list[Any] = []


def pytest_configure() -> None:
    if FILE not in os.environ:
        return
    for kind in _kinds():
        _record(kind)
    _record_printed_errors()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _made.clear()
    yield
    for each in _made:
        if each.code:
            _write(item.nodeid, each.code, _text_of(each))
    _made.clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _write(report.nodeid, SKIPPED, "")


def _write(test: str, code: str, text: str) -> None:
    if FILE in os.environ:
        with Path(os.environ[FILE]).open("a") as file:
            print(json.dumps((test.partition("[")[0], code, text)), file=file)


def _record_printed_errors() -> None:
    """Before a module of the command line imports the function."""
    from fairlap.cli import output

    printed = output.print_error

    def recorded(message: str, code: str, *, as_json: bool = False) -> None:
        _made.append(SimpleNamespace(code=code, message=message))
        printed(message, code, as_json=as_json)

    output.print_error = recorded


def _kinds() -> set[type]:
    from fairlap.engine.measurement import Notice
    from fairlap.errors import FairlapError
    from fairlap.machine.doctor.finding import Finding
    from fairlap.machine.serving.guard import Stopped
    from fairlap.scenarios.contract import Unqualified
    from fairlap.verdict.warnings import StatisticalWarning

    of_statistics = (kind for kind in StatisticalWarning.__subclasses__() if "__init__" in vars(kind))
    return {FairlapError, Finding, Notice, Stopped, Unqualified, *of_statistics}


def _record(kind: Any) -> None:
    """Keep every instance that fairlap's own source makes; one that a test makes itself proves nothing."""
    make = kind.__init__

    @functools.wraps(make)
    def recorded(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        frame = sys._getframe(1)
        while frame.f_code.co_name == "__init__" and frame.f_back is not None:  # of a class derived from it
            frame = frame.f_back
        if frame.f_code.co_filename.startswith(SOURCE):
            _made.append(self)

    kind.__init__ = recorded


def _text_of(made: Any) -> str:
    if hasattr(made, "remedy"):  # a finding of the doctor
        return "; ".join(each for each in (made.found, made.effect, made.remedy) if each)
    return next((getattr(made, name) for name in ("text", "message", "why") if hasattr(made, name)), str(made))


def provoking_tests() -> dict[str, str]:
    """Name the test that renders a message of each code, except those that ``message_cases`` has."""
    lines = (TOP / "tests" / "unit" / "rendered_by.txt").read_text().splitlines()
    return {code: f"tests/unit/{test}" for code, test in map(str.split, lines)}


@dataclass(frozen=True)
class Provoked:
    texts: dict[str, str]  # by code
    skipped: set[str]  # codes whose test cannot run on this machine
    printed: str  # by pytest, which says why a code is missing


def provoked(folder: Path) -> Provoked:
    """Provoke a message of each code."""
    from message_cases import CASES

    found: dict[str, str] = {}
    for number, (wanted, provoke) in enumerate(CASES.items()):
        own = folder / str(number)
        own.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            code, text = provoke(own, patch)
        if code == wanted:
            found[code] = text
    tests = provoking_tests()
    rendered, printed = rendered_by(sorted(set(tests.values())), folder)
    found |= {code: rendered[test, code] for code, test in tests.items() if (test, code) in rendered}
    skipped = {code for code, test in tests.items() if code not in found and (test, SKIPPED) in rendered}
    return Provoked(found, skipped, printed)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for code, text in sorted(provoked(Path(scratch)).texts.items()):
            print(f"{code}\t{text}")
