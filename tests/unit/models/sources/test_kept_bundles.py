"""An opened model is kept, and opened again when its file or a package that reads or converts it changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.machine.software import installed_versions
from fairlap.models.sources import opening
from machine_marks import needs
from onnx_files import BOUND, masked_lookup, opened, source_of

needs("onnx")


@pytest.mark.slow_but("onnx", "torch")
@pytest.mark.parametrize("package", ["torch", "openvino", "onnx", "onnxscript", "keras", "transformers"])
def test_another_version_of_a_package_that_converts_opens_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    source = source_of(masked_lookup(tmp_path / "m.onnx"), BOUND)
    first, _ = opened(source, tmp_path)
    assert opened(source, tmp_path)[0] == first

    def upgraded(names: tuple[str, ...]) -> dict[str, str]:
        assert package in names
        return {**installed_versions(names), package: "99.1"}

    monkeypatch.setattr(opening, "installed_versions", upgraded)
    again, _ = opened(source, tmp_path)
    assert again != first
    assert opened(source, tmp_path)[0] == again


def test_another_version_of_a_package_that_adds_kinds_opens_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(masked_lookup(tmp_path / "m.onnx"), BOUND)
    folders = set()
    for version in ("1.0", "1.1", "1.0"):
        monkeypatch.setattr(opening, "plug_ins", lambda version=version: {"their-kinds": version})
        folders.add(opened(source, tmp_path)[0])
    assert len(folders) == 2
