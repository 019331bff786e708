"""Any input ends in an answer or in one line with a code: no traceback, no signal, in bounded time and memory.

Time is the processor's, since a machine may stand still for longer than any input takes; waiting is bounded as well.

What once went wrong is kept in ``corpus/TARGET/`` and is tried each time. ``FAIRLAP_FUZZ_SECONDS`` is how long all
targets together take; without it each gets some dozen inputs. Hypothesis draws them, and shrinks one that goes wrong.
"""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from fairlap.errors import FairlapError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
FOUND = Path("build/fuzz").absolute()
SECONDS = float(os.environ.get("FAIRLAP_FUZZ_SECONDS", "0"))
_AT_ONCE = 100 if SECONDS else 12
_MOST_CPU_S, _LONGEST_S = 20, 200
_MOST_GROWTH_KB = 2**20


@contextmanager
def within(seconds: int, of_what: str, timer: int, ends_by: signal.Signals) -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"took longer than {seconds} s {of_what}")

    before = signal.signal(ends_by, late)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(ends_by, before)


@contextmanager
def in_bounded_time() -> Iterator[None]:
    with (
        within(_MOST_CPU_S, "of the processor", signal.ITIMER_PROF, signal.SIGPROF),
        within(_LONGEST_S, "of the clock", signal.ITIMER_REAL, signal.SIGALRM),
    ):
        yield


def tried(target: str, content: bytes, folder: Path) -> None:
    """Run the target on bytes that are in a file first, where they stay if the process ends."""
    FOUND.mkdir(parents=True, exist_ok=True)
    kept = FOUND / f"{target}-{hashlib.sha256(content).hexdigest()[:12]}"
    kept.write_bytes(content)
    path = folder / TARGETS[target].name
    path.write_bytes(content)
    with suppress(FairlapError), in_bounded_time():
        TARGETS[target].run(path)
    kept.unlink()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "none.sqlite"))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_once_went_wrong_ends_in_one_line(file: Path, folder: Path) -> None:
    tried(file.parent.name, file.read_bytes(), folder)


@pytest.mark.parametrize("target", ["plan", "run", "bundle", "store", "request", "npz", "safetensors", "pt2"])
def test_the_files_that_are_changed_are_valid(target: str, folder: Path) -> None:
    for content in TARGETS[target].seeds():
        (folder / TARGETS[target].name).write_bytes(content)
        TARGETS[target].run(folder / TARGETS[target].name)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("target", TARGETS)
def test_changed_files_end_in_an_answer_or_in_one_line(target: str, folder: Path) -> None:
    seeds, count = TARGETS[target].seeds(), 0
    held_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(
        max_examples=_AT_ONCE, database=None, deadline=None, derandomize=not SECONDS,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(seeds), st.sampled_from(TARGETS[target].mutate), st.integers(0, 2**32))
    def draw(seed: bytes, mutate: object, number: int) -> None:
        nonlocal count
        count += 1
        tried(target, mutate(seed, Random(number)), folder)  # type: ignore[operator]

    ends_s = time.monotonic() + SECONDS / len(TARGETS)
    draw()
    while time.monotonic() < ends_s:
        draw()
    print(f"{target}: {count:,} files")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held_kb < _MOST_GROWTH_KB
