"""A user's own model is fed: its answers are compared, batch by batch, with those of the model itself in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.launch.original import Original
from fairlap.models.array_files import safetensors
from fairlap.models.sources.contract import SourceError
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.fed_check import Feeding
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds
from fairlap.scenarios.calls.fed_latency import GOT, SEEN
from fairlap.scenarios.process_result import ProcessResult
from onnx_files import BOUND, ROWS, masked_lookup, one_node, source_of
from small_races import run_race

pytestmark = pytest.mark.usefixtures("own_cache")

pytest.importorskip("onnx", reason="`make test` installs it and runs this")
pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")


def planned(model: Path, contestants: str = "onnxruntime", data: str = "synthetic", **options: Any) -> Plan:
    asked = {"dims": BOUND, **options}
    return plan_of(
        RaceRequest(
            models=(str(model),),
            contestants=Contestants(contestants),
            data=data,
            blocks=1,
            seconds=Seconds(0.05),
            **asked,
        )
    )


def rows_of(folder: Path, **arrays: np.ndarray) -> str:
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("contestants", ["onnxruntime", pytest.param("openvino,jax", marks=pytest.mark.slow)])
def test_it_is_fed_and_checked_in_every_framework(contestants: str, tmp_path: Path) -> None:
    for name in contestants.split(","):
        pytest.importorskip(name, reason="`make test` installs it and runs this")
    race = run_race(planned(masked_lookup(tmp_path / "m.onnx"), contestants))
    assert [process.contestant for process in race.processes] == contestants.split(",")
    for process in race.processes:
        assert process.outcome == "finished", process.message + process.details
        fed = [error for error in process.errors if error.when.startswith("fed")]
        assert {error.when for error in fed} == {"fed batch 0", "fed batch 1", "fed, after"}
        assert all(error.right and error.distance < 2e-6 for error in fed)
        assert process.feeding is not None
        assert process.feeding.items == 2 * process.feeding.calls


def answered(model: Path, scratch: Path, wrong_by: float) -> ProcessResult:
    """Make a process that answered a batch, off by so much."""
    plan = planned(model)
    [materials] = [materials_for(work, plan.data_seed) for work in plan.works]
    inputs = safetensors.read(materials.inputs_file("changed"))
    answers = reference_to(materials, inputs)
    process = ProcessResult(0, 0, "onnxruntime", materials.work.id, "as-found")
    file = scratch / "fed.safetensors"
    outputs = {GOT + name: (array + wrong_by).astype(np.float32) for name, array in answers.items()}
    safetensors.write(file, {**{SEEN + name: array for name, array in inputs.items()}, **outputs})
    with Feeding(plan, [materials]) as feeding:
        feeding.hold_answer(file, process, materials)
    return process


def reference_to(materials: Materials, inputs: Any) -> Any:
    assert materials.work.source is not None
    original = Original(materials.work.source)
    try:
        answers, tolerances = original.answers(inputs)
    finally:
        original.close()
    assert set(tolerances) == set(answers)
    return answers


def test_a_wrong_answer_to_a_fed_batch_is_disqualified(tmp_path: Path) -> None:
    model = masked_lookup(tmp_path / "m.onnx")
    assert all(error.right for error in answered(model, tmp_path, 0.0).errors)
    with pytest.raises(OtherWork) as wrong:
        answered(model, tmp_path, 1e-3)
    assert wrong.value.code == "E_OUTPUT"


@pytest.mark.slow
def test_the_answers_of_the_model_itself_are_those_of_its_reference(tmp_path: Path) -> None:
    plan = planned(masked_lookup(tmp_path / "m.onnx"))
    [materials] = [materials_for(work, plan.data_seed) for work in plan.works]
    for name, array in reference_to(materials, safetensors.read(materials.inputs_file("inputs"))).items():
        assert np.array_equal(array, materials.reference("inputs")[name])


@pytest.mark.slow
def test_a_model_that_was_replaced_during_the_race_is_not_asked(tmp_path: Path) -> None:
    model = masked_lookup(tmp_path / "m.onnx")
    plan = planned(model)
    [materials] = [materials_for(work, plan.data_seed) for work in plan.works]
    import onnx

    other = onnx.load(model)
    other.producer_name = "another"
    onnx.save(other, model)
    with pytest.raises(SourceError) as changed:
        reference_to(materials, safetensors.read(materials.inputs_file("inputs")))
    assert changed.value.code == "E_SOURCE_CHANGED"


@pytest.mark.slow
def test_data_must_fit_the_model(tmp_path: Path) -> None:
    model = masked_lookup(tmp_path / "m.onnx")
    ids, mask = np.full((8, 6), ROWS - 1), np.ones((8, 6), np.int64)
    assert planned(model, data=rows_of(tmp_path / "right", ids=ids, mask=mask)).data
    for number, wrong in enumerate((ids + 1, ids[:, :5], ids.astype(np.int32))):
        with pytest.raises(FairlapError) as refused:
            planned(model, data=rows_of(tmp_path / str(number), ids=wrong, mask=mask))
        assert refused.value.code == "E_DATA"


@pytest.mark.slow
def test_a_model_whose_outputs_do_not_begin_with_the_batch_is_refused(tmp_path: Path) -> None:
    from onnx import helper

    node = helper.make_node("Transpose", ["x"], ["y"])
    with pytest.raises(FairlapError) as refused:
        planned(one_node(tmp_path / "t.onnx", node, {"x": (1, [2, 3])}), dims="")
    assert refused.value.code == "E_DATA"


def test_a_model_that_is_gone_or_ends_its_process_is_one_line(tmp_path: Path) -> None:
    original = Original(source_of(tmp_path / "none.onnx", BOUND))
    try:
        for _ in range(2):  # the process is there for the next question
            with pytest.raises(SourceError):
                original.answers({"ids": np.zeros((2, 6), np.int64)})
        assert original._process is not None
        original._process.kill()
        original._process.wait()
        with pytest.raises(SourceError) as ended:
            original.answers({"ids": np.zeros((2, 6), np.int64)})
        assert "\n" not in str(ended.value)
    finally:
        original.close()
