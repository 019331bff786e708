"""A fake GPU that the workers of a race see and use from their start, each its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cuda_on_fakes import environment_with_fakes
from watched_machine import fake_nvml_path

IN_USE = """
import ctypes, os
ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"]).fake_cuda_activate_primary_context(0)
"""


def put_gpu_into_workers(folder: Path, monkeypatch: pytest.MonkeyPatch, at_start: str = IN_USE) -> None:
    """Run ``at_start`` in every process of Python that starts from now on."""
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    for name, path in environment_with_fakes().items():
        monkeypatch.setenv(name, path)
    place = folder / "at_start"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(at_start)
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
