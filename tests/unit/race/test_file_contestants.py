"""A framework races on several files of one model once for each that it reads as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.errors import FairlapError
from fairlap.launch import opened_source
from fairlap.launch.opened_source import opened
from fairlap.models.sources.bundle import bundle_in
from fairlap.race.equal_work.material_sources import materials_for, seeds_of_inputs
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.resume import with_files_here
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from onnx_files import BOUND, drawn, masked_lookup, weights

pytestmark = pytest.mark.sanitized

CLASSES = weights()["out.weight"].shape


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files that no test changes, and a cache in which they are opened once."""
    return written(tmp_path_factory.mktemp("files"))


def written(folder: Path) -> Path:
    masked_lookup(folder / "a.onnx")
    masked_lookup(folder / "b.onnx", **{"out.weight": drawn(*CLASSES, seed=1)})
    return folder


@pytest.fixture
def here(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(kept / "cache"))
    monkeypatch.chdir(kept)
    return kept


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of the test's own."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opened_source, "_opened", {})  # as in a new process
    monkeypatch.chdir(tmp_path)
    return written(tmp_path)


def plan_on(on: str, model: str = "a.onnx,b.onnx", **options: Any) -> Plan:
    request = RaceRequest(models=(model,), contestants=Contestants(on), blocks=1, **{"dims": BOUND, **options})
    return plan_of(request)


@pytest.mark.slow
def test_each_framework_gets_every_file_and_one_that_is_named_alone(here: Path) -> None:
    plan = plan_on("onnxruntime,openvino:file=b.onnx,jax:file=a.onnx")
    assert [name.text for name in plan.contestants] == [
        "onnxruntime:file=a.onnx",
        "onnxruntime:file=b.onnx",
        "openvino:file=b.onnx",
        "jax:file=a.onnx",
    ]
    assert not any("file" in name.framework_options for name in plan.contestants)
    works = [plan.work_of(plan.blocks[0], place) for place in range(4)]
    folders = [materials_for(work, plan.data_seed).folder for work in works]
    assert folders[0] == folders[3] == folders[1].parent
    assert folders[1] == folders[2]
    assert len({work.id for work in works}) == 1
    reached = [line for line in reach_of(plan) if line.startswith("model ")]
    assert reached == [f"model {here / name}" for name in ("a.onnx", "b.onnx")]


@pytest.mark.slow
def test_the_work_is_another_when_any_of_its_files_is(files: Path) -> None:
    before = plan_on("onnxruntime").works[0]
    masked_lookup(files / "b.onnx", **{"out.weight": drawn(*CLASSES, seed=2)})
    opened_source._opened.clear()
    after = plan_on("onnxruntime")
    assert after.works[0].source is not None
    assert len(after.works[0].source.files) == 2
    assert after.works[0].id != before.id
    assert before.id != plan_on("onnxruntime", "a.onnx").works[0].id


@pytest.mark.slow
def test_recorded_files_are_found_in_another_folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_on("onnxruntime")
    moved = files / "moved"
    moved.mkdir()
    for name in ("a.onnx", "b.onnx"):
        (files / name).rename(moved / name)
    monkeypatch.chdir(moved)
    source = with_files_here(plan).works[0].source
    assert source is not None
    assert (source.path, source.exports) == (str(moved / "a.onnx"), (str(moved / "b.onnx"),))


@pytest.mark.slow
def test_a_bundle_of_a_further_file_that_was_changed_is_refused(files: Path) -> None:
    source = plan_on("onnxruntime").works[0].source
    assert source is not None
    seeds = seeds_of_inputs(0)
    folder, bundle = opened(source.of_file("b.onnx"), seeds)
    assert bundle.source.path == str(files / "b.onnx")
    forged = msgspec.structs.replace(bundle, source=msgspec.structs.replace(bundle.source, trust=True))
    (folder / "bundle.json").write_bytes(msgspec.json.encode(forged))
    opened_source._opened.clear()
    bundle_in.cache_clear()
    with pytest.raises(FairlapError) as refused:
        opened(source, seeds)
    assert refused.value.code == "E_SOURCE_TRUST"


@pytest.mark.parametrize(
    ("on", "model", "options", "code"),
    [
        ("onnxruntime:file=c.onnx", "a.onnx,b.onnx", {}, "E_CONTESTANT"),
        ("onnxruntime:file=a.onnx", "a.onnx", {}, "E_CONTESTANT"),
        ("jax", "a.onnx,b.onnx", {}, "E_CONTESTANT"),
        ("./worker", "a.onnx,b.onnx", {}, "E_CONTESTANT"),
        ("onnxruntime", "a.onnx,a.onnx", {}, "E_SOURCE"),
        ("onnxruntime", "a.onnx,missing.onnx", {}, "E_MODEL_FILE"),
        ("onnxruntime", "a.onnx,b.onnx", {"precision": "bf16"}, ""),
        ("onnxruntime", "a.onnx,b.onnx", {"data": "synthetic"}, ""),
        ("jax", "a.onnx,b.onnx", {"mode": "train", "loss": "mse"}, "E_NOT_TRAINED"),
    ],
)
def test_what_cannot_race_is_refused(here: Path, on: str, model: str, options: dict[str, Any], code: str) -> None:
    with pytest.raises(FairlapError) as refused:
        plan_on(on, model, **options)
    assert not code or refused.value.code == code
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_files_with_other_inputs_are_no_exports_of_one_model(files: Path) -> None:
    import onnx

    model = onnx.load("b.onnx")
    model.graph.output.append(model.graph.output[0])
    model.graph.output[1].CopyFrom(onnx.helper.make_tensor_value_info("hidden", 1, ["batch", "sequence", 32]))
    onnx.save(model, "b.onnx")
    with pytest.raises(FairlapError) as refused:
        plan_on("onnxruntime")
    assert refused.value.code == "E_SOURCE"
    assert "b.onnx has 2 outputs" in str(refused.value)
