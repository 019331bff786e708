"""What /proc says of a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fairlap.machine.programs import processes
from fairlap.machine.programs.processes import waited_s


def test_every_thread_has_its_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", str(tmp_path))
    for task, waited_ns in ((7, 1_500_000_000), (8, 500_000_000)):
        folder = tmp_path / "7" / "task" / str(task)
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"9000 {waited_ns} 12\n")
    assert waited_s(7) == {7: 1.5, 8: 0.5}
    assert waited_s(9) is None
    (tmp_path / "7" / "task" / "8" / "schedstat").unlink()
    assert waited_s(7) is None, "a kernel that does not count"


def test_a_thread_of_this_process_has_waited_some_time() -> None:
    waited = waited_s(os.getpid())
    assert waited is None or min(waited.values()) >= 0
