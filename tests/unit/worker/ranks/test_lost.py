from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.worker.ranks.lost import described_status, how_it_ended
from fairlap.worker.ranks.placement import Place


def launched(text: str, *, is_rank: bool = False, status: int | None = None) -> Any:
    launch = SimpleNamespace(is_rank=is_rank, place=Place("", 0, 2))
    return SimpleNamespace(launch=launch, text=text, process=SimpleNamespace(poll=lambda: status))


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("E1123 failed (exitcode: -9) local_rank: 1 (pid: 77) of binary: python", "was ended by SIGKILL"),
        ("  exitcode  : -11 (pid: 77)\n", "was ended by SIGSEGV"),
        ("  exitcode  : -9 (pid: 78)\n", ""),
        (
            "mpirun noticed that process rank 1 with PID 77 on a exited on signal 9.",
            "was ended by SIGKILL",
        ),
        ("  Process name: [[1,1],0]\n  Exit code:    3\n", "exited with status 3"),
        ("", ""),
    ],
)
def test_what_a_launcher_prints_says_how_a_rank_ended(text: str, how: str) -> None:
    assert how_it_ended(launched(text), 77) == how


def test_the_status_of_a_rank_that_was_started_directly_is_known() -> None:
    assert how_it_ended(launched("", is_rank=True, status=-6), 77) == "was ended by SIGABRT"
    assert how_it_ended(launched("", is_rank=True), 77) == ""


def test_an_unknown_signal_has_its_number() -> None:
    assert described_status(-250) == "was ended by signal 250"
