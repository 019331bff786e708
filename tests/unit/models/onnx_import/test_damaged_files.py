"""A damaged file is refused with a code: it ends no process and takes no memory. `make fuzz-importer` runs more."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.onnx_import import build, load_graph
from onnx_mutations import mutated, valid_models

_COUNT = int(os.environ.get("FAIRLAP_FUZZ_FILES", "400"))


@pytest.mark.parametrize("place", range(4))
def test_the_models_that_are_damaged_are_valid(tmp_path: Path, place: int) -> None:
    (tmp_path / "m.onnx").write_bytes(valid_models()[place].SerializeToString())
    graph = load_graph(tmp_path / "m.onnx")
    model = build(graph, "numpy")
    inputs = {each.name: np.zeros(each.shape, each.dtype) for each in graph.inputs}
    assert model(model.prepare(graph.weights), inputs)["y"].size > 0


@pytest.mark.timeout(0)
def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    random = Random(16)
    models, path, outcomes = valid_models(), tmp_path / "m.onnx", Counter[str]()
    for _ in range(_COUNT):
        path.write_bytes(mutated(random.choice(models), random))
        try:
            build(load_graph(path), "numpy")
            outcomes["read"] += 1
        except FairlapError as error:
            outcomes[error.code] += 1
    assert sum(outcomes.values()) == _COUNT
    assert outcomes["read"] > 0
    assert {"E_MODEL_DIMENSIONS", "E_MODEL_FILE", "E_MODEL_OPERATOR"} <= outcomes.keys()
