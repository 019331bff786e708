"""The figures of a separate program are kept line by line, however it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpu.proof.json_lines import Failed, run_and_collect
from gpu.proof.record import NotHere

pytestmark = pytest.mark.sanitized


@pytest.fixture
def collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def run(program: str, limit_s: float = 30) -> list[dict[str, Any]]:
        (tmp_path / "made_up_program.py").write_text(program)
        run.kept = []  # type: ignore[attr-defined]
        run_and_collect("made_up_program", limit_s=limit_s, each=run.kept.append)  # type: ignore[attr-defined]
        return run.kept  # type: ignore[attr-defined, no-any-return]

    return run


def test_only_lines_that_are_objects_are_figures(collect: Any) -> None:
    assert collect("print('a warning'); print('{\"ns\": 1}'); print('{not json'); print('[2]')") == [{"ns": 1}]


def test_a_program_that_cannot_run_here_says_why(collect: Any) -> None:
    with pytest.raises(NotHere, match="no CUDA here"):
        collect('print(\'{"absent": "no CUDA here"}\')')


def test_a_program_that_fails_is_reported_with_its_last_line_and_its_figures_stay(collect: Any) -> None:
    with pytest.raises(Failed, match="exit status 1: ValueError: too short"):
        collect("print('{\"ns\": 1}', flush=True); raise ValueError('too short')")
    assert collect.kept == [{"ns": 1}]


def test_a_program_that_hangs_is_ended_and_its_figures_stay(collect: Any) -> None:
    with pytest.raises(Failed, match="stopped after 2 s"):
        collect("import time; print('{\"ns\": 1}', flush=True); time.sleep(60)", limit_s=2)
    assert collect.kept == [{"ns": 1}]
