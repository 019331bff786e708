"""How a lost rank ended is described; one that ends as asked takes leave first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.frameworks.contract import Contestant
from fairlap.meters.memory import Memory
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Ended
from fairlap.worker.ranks import lost
from fairlap.worker.ranks.launchers import Launch
from fairlap.worker.ranks.lost import described_status, how_it_ended
from fairlap.worker.ranks.placement import Place
from fairlap.worker.service import Service

TORCHRUN_LOGS = """\
W1123 19:13:52.024 16897 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 16998 closing signal
E1123 19:13:52.028 16897 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 1 \
(pid: 77) of binary: python
"""
TORCHRUN_REPORTS = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=======================================================
Root Cause (first observed failure):
[0]:
  time      : 2026-11-23_19:13:52
  rank      : 1 (local_rank: 1)
  exitcode  : -11 (pid: 77)  (SIGSEGV)
  traceback : Signal 11 (SIGSEGV) received by PID 77
=======================================================
"""
MPIRUN_SIGNAL = """\
--------------------------------------------------------------------------
prterun noticed that process rank 1 with PID 77 on node vm exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""
MPIRUN_STATUS = """\
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-7021@1,1]
   Exit code:    3
--------------------------------------------------------------------------
"""


def launched(text: str, *, launcher: str = "torchrun", status: int | None = None, host: str = "") -> Any:
    launch = Launch(Place(host, 0, 2), 0, 2, [], {}, launcher=launcher)
    return SimpleNamespace(launch=launch, text=text, process=SimpleNamespace(poll=lambda: status))


def ranks(of: Any, *, missing: list[int], lost_ones: list[int] | None = None) -> Any:
    """Fake what is left of a contestant whose launcher is ``of``."""
    gone = [SimpleNamespace(number=number, name=f"rank {number} on vm") for number in lost_ones or []]
    return SimpleNamespace(
        launched=[of],
        in_order_of_loss=gone,
        in_order_of_failure=[],
        stopped=list,
        joined=[],
        missing=lambda: missing,
        launched_of=lambda _number: of,
        hear_out=lambda *_: None,
    )


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (TORCHRUN_LOGS, "was ended by SIGKILL"),
        (TORCHRUN_REPORTS, "was ended by SIGSEGV"),
        (MPIRUN_SIGNAL, "was ended by SIGKILL"),
        (MPIRUN_STATUS, "exited with status 3"),
        ("", ""),
    ],
)
def test_what_a_launcher_prints_says_how_a_rank_ended(text: str, how: str) -> None:
    assert how_it_ended(launched(text), 1) == how
    assert how_it_ended(launched(text), 0) == ""


def test_the_status_of_a_rank_that_was_started_directly_is_known() -> None:
    assert how_it_ended(launched("", launcher="", status=-6), 0) == "was ended by SIGABRT"
    assert how_it_ended(launched("", launcher=""), 0) == ""


def test_a_remote_shell_reports_a_signal_as_a_status_above_128() -> None:
    assert how_it_ended(launched("", launcher="", status=137, host="a"), 0) == "was ended by SIGKILL"


def test_an_unknown_signal_has_its_number() -> None:
    assert described_status(-250) == "was ended by signal 250"


def test_of_several_ranks_that_are_lost_the_one_that_ended_by_itself_is_named() -> None:
    failed = lost.after_trouble(ranks(launched(MPIRUN_SIGNAL), missing=[], lost_ones=[0, 1]), "measure")
    assert failed.message.startswith("rank 1 on vm")
    assert "SIGKILL" in failed.message


@pytest.mark.parametrize("report", [TORCHRUN_LOGS, MPIRUN_SIGNAL])
def test_a_rank_that_ends_before_it_joins_is_named_with_what_it_printed_last(report: str) -> None:
    failed = lost.after_trouble(ranks(launched(f"its last words\n{report}", status=1), missing=[0, 1]), "launch")
    assert "rank 1 on this host" in failed.message
    assert "SIGKILL before it joined" in failed.message
    assert failed.message.endswith("its last words")


@pytest.mark.parametrize("lost_ones", [[], [0, 1]])
def test_a_launcher_that_ends_is_named_and_the_ranks_had_joined(lost_ones: list[int]) -> None:
    failed = lost.after_trouble(ranks(launched("", status=-9), missing=[], lost_ones=lost_ones), "measure")
    assert failed.code == "E_RANK"
    assert "torchrun" in failed.message
    assert "SIGKILL" in failed.message
    assert "joined" not in failed.message


def test_a_launcher_that_ends_before_its_ranks_joined_names_the_first_of_them() -> None:
    failed = lost.after_trouble(ranks(launched("", status=2), missing=[1]), "launch")
    assert "exited with status 2 before rank 1 joined" in failed.message


def test_a_rank_takes_leave_before_its_last_message() -> None:
    """Open MPI ends all ranks when one of them ends without it, and JAX aborts those that come last."""
    left: list[bool] = []
    service = Service(Phases(lambda *_: None))
    contestant = Contestant(
        bind=lambda _: lambda: None,
        done=None,
        outputs=lambda _: {},
        weights=dict,
        in_force={},
        leave=lambda: left.append(True),
    )
    held = SimpleNamespace(contestant=contestant, fed=None, memory_at_the_end=Memory)
    service._held = held  # type: ignore[assignment]
    assert isinstance(service.quit(), Ended)
    assert left == [True]
