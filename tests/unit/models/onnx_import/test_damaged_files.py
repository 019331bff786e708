"""A damaged file is refused with a code: it ends no process and takes no memory. `make fuzz-importer` runs more."""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.onnx_import import build, load_graph
from fairlap.models.sources.onnx_graphs import binding
from onnx_files import opened, source_of
from onnx_mutations import mutated, valid_models

_COUNT = int(os.environ.get("FAIRLAP_FUZZ_FILES", "150"))


@pytest.mark.parametrize("place", range(5))
def test_the_models_that_are_damaged_are_valid(tmp_path: Path, place: int) -> None:
    (tmp_path / "m.onnx").write_bytes(valid_models()[place].SerializeToString())
    graph = load_graph(tmp_path / "m.onnx")
    model = build(graph, "numpy")
    inputs = {each.name: np.zeros(each.shape, each.dtype) for each in graph.inputs}
    assert model(model.prepare(graph.weights), inputs)["y"].size > 0


@pytest.mark.timeout(0)
def test_damaged_files_are_refused_or_read_in_little_time_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open damaged files that the importer reads as for a race, with their float64 references.

    That is on a machine with little memory: on others a file that declares a value of 400 million numbers is a large
    model and takes two minutes.
    """
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(binding, "available_memory_bytes", lambda: 2**28)
    random = Random(16)
    models, path, outcomes, slowest_s = valid_models(), tmp_path / "m.onnx", Counter[str](), 0.0
    held_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(_COUNT):
        path.write_bytes(mutated(random.choice(models), random))
        began_s = time.process_time()
        try:
            build(load_graph(path), "numpy")
            outcomes["read"] += 1
            outcomes[_code_of_opening(path, tmp_path)] += 1
        except FairlapError as error:
            outcomes[error.code] += 1
        slowest_s = max(slowest_s, time.process_time() - began_s)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    print(f"{_COUNT:,} files: {dict(outcomes)}; the slowest took {slowest_s:.2f} s")
    assert sum(outcomes.values()) - outcomes["read"] == _COUNT
    assert outcomes["opened"] > 0
    assert {"E_MODEL_DIMENSIONS", "E_MODEL_FILE", "E_MODEL_OPERATOR"} <= outcomes.keys()
    assert slowest_s < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held_kb < 2**20


def _code_of_opening(path: Path, scratch: Path) -> str:
    """As the process does that opens a user's model: anything that is raised becomes one line."""
    try:
        opened(source_of(path), scratch)
    except FairlapError as error:
        return error.code
    except MemoryError:
        return "E_SOURCE_SIZE"
    except Exception as error:
        return f"E_SOURCE {type(error).__name__}"
    return "opened"
