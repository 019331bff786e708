"""Real frameworks behind fairlap's own server, and a user's model behind one that already runs."""

from __future__ import annotations

from pathlib import Path

import fairlap
import numpy as np
import pytest
from fairlap.models.arrays import Arrays
from fairlap.request.work import Work
from model_servers import ModelServer
from one_block import processes_of_one_block
from onnx_files import BOUND, CLASSES, answers_by_hand, masked_lookup, weights

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("framework", ["torch", "onnxruntime"])
def test_mobilenet_gives_the_same_answers_behind_a_server(framework: str) -> None:
    plain, served = f"{framework},{framework}:over=http".split(",")
    found = processes_of_one_block(f"{plain},{served}", Work("mobilenet_v2", 1))
    assert {each.outcome for each in found.values()} == {"finished"}, [each.message for each in found.values()]
    assert found[served].in_force["threads"] == found[plain].in_force["threads"] == "1"
    assert found[served].version == found[plain].version
    largest = {name: max(error.distance for error in process.errors) for name, process in found.items()}
    assert largest[served] == pytest.approx(largest[plain], rel=1e-3)  # the same weights, inputs and kernels


@pytest.mark.parametrize("framework", ["torch:compile", "jax", "tensorflow:graph", "openvino", "litert"])
def test_every_framework_is_served(framework: str) -> None:
    [found] = processes_of_one_block(f"{framework}:over=http", Work("mlp", 4)).values()
    assert (found.outcome, found.message) == ("finished", "")


def test_a_users_file_races_with_the_server_that_has_it_by_whole_numbers_and_names(tmp_path: Path) -> None:
    file = masked_lookup(tmp_path / "lookup.onnx")

    def forward(inputs: Arrays) -> dict[str, np.ndarray]:
        return {"logits": answers_by_hand(weights(), inputs["ids"], inputs["mask"])}

    whole = ("int64", (-1, -1))
    outputs = {"logits": ("float32", (-1, -1, CLASSES))}
    with ModelServer({"ids": whole, "mask": whole}, outputs, forward) as server:
        on = ["onnxruntime", server.v2, server.at("/v1/models/m:predict"), server.at("/own")]
        results = fairlap.compare(str(file), on=on, dims=BOUND, blocks=1, threads=1, seconds=0.1)
    assert {row.contestant: (row.outcome, row.message) for row in results.rows} == dict.fromkeys(on, ("finished", ""))
