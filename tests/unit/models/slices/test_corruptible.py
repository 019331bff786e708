"""What is corrupted is one input of images or of texts, and between which values is known or refused."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.slices.corruptible import CorruptibleInput, corruptible_input
from fairlap.models.spec import Tensor
from fairlap.request.fields.data.corruption import IMAGE_CORRUPTIONS, Corruption, corruptions_in

FOG, TYPOS = corruptions_in(["fog:2"]), corruptions_in(["typos:1"])


def found(batch: dict[str, np.ndarray], corruptions: tuple[Corruption, ...], **ranges: tuple[float, float]):  # type: ignore[no-untyped-def]
    tensors = [
        Tensor(name, ("batch", *array.shape[1:]), dtype=str(array.dtype))  # type: ignore[arg-type]
        for name, array in batch.items()
    ]
    return corruptible_input(tensors, [batch, batch], ranges, corruptions)


def image(*shape: int, high: float = 1.0, low: float = 0.0) -> np.ndarray:
    made = np.full((2, *shape), low, np.float32)
    made[0] = high
    return made


def test_layout_and_white_follow_from_the_data() -> None:
    assert found({"x": image(3, 8, 8)}, FOG) == CorruptibleInput("x", "first", 0, 1)
    assert found({"x": image(8, 8, 1, high=255)}, FOG) == CorruptibleInput("x", "last", 0, 255)
    assert found({"x": image(3, 8, 8, low=-2)}, FOG, x=(-2.5, 2.5)) == CorruptibleInput("x", "first", -2.5, 2.5)
    ids, mask = np.array([[4, 900]] * 2), np.ones((2, 2), np.int64)
    assert found({"mask": mask, "ids": ids}, TYPOS) == CorruptibleInput("ids", "", 4, 900)


@pytest.mark.parametrize(
    ("batch", "corruptions"),
    [
        ({"x": image(3, 8, 8, low=-2)}, FOG),  # black and white are unknown
        ({"x": image(5, 8, 8)}, FOG),  # no channels
        ({"x": image(8)}, FOG),
        ({"x": image(3, 8, 8), "y": image(3, 8, 8)}, FOG),  # two images
        ({"x": image(1, 8, 8)}, corruptions_in(["saturate"])),  # no colours
        ({"x": image(3, 8, 8)}, TYPOS),
        ({"x": image(3, 8, 8)}, FOG + TYPOS),
    ],
)
def test_other_data_are_refused(batch: dict[str, np.ndarray], corruptions: tuple[Corruption, ...]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        found(batch, corruptions)
    assert refused.value.code == "E_CORRUPTION"
    assert "\n" not in str(refused.value)


def test_corruptions_are_named_alone_with_a_severity_or_by_kind() -> None:
    assert [each.text for each in corruptions_in(["fog:3", "fog:3"])] == ["fog:3"]
    assert [each.severity for each in corruptions_in(["fog"])] == [1, 2, 3, 4, 5]
    assert len(corruptions_in(["noise:1"])) == 4
    assert len(corruptions_in(["all"])) == 5 * len(IMAGE_CORRUPTIONS) == 70
    for wrong in ("fgo", "fog:6", "fog:", "fog:x", ""):
        with pytest.raises(InvalidRequest) as refused:
            corruptions_in([wrong])
        assert refused.value.code == "E_CORRUPTION"
