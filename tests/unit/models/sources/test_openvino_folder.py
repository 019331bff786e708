"""The folder for OpenVINO GenAI, which is written where that is installed, and for decoders alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlap.models.sources.python_models.generating import openvino_folder
from fairlap.models.sources.python_models.generating.decoder_exports import exported_encoder_decoder
from fairlap.models.sources.python_models.generating.openvino_folder import OPENVINO_GENAI, exported_openvino_folder

STEPS: Any = SimpleNamespace()


def test_nothing_is_converted_where_the_package_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_folder, "find_spec", lambda _: None)
    route = exported_openvino_folder(STEPS, [(1, 2, 5, 8)] * 2, tmp_path)
    assert OPENVINO_GENAI in route.why_not
    assert list(tmp_path.iterdir()) == []


def test_a_conversion_that_fails_is_the_outcome_of_its_contestant_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise RuntimeError("no such operator")

    monkeypatch.setattr(openvino_folder, "find_spec", lambda _: True)
    monkeypatch.setattr(openvino_folder, "_write", fails)
    assert "no such operator" in exported_openvino_folder(STEPS, [(1, 2, 5, 8)] * 2, tmp_path).why_not


@pytest.mark.slow
def test_an_encoder_beside_a_decoder_is_refused(tmp_path: Path) -> None:
    routes = exported_encoder_decoder(STEPS, [], [], None, tmp_path)
    assert "encoder" in routes[OPENVINO_GENAI].why_not
