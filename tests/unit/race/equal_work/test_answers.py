"""Gradients are held against each other, and the files of arrays that contestants are handed are whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.sources.contract import Route
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work import material_sources
from fairlap.race.equal_work.answers import (
    Agreement,
    OtherWork,
    answer_error,
    answer_errors,
    require_conditions,
    require_right,
    require_settings,
)
from fairlap.race.equal_work.material_sources import materials_for, with_own_bounds
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.device_conditions import DeviceConditions
from fairlap.request.fields.source import Source
from fairlap.request.names import contestant_named
from fairlap.request.work import Work

GRADIENT = np.linspace(-1, 1, 30, dtype=np.float32)
WORK = Work("mlp", 2, "grad")
_GGUF = "fairlap.models.sources.kinds.gguf_file:GgufFile"


@pytest.fixture
def materials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Materials:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    return materials_for(WORK, 0)


def answer(folder: Path, name: str, gradient: np.ndarray) -> Path:
    path = folder / f"{name}.safetensors"
    safetensors.write(path, {"loss": np.array(1.0, np.float32), "grad/w": gradient.astype(np.float32)})
    return path


def test_the_first_is_held_to_nothing_and_the_others_to_the_first(tmp_path: Path, materials: Materials) -> None:
    agreement = Agreement(tmp_path)
    assert agreement.errors(materials, "torch", answer(tmp_path, "a", GRADIENT)) == []
    assert agreement.errors(materials, "torch", answer(tmp_path, "b", GRADIENT)) == []
    [near] = agreement.errors(materials, "jax", answer(tmp_path, "c", GRADIENT * (1 + 1e-6)))
    assert near.right
    assert near.what == "gradient compared with torch"
    assert near.relative == pytest.approx(1e-6, rel=0.2)
    [far] = agreement.errors(materials, "jax", answer(tmp_path, "d", GRADIENT[::-1]))
    assert far.relative == pytest.approx(2.0)
    with pytest.raises(OtherWork, match=r"gradient compared with torch differs"):
        require_right([far], {"threads": "1"})


def test_a_gradient_of_nothing_but_nan_agrees_with_nobody(tmp_path: Path, materials: Materials) -> None:
    agreement = Agreement(tmp_path)
    agreement.errors(materials, "torch", answer(tmp_path, "a", GRADIENT))
    [error] = agreement.errors(materials, "jax", answer(tmp_path, "b", GRADIENT * np.nan))
    assert not error.right


def test_in_mode_infer_there_is_nothing_to_agree_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    assert Agreement(tmp_path).errors(materials_for(Work("mlp", 2), 0), "torch", tmp_path / "nowhere") == []


def test_where_units_lie_at_a_kink_gradients_may_differ_by_what_hangs_on_them(
    tmp_path: Path, materials: Materials
) -> None:
    assert materials.sway < 1e-4  # this net is smooth
    agreement = Agreement(tmp_path)
    agreement.errors(materials, "torch", answer(tmp_path, "a", GRADIENT))
    other = answer(tmp_path, "b", GRADIENT * 1.01)
    assert not agreement.errors(materials, "jax", other)[0].right
    materials.__dict__["sway"] = 4e-3
    assert agreement.errors(materials, "jax", other)[0].right


def test_a_gradient_of_another_shape_is_refused(tmp_path: Path, materials: Materials) -> None:
    arrays = {f"grad/{weight.name}": np.zeros(weight.shape, np.float32) for weight in materials.spec.weights}
    arrays["grad/first.weight"] = np.zeros((784, 256), np.float32)
    arrays["loss"] = np.array(2.3, np.float32)
    path = tmp_path / "answer.safetensors"
    safetensors.write(path, arrays)
    words = r"the gradient of first.weight has the shape \[784, 256\], not \[256, 784\]"
    with pytest.raises(OtherWork, match=words):
        answer_errors(materials, path, "inputs", "before")
    del arrays["grad/third.bias"]
    arrays["grad/first.weight"] = np.zeros((256, 784), np.float32)
    safetensors.write(path, arrays)
    with pytest.raises(OtherWork, match=r"the gradient of third\.bias is missing"):
        answer_errors(materials, path, "inputs", "before")


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


@pytest.mark.parametrize(
    ("own_types", "in_force", "right"),
    [
        ((), "fp32", True),
        ((), "fp16", False),
        ((), "fp16 and fp32", False),
        (("float16",), "fp16", True),
        (("float16",), "fp32", True),
        (("float16",), "fp16 and fp32", True),
        (("float16",), "bf16", False),
        (("float16",), "bf16 and fp16", False),
        (("float16",), "int8", False),
        (("bfloat16",), "bf16", True),
        (("bfloat16",), "fp16", False),  # its range is less
        (("bfloat16", "float16"), "bf16 and fp16", True),
        (("int8", "uint8"), "fp32", True),
        (("int8", "uint8"), "fp16", False),
    ],
)
def test_a_framework_computes_in_the_types_of_the_file_or_in_those_asked_for(
    own_types: tuple[str, ...], in_force: str, right: bool
) -> None:
    if right:
        require_settings({"precision": in_force}, 1, "fp32", own_types)
        return
    with pytest.raises(OtherWork) as wrong:
        require_settings({"precision": in_force}, 1, "fp32", own_types)
    assert wrong.value.code == "E_PRECISION"


def test_asking_for_few_bits_is_not_met_by_more() -> None:
    with pytest.raises(OtherWork):
        require_settings({"precision": "fp32"}, 1, "bf16")


@pytest.mark.parametrize(("own_types", "hint"), [((), False), (("float16",), False), (("int8", "uint8"), True)])
def test_a_wrong_answer_to_a_quantized_file_names_the_likely_cause(own_types: tuple[str, ...], hint: bool) -> None:
    wrong = answer_error("y", "before", GRADIENT, GRADIENT[::-1].astype(np.float64), Tolerance(0.999, 1e-4, 1e-3))
    with pytest.raises(OtherWork) as found:
        require_right([wrong], {"threads": "1"}, own_types)
    assert found.value.code == "E_OUTPUT"
    assert ("reduce_range=True" in str(found.value)) == hint


@pytest.mark.parametrize(("own_types", "most"), [((), 200), (("int8",), 300)])
def test_a_wrong_answer_takes_two_lines_whatever_is_in_force(own_types: tuple[str, ...], most: int) -> None:
    in_force = {"precision": "fp32"} | {f"setting {number}": "of this framework" for number in range(20)}
    when, exact = "the answer to IMG_20240131_120000.jpg", GRADIENT.astype(np.float64)
    wrong = answer_error("logits", when, GRADIENT * np.float32(1.001), exact, Tolerance(0.999, 1e-5, 1e-5))
    with pytest.raises(OtherWork) as found:
        require_right([wrong], in_force, own_types)
    assert found.value.code == "E_OUTPUT"
    assert len(str(found.value)) < most
    assert "fp32" in str(found.value)
    assert "IMG_20240131_120000.jpg" in str(found.value)


def test_a_worker_that_times_calls_under_other_conditions_of_its_gpu_is_disqualified() -> None:
    both, cold = DeviceConditions("cold", "burst"), {"cache": "flushed before each sample"}
    require_conditions(None, {})
    require_conditions(DeviceConditions("cold"), cold)
    require_conditions(both, {**cold, "regime": "burst, after 500 ms of rest"})
    for wanted, in_force in ((DeviceConditions("cold"), {}), (both, cold), (DeviceConditions(regime="burst"), cold)):
        with pytest.raises(OtherWork) as refused:
            require_conditions(wanted, in_force)
        assert refused.value.code == "E_DEVICE_CONDITIONS"


def test_a_route_in_the_types_of_the_file_has_the_bounds_of_their_rounding_and_other_contestants_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight, wide = {"logits": Tolerance(0.999, 1e-4, 1e-4)}, {"logits": Tolerance(0.99, 0.1, 0.1)}
    routes = {"llama-cpp": Route("native", bounds="bf16"), "torch": Route("expanded")}
    bundle = SimpleNamespace(routes=routes, tolerances={"fp32": tight, "bf16": wide}, kind=_GGUF)
    monkeypatch.setattr(material_sources, "bundle_in", lambda _: bundle)
    work = Work("m.gguf", 1, source=Source("m.gguf", "/m.gguf", "/", generate=(4, 4)))
    spec: Any = None
    own = Materials(work, spec, str(tmp_path), tmp_path, output_tolerances=tight)
    assert with_own_bounds(contestant_named("llama-cpp"), own).output_tolerances == wide
    assert with_own_bounds(contestant_named("torch"), own) is own
    in_bf16 = replace(own, work=Work("m.gguf", 1, precision="bf16", source=work.source))
    assert with_own_bounds(contestant_named("llama-cpp"), in_bf16) is in_bf16
