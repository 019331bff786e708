"""The image networks are the published ones, and their references notice what a wrong layer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fairlap.bench_models.mobilenet_v2.reference as mobilenet_v2_reference
import fairlap.bench_models.mobilenet_v2.spec as mobilenet_v2
import fairlap.bench_models.resnet.reference as resnet_reference
import fairlap.bench_models.resnet.spec as resnet
import numpy as np
import numpy.typing as npt
import pytest
from fairlap.bench_models.convolution.numpy_unit import apply_unit
from fairlap.bench_models.convolution.units import EPSILON, STATISTICS, Unit
from fairlap.models.draw import draw_inputs, draw_weights

SEED = 20
RESNETS = {size: resnet.in_size(size) for size in ("18", "34", "50")}
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Answered:
    """A network with its weights, two images and what the reference answers to them."""

    reference: Any
    swap: tuple[str, str]  # two normalisations of one size
    weights: Mapping[str, Array]
    images: Array
    logits: Array


@pytest.fixture(
    scope="module",
    params=[
        (RESNETS["18"], resnet_reference.Implementation(RESNETS["18"]), ("layer3.1.bn1", "layer3.1.bn2")),
        pytest.param(
            (RESNETS["50"], resnet_reference.Implementation(RESNETS["50"]), ("layer3.2.bn1", "layer3.2.bn2")),
            marks=pytest.mark.slow,
        ),
        (mobilenet_v2, mobilenet_v2_reference, ("features.9.conv.0.1", "features.9.conv.1.1")),
    ],
    ids=["resnet:18", "resnet:50", "mobilenet_v2"],
)
def answered(request: pytest.FixtureRequest) -> Answered:
    model, reference, swap = request.param
    weights = draw_weights(model.SPEC, SEED)
    inputs = draw_inputs(model.SPEC, 2, SEED)
    return Answered(reference, swap, weights, inputs["image"], reference.forward(weights, inputs)["logits"])


def distance(one: Array, other: Array) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


@pytest.mark.parametrize("model", [*RESNETS.values(), mobilenet_v2])
def test_the_shapes_multiply_to_the_published_gmacs(model: Any) -> None:
    assert model.macs_per_item() / 1e9 == pytest.approx(model.SPEC.gmacs_per_item, rel=0.01)


@pytest.mark.parametrize("model", [*RESNETS.values(), mobilenet_v2])
def test_only_running_statistics_are_not_trained(model: Any) -> None:
    assert all(weight.trained != weight.name.endswith(STATISTICS) for weight in model.SPEC.weights)


def test_the_stride_of_a_resnet50_block_sits_in_its_3x3_convolution() -> None:
    strides = [tuple(unit.stride for unit in block.path) for block in RESNETS["50"].blocks]
    assert strides == [(1, 2 if number in (3, 7, 13) else 1, 1) for number in range(16)]


@pytest.mark.slow_but("mobilenet")
def test_logits_are_of_order_one(answered: Answered) -> None:
    assert 0.5 < answered.logits.std() < 2.0


def test_one_swapped_normalisation_moves_the_answer_far_out_of_tolerance(answered: Answered) -> None:
    one, other = answered.swap
    weights = dict(answered.weights)
    for part in ("weight", "bias", *STATISTICS):
        weights[f"{one}.{part}"], weights[f"{other}.{part}"] = weights[f"{other}.{part}"], weights[f"{one}.{part}"]
    wrong = answered.reference.forward(weights, {"image": answered.images[:1]})["logits"]
    assert distance(wrong, answered.logits[:1]) > 0.02


def test_two_images_get_two_answers(answered: Answered) -> None:
    assert distance(answered.logits[:1], answered.logits[1:]) > 0.02


@pytest.mark.parametrize(
    "unit",
    [
        Unit("conv", "norm", inward=3, outward=4, kernel=7, image=9, stride=2),
        Unit("conv", "norm", inward=4, outward=3, kernel=3, image=6, stride=2),
        Unit("conv", "norm", inward=4, outward=2, kernel=1, image=5, stride=2),
        Unit("conv", "norm", inward=4, outward=4, kernel=3, image=6, groups=4),
        Unit("conv", "norm", inward=4, outward=4, kernel=3, image=7, stride=2, groups=4),
    ],
)
def test_a_unit_is_its_definition_pixel_by_pixel(unit: Unit) -> None:
    generator = np.random.default_rng(SEED)
    weights = {weight.name: generator.uniform(0.5, 1.5, weight.shape) for weight in unit.weights()}
    images = generator.normal(size=(2, unit.inward, unit.image, unit.image))
    np.testing.assert_allclose(apply_unit(weights, unit, images), defined(weights, unit, images), rtol=1e-12)


def defined(weights: Mapping[str, Array], unit: Unit, images: Array) -> Array:
    side, per_group = unit.image_after, unit.inward // unit.groups
    answer = np.zeros((len(images), unit.outward, side, side))
    for item, channel, row, column in np.ndindex(*answer.shape):
        first = channel // (unit.outward // unit.groups) * per_group
        total = 0.0
        for inward, down, right in np.ndindex(per_group, unit.kernel, unit.kernel):
            y, x = row * unit.stride + down - unit.padding, column * unit.stride + right - unit.padding
            if 0 <= y < unit.image and 0 <= x < unit.image:
                total += weights["conv.weight"][channel, inward, down, right] * images[item, first + inward, y, x]
        mean, variance = (weights[f"norm.{part}"][channel] for part in STATISTICS)
        scale, shift = weights["norm.weight"][channel], weights["norm.bias"][channel]
        answer[item, channel, row, column] = (total - mean) / (variance + EPSILON) ** 0.5 * scale + shift
    return answer
