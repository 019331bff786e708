"""What PyTorch's DataLoader tells of itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fairlap.data.pipeline import Job

pytest.importorskip("torch", reason="PyTorch is not here; `make test` installs it and runs this")


@pytest.mark.parametrize(("workers", "count"), [(0, "0 workers"), (1, "1 worker"), (2, "2 workers")])
def test_one_worker_is_reported_in_the_singular(tmp_path: Path, workers: int, count: str) -> None:
    from fairlap.data.torch_pipeline import DataLoaderPipeline

    np.save(tmp_path / "x.npy", np.zeros((8, 2), np.float32))
    pipeline = DataLoaderPipeline(Job({"x": str(tmp_path / "x.npy")}, 8, 4, seed=1), workers)
    assert pipeline.description == f"DataLoader with {count}"
    pipeline.close()
