"""Files of the cache that every contestant is handed: written once, and anew when one is no longer whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fairlap.race.equal_work.materials import materials_for
from fairlap.request.work import Work

_NAMES = ("weights", "inputs", "changed", "reference-inputs")


@pytest.mark.parametrize(
    "harm", [lambda file: os.truncate(file, file.stat().st_size - 1), lambda file: os.truncate(file, 0), Path.unlink]
)
@pytest.mark.parametrize("name", _NAMES)
def test_a_file_that_is_not_whole_is_made_anew_and_the_others_stay(
    name: str, harm: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    work = Work("mlp", 2)
    folder = materials_for(work, 0).folder
    materials_for(work, 0).reference("inputs")
    files = sorted(folder.iterdir())
    before = {file: (file.read_bytes(), file.stat().st_ino) for file in files}
    [harmed] = [file for file in files if file.name.startswith(f"{name}.") or file.name.startswith(f"{name}-")]
    harm(harmed)
    materials_for(work, 0).reference("inputs")
    assert sorted(folder.iterdir()) == files
    for file in files:
        assert file.read_bytes() == before[file][0]
        assert file == harmed or file.stat().st_ino == before[file][1]
