"""Progress in the kernel of a notebook: one output, which changes, whatever the number of processes."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import fairlap
import pytest
from fairlap.race.progress import Lines, Live, progress_for
from fairlap.race.progress_in_notebook import OneLine, progress_in_kernel
from fairlap.scenarios.process_result import ProcessResult
from small_races import plan_of


class Outputs:
    """What a kernel keeps in the cell: an output for each display, which an update replaces."""

    def __init__(self) -> None:
        self.cell: list[str] = []
        self.updates: list[str] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Outputs:
        assert (raw, display_id) == (True, True)
        self.cell.append(data["text/plain"])
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.cell[-1] = data["text/plain"]
        self.updates.append(data["text/plain"])


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Outputs:
    found = Outputs()
    package, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(package).update(get_ipython=lambda: SimpleNamespace(kernel=object()), display=display)
    vars(display).update(display=found.display)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.usefixtures("example")
def test_a_race_from_a_kernel_has_one_output_that_ends_with_what_was_run(
    outputs: Outputs, capfd: pytest.CaptureFixture[str]
) -> None:
    found = fairlap.compare("mlp", on="example", blocks=3, seconds=0.02, threads=1)
    assert len(outputs.cell) == 1
    assert outputs.cell[0].startswith("fairlap: 3 of 3 processes in ")
    assert 6 <= len(outputs.updates) <= 20
    assert any("block 2" in each and "left" in each for each in outputs.updates)
    assert len(found.rows) == 1
    assert "fairlap:" not in "".join(capfd.readouterr())


def test_a_process_that_is_lost_is_a_line_of_its_own(outputs: Outputs, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of("torch", blocks=2)
    block = plan.blocks[0]
    lost = ProcessResult(
        block.number, 0, "torch", plan.works[0].id, block.conditions, outcome="crash", message="\x1b[2Jx"
    )
    with OneLine(plan, None) as shown:
        shown.announce("computing\nthe reference")
        shown.began(lost)
        shown.ended(1, lost)
        shown.block_over([lost])
    assert "crash" in capsys.readouterr().err
    assert outputs.updates[0] == "fairlap: computing\\u000athe reference"
    assert all("\x1b" not in each and "\n" not in each for each in (*outputs.cell, *outputs.updates))


def test_a_command_in_a_cell_prints_lines_where_a_terminal_has_ten_frames_in_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    plan = plan_of("torch")
    assert type(progress_for(plan, quiet=False)) is Live
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert type(progress_for(plan, quiet=False)) is Lines


def test_outside_of_a_kernel_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    plan: Any = plan_of("torch")
    package = ModuleType("IPython")
    monkeypatch.setitem(sys.modules, "IPython", package)
    for shell in (None, SimpleNamespace(), SimpleNamespace(kernel=None)):  # a script, IPython in a terminal
        vars(package).update(get_ipython=lambda shell=shell: shell)
        assert progress_in_kernel(plan, None) is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert progress_in_kernel(plan, None) is None
    assert "IPython" not in sys.modules
