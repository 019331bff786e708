"""A disk that becomes full during a race ends it: nobody is disqualified for it, and what was measured is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairlap.models.array_files import safetensors
from fairlap.race.race import Race
from fairlap.scenarios.process_result import ProcessResult
from machine_marks import needs_proc
from small_races import plan_of

pytestmark = needs_proc


@pytest.mark.usefixtures("example")
def test_files_that_cannot_be_written_end_the_race_and_blame_no_contestant(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[ProcessResult] = []
    write = safetensors.write

    def write_while_there_is_room(path: Path, *arguments: Any, **options: Any) -> None:
        if kept:
            raise safetensors.NotWritten(f"cannot write {path}: No space left on device")
        write(path, *arguments, **options)

    monkeypatch.setattr(safetensors, "write", write_while_there_is_room)
    race = Race(plan_of("example", blocks=3, data_seeds=(0, 1, 2)), keep=lambda each, _: kept.append(each))
    race.run()
    assert {each.outcome for each in race.processes} == {"finished"}
    assert len(race.processes) == 2  # the first two blocks share their weights, and the third draws others
    assert "No space left" in race.data_lost
    assert race.ended_early == race.data_lost
