"""A sum that is off by a rounding and divided by next to nothing is right, and mistakes in the same graph are wrong.

The graph standardises each channel of a photo, as style transfer does. What is right is computed by hand in float32, in
several orders of summation and with both ways to divide by a count, and by ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.models.draw import rounded_to_bfloat16
from fairlap.models.onnx_import import load_graph
from fairlap.models.sources.allowances import repeat_numbers, widened, widened_by_movements
from fairlap.models.sources.contract import Opened
from fairlap.models.sources.onnx_graphs.imported_reference import (
    imported_in_float32,
    imported_reference,
    roundings_inside,
    roundings_inside_export,
)
from fairlap.models.sources.proof import outputs_of, plain_outputs, tolerances
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.source import Source
from margins import by_onnxruntime, share_of_tolerance
from onnx_files import drawn, materials_of, source_of

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
SIDE = 88  # the reciprocal of whose square, times the sum of 200s, is not 200
EPSILON = np.float32(1e-5)
Array = np.ndarray[Any, np.dtype[Any]]
WEIGHTS = {
    "scale": 1 + drawn(3),
    "shift": drawn(3, seed=1),
    "kernel": drawn(8, 3, 3, 3),
    "bias": drawn(8),
    "head": drawn(8, 10),
}


def standardising(path: Path, *, by_hand: bool = False, epsilon: float = float(EPSILON), **changes: Array) -> Path:
    make = onnx.helper.make_node
    arrays: dict[str, Any] = WEIGHTS | changes
    nodes = [make("InstanceNormalization", ["photo", "scale", "shift"], ["shifted"], epsilon=epsilon)]
    if by_hand:
        arrays = arrays | {"epsilon": np.float32(epsilon)}
        arrays |= {name: arrays[name].reshape(3, 1, 1) for name in ("scale", "shift")}
        nodes = [
            make("ReduceMean", ["photo"], ["mean"], axes=[2, 3]),
            make("Sub", ["photo", "mean"], ["centred"]),
            make("Mul", ["centred", "centred"], ["squares"]),
            make("ReduceMean", ["squares"], ["variance"], axes=[2, 3]),
            make("Add", ["variance", "epsilon"], ["safe"]),
            make("Sqrt", ["safe"], ["deviation"]),
            make("Div", ["centred", "deviation"], ["standard"]),
            make("Mul", ["standard", "scale"], ["scaled"]),
            make("Add", ["scaled", "shift"], ["shifted"]),
        ]
    nodes += [
        make("Conv", ["shifted", "kernel", "bias"], ["features"], pads=[1, 1, 1, 1]),
        make("GlobalAveragePool", ["features"], ["pooled"]),
        make("Flatten", ["pooled"], ["row"]),
        make("MatMul", ["row", "head"], ["classes"]),
    ]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    ends = [
        onnx.helper.make_tensor_value_info(name, 1, shape)
        for name, shape in (("photo", [1, 3, SIDE, SIDE]), ("classes", [1, 10]))
    ]
    graph = onnx.helper.make_graph(nodes, "standardising", ends[:1], ends[1:], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def of_colour(*levels: float) -> Array:
    return np.broadcast_to(np.array(levels, np.float32).reshape(1, 3, 1, 1), (1, 3, SIDE, SIDE)).copy()


def of_noise(scale: float = 1.0) -> Array:
    return (np.random.default_rng(3).integers(0, 256, (1, 3, SIDE, SIDE)) * scale).astype(np.float32)


PHOTOS: dict[str, Array] = {
    "black": of_colour(0, 0, 0),
    "white": of_colour(255, 255, 255),
    "coloured": of_colour(200, 100, 37),
    "coloured, as shares": of_colour(200, 100, 37) / np.float32(255),
    "noise": of_noise(),
    "faint noise": of_noise(1e-5),  # whose variance is like epsilon
}
ORDINARY = ("noise", "faint noise")


def _one_by_one(rows: Array) -> Array:
    return np.asarray(np.add.accumulate(rows, axis=-1)[..., -1])


def _in_lanes(rows: Array) -> Array:
    return _one_by_one(_one_by_one(rows.reshape(*rows.shape[:-1], -1, 8).swapaxes(-1, -2)))


ORDERS: dict[str, Callable[[Array], Array]] = {
    "one by one": _one_by_one,
    "in lanes": _in_lanes,
    "in pairs": lambda rows: np.asarray(rows.sum(axis=-1)),
}
DIVISIONS: dict[str, Callable[[Array, int], Array]] = {
    "divided": lambda total, count: total / total.dtype.type(count),
    "times the reciprocal": lambda total, count: total * total.dtype.type(1 / count),
}


def answer(
    photo: Array,
    weights: Mapping[str, Array] = WEIGHTS,
    *,
    total: Callable[[Array], Array] = _in_lanes,
    divided: Callable[[Array, int], Array] = DIVISIONS["divided"],
    epsilon: float = float(EPSILON),
    rounded: Callable[[Array], Array] = lambda array: array,
) -> dict[str, Array]:
    """In the type of the photo; ``rounded`` is applied to what is convolved and multiplied."""

    def mean(array: Array) -> Array:
        rows = array.reshape(*array.shape[:2], -1)
        return divided(total(rows), rows.shape[-1])[..., None, None]

    column = {name: weights[name].reshape(-1, 1, 1) for name in ("scale", "shift", "bias")}
    centred = photo - mean(photo)
    deviation = np.sqrt(mean(centred * centred) + photo.dtype.type(epsilon))
    shifted = rounded(centred / deviation * column["scale"] + column["shift"])
    padded = np.pad(shifted, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    kernel = rounded(weights["kernel"]).reshape(8, -1)
    patches = windows.transpose(0, 1, 4, 5, 2, 3).reshape(1, 27, SIDE, SIDE)
    features = np.tensordot(kernel, patches, (1, 1)).transpose(1, 0, 2, 3) + column["bias"]
    return {"classes": rounded(mean(features)[..., 0, 0]) @ rounded(weights["head"])}


@pytest.fixture(scope="module", params=PHOTOS)
def photo_and_materials(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Materials]:
    folder = tmp_path_factory.mktemp("standardising")
    np.savez(folder / "photo.npz", photo=PHOTOS[request.param])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", str(folder / "cache"))
        source = source_of(standardising(folder / "m.onnx"), inputs=str(folder / "photo.npz"))
        return request.param, materials_of(source, folder)


@pytest.mark.slow_but("white")
def test_the_float64_reference_is_what_is_computed_by_hand(photo_and_materials: tuple[str, Materials]) -> None:
    name, materials = photo_and_materials
    wide = {key: array.astype(np.float64) for key, array in WEIGHTS.items()}
    found = answer(PHOTOS[name].astype(np.float64), wide)
    np.testing.assert_allclose(found["classes"], materials.reference("inputs")["classes"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("order", "division"), [*product(ORDERS, DIVISIONS)])
def test_float32_is_right_in_every_order_of_summation(
    photo_and_materials: tuple[str, Materials], order: str, division: str
) -> None:
    name, materials = photo_and_materials
    found = answer(PHOTOS[name], total=ORDERS[order], divided=DIVISIONS[division])
    assert found["classes"].dtype == np.float32
    assert share_of_tolerance(materials, found) <= 1


def test_onnx_runtime_is_right(photo_and_materials: tuple[str, Materials], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    name, materials = photo_and_materials
    for by_hand in (False, True):
        model = onnx.load(standardising(tmp_path / "m.onnx", by_hand=by_hand))
        assert share_of_tolerance(materials, by_onnxruntime(model, {"photo": PHOTOS[name]})) <= 1


def test_one_rounding_of_a_mean_is_divided_by_the_root_of_epsilon() -> None:
    """The answer is off by as much as was called wrong."""
    photo = PHOTOS["coloured"]
    wide = {key: array.astype(np.float64) for key, array in WEIGHTS.items()}
    exact = answer(photo.astype(np.float64), wide)["classes"]
    off = [
        np.abs(answer(photo, total=total, divided=divided)["classes"] - exact).max()
        for total, divided in product(ORDERS.values(), DIVISIONS.values())
    ]
    assert min(off) < 1e-6
    assert max(off) > 1e-3


def in_tf32(array: Array) -> Array:
    return (array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _in_bfloat16(array: Array) -> Array:
    return rounded_to_bfloat16(array).reshape(array.shape)


def _in_float16(photo: Array) -> dict[str, Array]:
    return answer(photo.astype(np.float16), {name: array.astype(np.float16) for name, array in WEIGHTS.items()})


def _without_a_row(photo: Array) -> Array:
    changed = photo.copy()
    changed[:, :, -1] = 0
    return changed


WRONG: dict[str, Callable[[Array], dict[str, Array]]] = {
    "bfloat16": lambda photo: answer(photo, rounded=_in_bfloat16),
    "TF32": lambda photo: answer(photo, rounded=in_tf32),
    "float16": _in_float16,
    "swapped channels": lambda photo: answer(photo, WEIGHTS | {"kernel": WEIGHTS["kernel"][:, ::-1]}),
    "a weight changed by a thousandth": lambda photo: answer(photo, WEIGHTS | {"head": WEIGHTS["head"] * 1.001}),
    "a lost shift": lambda photo: answer(photo, WEIGHTS | {"shift": 0 * WEIGHTS["shift"]}),
    "a dropped row": lambda photo: answer(_without_a_row(photo)),
    "another count": partial(answer, divided=lambda total, count: total / np.float32(count - 1)),
}


@pytest.mark.parametrize("photo_and_materials", ORDINARY, indirect=True)
@pytest.mark.parametrize("how", WRONG)
def test_mistakes_are_wrong_on_ordinary_photos(photo_and_materials: tuple[str, Materials], how: str) -> None:
    name, materials = photo_and_materials
    with np.errstate(all="ignore"):
        assert share_of_tolerance(materials, WRONG[how](PHOTOS[name])) > 1


@pytest.mark.parametrize("photo_and_materials", ["faint noise"], indirect=True)
def test_another_epsilon_is_wrong_where_it_matters(photo_and_materials: tuple[str, Materials]) -> None:
    name, materials = photo_and_materials
    assert share_of_tolerance(materials, answer(PHOTOS[name], epsilon=1e-3)) > 1


@pytest.mark.slow_but("coloured")
@pytest.mark.parametrize("how", ["swapped channels", "a lost shift"])
@pytest.mark.parametrize("name", ["black", "white", "coloured"])
def test_weights_of_plain_photos_in_whole_numbers_are_checked_too(name: str, how: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "photo.npz", photo=PHOTOS[name])
    source = source_of(standardising(tmp_path / "m.onnx"), inputs=str(tmp_path / "photo.npz"))
    materials = materials_of(source, tmp_path)
    assert share_of_tolerance(materials, WRONG[how](PHOTOS[name])) > 1


def allowances(path: Path, inputs: Mapping[str, Array], name: str) -> tuple[Tolerance, Tolerance]:
    """Before and after roundings inside of the graph are added."""
    graph, forward = imported_reference(path)
    reference = outputs_of(forward, graph.weights, inputs)
    plain = plain_outputs(imported_in_float32(graph), graph.weights, inputs)
    before = tolerances(forward, graph.weights, inputs, reference, plain)
    movements = roundings_inside(graph)(graph.weights, inputs, reference, 6)
    assert movements is not None
    after = widened_by_movements(before, movements, reference)
    return before["fp32"][name], after["fp32"][name]


def test_a_well_conditioned_model_keeps_its_tolerance(tmp_path: Path) -> None:
    photo = np.random.default_rng(4).standard_normal((1, 3, SIDE, SIDE), np.float32)
    before, after = allowances(standardising(tmp_path / "m.onnx"), {"photo": photo}, "classes")
    assert after.relative <= 2 * before.relative
    assert after.absolute <= 2 * before.absolute


def test_only_numbers_that_repeat_may_be_summed_exactly_by_chance() -> None:
    assert repeat_numbers({"photo": PHOTOS["coloured"]})
    assert repeat_numbers({"photo": of_noise().astype(np.uint8)})
    assert not repeat_numbers({"x": drawn(100, 100), "ids": np.zeros(100, np.int64), "mask": np.ones(100, bool)})


def test_an_export_moves_the_answers_of_its_own_graph(tmp_path: Path) -> None:
    file = standardising(tmp_path / "m.onnx")
    graph, photo = load_graph(file), {"photo": PHOTOS["coloured"].astype(np.float64)}
    exact = outputs_of(imported_reference(file)[1], graph.weights, photo)
    own = roundings_inside(graph)(graph.weights, photo, exact, 2)
    of_export = roundings_inside_export(file)({}, photo, {}, 2)
    assert own is not None
    assert of_export is not None
    for each, other in zip(own, of_export, strict=True):
        np.testing.assert_allclose(each["classes"], other["classes"])
        assert each["classes"].max() > 1e-4


def test_without_a_graph_that_the_importer_reads_sums_over_the_input_decide(tmp_path: Path) -> None:
    assert roundings_inside_export(tmp_path / "none.onnx")({}, {}, {}, 2) is None


def test_without_a_graph_plain_float32_on_inputs_nearby_shows_what_it_does_not_lose_by_chance() -> None:
    """Its sums of whole numbers are exact, and others' means of them are not."""
    photo = {"photo": PHOTOS["coloured"]}

    def by_hand(weights: Mapping[str, Array], inputs: Mapping[str, Array]) -> dict[str, Array]:
        return answer(inputs["photo"], weights, total=ORDERS["in pairs"])

    reference = outputs_of(by_hand, WEIGHTS, photo)
    before = tolerances(by_hand, WEIGHTS, photo, reference, plain_outputs(by_hand, WEIGHTS, photo))
    found = Opened((), ("classes",), {}, WEIGHTS, by_hand, {}, "by hand", in_float32=by_hand)
    after = widened(before, found, photo, reference)["fp32"]["classes"]
    off = np.abs(answer(photo["photo"], divided=DIVISIONS["times the reciprocal"])["classes"] - reference["classes"])
    assert before["fp32"]["classes"].absolute < off.max() < after.absolute
    assert np.abs(WRONG["a lost shift"](photo["photo"])["classes"] - reference["classes"]).max() > after.absolute


MODULE = f"""
import torch

class Standardising(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.standard = torch.nn.InstanceNorm2d(3, affine=True)
        self.features = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, photo):
        return self.features(self.standard(photo)).mean((2, 3))

def model():
    photo = torch.tensor([200.0, 100.0, 37.0]).reshape(1, 3, 1, 1).expand(1, 3, {SIDE}, {SIDE})
    return Standardising().eval(), (photo.contiguous(),)
"""


@pytest.mark.slow
def test_a_module_is_allowed_what_the_graph_that_it_is_exported_to_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    (tmp_path / "own_standardising.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "own_standardising:model"
    materials = materials_of(Source(name, name, str(tmp_path)), tmp_path)
    assert materials.tolerance("output").absolute > 1e-2
    exported = onnx.load(materials.folder / "exported.onnx")
    found = by_onnxruntime(exported, {"photo": PHOTOS["coloured"]})
    assert 0 < share_of_tolerance(materials, found) <= 1
