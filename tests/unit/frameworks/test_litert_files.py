"""A converted file is cached, and converted again if it is incomplete."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fairlap.frameworks.adapter_parts import litert_files
from fairlap.frameworks.adapter_parts.litert_files import converted_file
from fairlap.models.workload import Workload
from fairlap.race.equal_work.materials import materials_for
from fairlap.request.work import Work


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: os.truncate(file, 3),
        Path.unlink,
        lambda file: file.with_suffix(".bytes").unlink(),
        lambda file: os.truncate(file.with_suffix(".bytes"), 0),
    ],
)
def test_an_incomplete_file_is_converted_again_and_a_complete_one_is_kept(
    harm: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(_work: Workload, _weights: Path, file: Path) -> None:
        file.write_bytes(b"converted")

    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    monkeypatch.setattr(litert_files, "_convert", convert)
    monkeypatch.setattr(litert_files, "version", lambda _package: "1")
    work = materials_for(Work("mlp", 2), 0).workload("inputs")
    file, kept = converted_file(work)
    assert not kept
    assert converted_file(work) == (file, True)
    harm(file)
    assert converted_file(work) == (file, False)
    assert file.read_bytes() == b"converted"
    assert converted_file(work) == (file, True)
