"""``numpy-trainer`` made known as a package would make it: by an entry point."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_TRAINERS = Path(__file__).parent / "trainers"


def install_numpy_trainer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install the package, and return the value of PYTHONPATH, which this sets."""
    info = folder / "numpy_trainer-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy-trainer\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlap.frameworks]\nnumpy-trainer = numpy_trainer:NumpyTrainer\n")
    paths = [str(folder), str(_TRAINERS), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    for path in paths[:2]:
        monkeypatch.syspath_prepend(path)
    return os.environ["PYTHONPATH"]
