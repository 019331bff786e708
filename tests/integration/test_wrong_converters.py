"""Graphs that are converted wrongly are disqualified by the frameworks' own answers, whichever framework runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import SHORT
from command_line import fairlap as run
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from margins import by_onnxruntime, by_openvino, by_torch, share_of_tolerance
from onnx_files import materials_of, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
# Found, not imported: every process of pytest imports this file, and only one of them runs it.
pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("onnxruntime", "openvino", "torch"))), reason="`make test` installs them and runs this"
)

from small_networks import encoder, image_network  # noqa: E402
from wrong_conversions import CHANGES, wrong_conversions  # noqa: E402

Run = Callable[[Any, Mapping[str, np.ndarray], Path], Mapping[str, np.ndarray]]
FRAMEWORKS: Mapping[str, Run] = {
    "onnxruntime": lambda model, inputs, _: by_onnxruntime(model, inputs),
    "openvino": lambda model, inputs, _: by_openvino(model, inputs),
    "torch": by_torch,
}
NETWORKS = {"image network": image_network, "encoder": encoder}
ONLY_OF_IMAGES = {"asymmetric padding"}
ONLY_OF_ENCODERS = {
    "an ignored mask", "clamped ids", "swapped inputs", "the other GELU", "attention without scaling"
}  # fmt: skip
APPLICABLE = {"image network": set(CHANGES) - ONLY_OF_ENCODERS, "encoder": set(CHANGES) - ONLY_OF_IMAGES}


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Materials]]:
    folder = tmp_path_factory.mktemp("networks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        files = {name: make(folder / f"{make.__name__}.onnx") for name, make in NETWORKS.items()}
        return {name: (onnx.load(file), materials_of(source_of(file), folder)) for name, file in files.items()}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_right_conversion_uses_a_small_part_of_its_tolerance(
    networks: dict[str, tuple[Any, Materials]], network: str, framework: str, tmp_path: Path
) -> None:
    model, materials = networks[network]
    found = FRAMEWORKS[framework](model, materials.workload("inputs").inputs, tmp_path)
    assert 0 < share_of_tolerance(materials, found) < 0.2


@pytest.mark.thorough
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("network", "how"), [(name, how) for name, hows in APPLICABLE.items() for how in sorted(hows)])
def test_a_wrong_conversion_is_disqualified(
    networks: dict[str, tuple[Any, Materials]], network: str, how: str, framework: str, tmp_path: Path
) -> None:
    model, materials = networks[network]
    wrong = dict(wrong_conversions(model))[how]
    found = FRAMEWORKS[framework](wrong, materials.workload("inputs").inputs, tmp_path)
    errors = answers.array_errors(materials, found, "inputs", "before")
    with pytest.raises(OtherWork) as disqualified:
        answers.require_right_on(materials, found, "inputs", errors, {}, "a call")
    assert disqualified.value.code == "E_OUTPUT"
    assert share_of_tolerance(materials, found) > 2


@pytest.mark.slow
def test_a_race_names_those_that_got_a_wrong_conversion_and_ranks_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter is the culprit here: its file is replaced by a wrong one after the model was opened."""
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    pytest.importorskip("onnxscript", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    torch.manual_seed(0)
    square = torch.nn.Linear(16, 16)
    net = torch.nn.Sequential(square, torch.nn.Tanh(), torch.nn.Linear(16, 4)).eval()
    torch.export.save(torch.export.export(net, (torch.randn(4, 16),)), tmp_path / "net.pt2")
    assert run("list", "routes", tmp_path / "net.pt2").returncode == 0
    [file] = tmp_path.glob("cache/sources/*/exported.onnx")
    model = onnx.load(file)
    onnx.save(dict(wrong_conversions(model))["a transposed weight"], file)
    rows_file = tmp_path / "rows.jsonl"
    done = run("compare", tmp_path / "net.pt2", "--on", "torch,openvino,onnxruntime,jax", *SHORT, "-o", rows_file)
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in map(json.loads, rows_file.read_text().splitlines())}
    for name in ("onnxruntime", "jax"):
        assert (rows[name]["outcome"], rows[name]["code"]) == ("disqualified", "E_OUTPUT")
        assert rows[name]["error_relative"] > 1e-2
    for name in ("torch", "openvino"):
        assert rows[name]["outcome"] == "finished"
        assert 0 < rows[name]["error_relative"] < 1e-6
