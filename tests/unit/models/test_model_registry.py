"""Models are found by folder or entry point, at their usual size, another one, or that of the data they learn."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import fairlap
import fairlap.bench_models
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.draw import draw_inputs, draw_labels, draw_weights
from fairlap.models.names import GROUP, workload_names
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find, follows_data, free_sizes_at, spec_at, spec_with
from fairlap.models.spec import Spec
from fairlap.models.workload import Workload
from fairlap.request.fields.data.training_data import ItemSizes
from installed_package import install_package


def test_our_models_are_found_by_name() -> None:
    assert {"attention", "conv2d", "gemm", "layernorm", "mlp", "softmax"} <= set(workload_names())
    found = find("mlp")
    assert (found.package, found.spec.name) == ("fairlap.bench_models.mlp", "mlp")


def test_listing_imports_no_model_and_finding_one_imports_no_other_and_no_framework() -> None:
    program = (
        "import sys\n"
        "from fairlap.models.names import workload_names\n"
        "from fairlap.models.registry import find\n"
        "def seen(): return {m for m in sys.modules if m.startswith('fairlap.bench_models.')}\n"
        "workload_names(); assert not seen(), seen()\n"
        "find('gemm'); assert seen() == {'fairlap.bench_models.gemm', 'fairlap.bench_models.gemm.spec'}, seen()\n"
        "assert not {'torch', 'jax', 'tensorflow', 'onnx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=_environment())


def test_an_unknown_model_is_refused_with_the_names_near_it() -> None:
    with pytest.raises(InvalidRequest, match="gemm"):
        find("gem")
    with pytest.raises(InvalidRequest, match="☂"):
        find("☂")


def test_a_model_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plug_in(tmp_path, monkeypatch, SPEC=find("gemm").spec)
    assert "theirs" in workload_names()
    assert find("theirs").package == "their_package"


def test_another_package_cannot_take_the_name_of_a_model_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plug_in(tmp_path, monkeypatch, name="mlp", SPEC=find("gemm").spec)
    assert find("mlp").package == "fairlap.bench_models.mlp"


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({}, "the model theirs from their_package cannot be loaded: AttributeError"),
        ({"SPEC": "none"}, "their_package.spec.SPEC is a str, not a Spec"),
        (None, "the model theirs from their_package cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_broken_model_of_another_package_is_refused_with_the_reason(
    contents: dict[str, str] | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plug_in(tmp_path, monkeypatch, importable=contents is not None, **(contents or {}))
    assert "theirs" in workload_names()
    with pytest.raises(InvalidRequest, match=reason):
        find("theirs")


def _plug_in(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str = "theirs",
    importable: bool = True,
    **contents: Spec | str,
) -> None:
    install_package(folder, monkeypatch, "theirs", {GROUP: {name: "their_package"}})
    if importable:
        module = ModuleType("their_package.spec")
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, "their_package", ModuleType("their_package"))
        monkeypatch.setitem(sys.modules, "their_package.spec", module)


def _environment() -> dict[str, str]:
    homes = [str(Path(str(module.__file__)).parents[1]) for module in (fairlap,)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*homes, os.environ.get("PYTHONPATH", "")])}


USUAL = {
    "convnet": {"image": 64},
    "resnet50": {"image": 224},
    "mobilenet_v2": {"image": 224},
    "gpt2_prefill": {"tokens": 128},
    "bert_base": {"tokens": 128},
}


@pytest.mark.parametrize("name", USUAL)
def test_at_its_usual_size_a_model_is_the_one_that_is_raced(name: str) -> None:
    model = find(name)
    assert set(free_sizes_at(model.package)) == set(USUAL[name])
    assert spec_with(model.package, USUAL[name]) == replace(model.spec, gmacs_per_item=None)


@pytest.mark.parametrize("name", USUAL)
def test_another_size_changes_inputs_and_no_weights(name: str) -> None:
    model = find(name)
    [(size, (least, _))] = free_sizes_at(model.package).items()
    other = spec_with(model.package, {size: least})
    assert other.inputs != model.spec.inputs
    assert other.weights == model.spec.weights


def test_the_reference_answers_at_another_size() -> None:
    model = find("convnet")
    spec = spec_with(model.package, {"image": 8})
    work = Workload(
        spec, model.package, 2, "infer", "fp32", draw_weights(spec, 0), draw_inputs(spec, 2, 0), free_sizes={"image": 8}
    )
    assert reference_answers(work)["logits"].shape == (2, 10)


@pytest.mark.parametrize("name", ["mlp", "gemm-m1-n1-k1", "triad"])
def test_other_models_have_no_size_but_the_batch(name: str) -> None:
    assert free_sizes_at(find(name).package) == {}


OWN = {"digits": ItemSizes((1, 8, 8), 10), "tabular": ItemSizes((30,), 2)}
OTHERS = [
    ("tabular", ItemSizes((10,), None)),
    ("tabular", ItemSizes((1,), 7)),
    ("digits", ItemSizes((3, 11, 7), 4)),
    ("digits", ItemSizes((1, 1, 1), 2)),
    ("digits", ItemSizes((3, 32, 32), None)),
]


@pytest.mark.parametrize("model", OWN)
def test_with_its_own_sizes_it_is_the_model_that_is_listed(model: str) -> None:
    found = find(model)
    assert follows_data(found.package)
    assert find(model, OWN[model]).spec == found.spec == spec_at(found.package, OWN[model])


def test_a_model_of_fixed_sizes_follows_no_data() -> None:
    assert not follows_data(find("mlp").package)


@pytest.mark.parametrize(("model", "sizes"), OTHERS)
def test_inputs_and_outputs_have_the_sizes_of_the_data(model: str, sizes: ItemSizes) -> None:
    spec = find(model, sizes).spec
    outputs = 1 if sizes.classes is None else sizes.classes
    assert spec.inputs[0].sized(5) == (5, *sizes.item)
    assert spec.outputs[0].sized(5) == (5, outputs)
    assert spec.loss == ("square_error" if sizes.classes is None else "cross_entropy")
    assert spec.parameters == sum(math.prod(weight.shape) for weight in spec.weights)
    labels = draw_labels(spec, 5, 0)
    assert labels is not None
    assert labels.shape == ((5, 1) if sizes.classes is None else (5,))


@pytest.mark.parametrize(("model", "sizes"), OTHERS)
def test_the_reference_answers_in_these_sizes(model: str, sizes: ItemSizes) -> None:
    found = find(model, sizes)
    weights, inputs = draw_weights(found.spec, 0), draw_inputs(found.spec, 5, 0)
    forward = Workload(found.spec, found.package, 5, "infer", "fp32", weights, inputs).implementation_of_reference()
    answer = forward.forward(weights, inputs)[found.spec.outputs[0].name]
    assert answer.shape == found.spec.outputs[0].sized(5)
    assert np.isfinite(answer).all()


@pytest.mark.parametrize(("model", "item"), [("tabular", (1, 8, 8)), ("digits", (30,)), ("digits", (8, 8))])
def test_data_that_a_model_cannot_take_are_refused(model: str, item: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        find(model, ItemSizes(item, 2))
    assert raised.value.code == "E_DATA"
