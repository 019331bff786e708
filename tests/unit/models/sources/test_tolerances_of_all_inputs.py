"""Tolerances hold for the inputs of every set, also where others than the first show most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fairlap.models.sources.contract import Opened
from fairlap.models.sources.inputs import input_sets
from fairlap.models.sources.proof import ROUNDING, outputs_of, tolerances
from fairlap.models.sources.spec_and_proof import proof_of
from fairlap.models.spec import Normal, Tensor
from onnx_files import source_of

SEEDS = {"inputs": 0, "other": 1}
PLACE = 3  # whose number is far from that of the other set
X = Tensor("x", (16,), Normal(1.0))


def dividing_by_what_nearly_vanishes_of(which: str) -> Opened:
    """Divide by the distance of a number to a bit more than what it is in this set."""
    near = float(input_sets((X,), (), None, SEEDS)[which]["x"][PLACE]) * (1 + 2.0**-7)

    def forward(_: Mapping[str, Any], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"y": inputs["x"] / (inputs["x"][PLACE] - near)}

    return Opened((X,), ("y",), {"y": "float32"}, {}, forward, {}, "by hand")


@pytest.mark.parametrize("which", SEEDS)
def test_the_set_that_shows_most_decides(tmp_path: Path, which: str) -> None:
    found = dividing_by_what_nearly_vanishes_of(which)
    proof = proof_of(source_of(tmp_path / "m.onnx"), found, (), SEEDS)
    assert proof.tolerances["fp32"]["y"].relative > 32 * 2**7 * ROUNDING
    own = tolerances(found.forward, {}, proof.sets[which], outputs_of(found.forward, {}, proof.sets[which]))
    other = next(each for each in SEEDS if each != which)
    others = tolerances(found.forward, {}, proof.sets[other], outputs_of(found.forward, {}, proof.sets[other]))
    assert own["fp32"]["y"].relative > 8 * others["fp32"]["y"].relative
    assert proof.tolerances["fp32"]["y"].relative >= own["fp32"]["y"].relative / 2
