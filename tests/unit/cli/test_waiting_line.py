"""A callable that sleeps says so in one line, and one that is timed as expected says nothing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from command_line import here
from fairlap.cli import waiting_line
from fairlap.engine import time_calls
from fairlap.engine.timed_calls import ASLEEP

SLEEPS = """
import time

calls = []

def quick():
    return 1

def slow():
    calls.append(0) or len(calls) > 1 or time.sleep(SLEEPS_S)
    return 1
"""
IMPORTED_SLOWLY = "import time\ntime.sleep(SLEEPS_S)\n\ndef quick():\n    return 1\n"
WAITS_S = (0.5, 2.0, 8.0)  # importing what times takes a while, too, and longer on a busy machine


def timed(
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    source: str,
    *names: str,
    module: str,
    wait_s: float,
    more: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    (tmp_path / f"{module}.py").write_text(textwrap.dedent(source).replace("SLEEPS_S", str(4 * wait_s)))
    patch.setattr(waiting_line, "AFTER_S", wait_s)
    patch.setattr(waiting_line, "UNKNOWN_S", wait_s)
    patch.setattr(sys, "dont_write_bytecode", True)  # the next try's module is as long and as new
    patch.syspath_prepend(str(tmp_path))
    patch.delitem(sys.modules, module, raising=False)
    return here("time", *(f"{module}:{name}" for name in names), *more, cwd=tmp_path)


@pytest.mark.slow_but("names0")
@pytest.mark.parametrize("names", [("slow",), ("quick", "slow")])
def test_the_callable_that_sleeps_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    more = ("--seconds", "10ms", *(("--budget", "10ms") if len(names) > 1 else ()))
    lines = []
    for wait_s in WAITS_S:
        done = timed(tmp_path, monkeypatch, SLEEPS, *names, module="sleeping_callables", wait_s=wait_s, more=more)
        assert done.returncode == 0
        [line] = [each for each in done.stderr.splitlines() if "Ctrl-C" in each]
        lines.append(line)
        if "sleeping_callables:slow" in line and "quick" not in line:
            return
    raise AssertionError(lines)


@pytest.mark.slow
def test_a_module_whose_import_sleeps_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for wait_s in WAITS_S:
        found = {"module": "imported_slowly", "wait_s": wait_s, "more": ("--samples", "5")}
        done = timed(tmp_path, monkeypatch, IMPORTED_SLOWLY, "quick", **found)  # type: ignore[arg-type]
        [line] = [each for each in done.stderr.splitlines() if "Ctrl-C" in each]
        lines.append(line)
        if "import of imported_slowly" in line:
            return
    raise AssertionError(lines)


def test_what_is_timed_as_expected_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_line, "AFTER_S", 60.0)  # a busy machine may need more than usual for all around it
    done = here("time", "time:time_ns", "--seconds", "50ms")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_thread_that_sleeps_for_fairlap_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    codes = []
    for name in (ASLEEP, "another"):
        thread = threading.Thread(target=over.wait, name=name, daemon=True)
        thread.start()
        here = [threading.main_thread(), thread]  # whatever else pytest started
        monkeypatch.setattr(threading, "enumerate", lambda here=here: here)
        found = time_calls(lambda: 0, samples=20, warmup=0)
        codes.append([warning.code for warning in found.warnings if warning.code == "W_PYTHON_THREADS"])
        over.set()
        thread.join()
        over.clear()
    assert codes == [[], ["W_PYTHON_THREADS"]]
