"""A run with its raw samples, from the store or from a file of ``fairlap runs export``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from fairlap.race.run import Run
from fairlap.render.bundle.contents import SampleSource
from fairlap.store.runs.run_file import load_run_file, processes_with_samples
from fairlap.store.runs.run_sources import run_named
from fairlap.store.store import open_store


def run_with_samples(text: str) -> tuple[Run, str, SampleSource]:
    path = Path(text)
    if path.exists():
        file = load_run_file(path)
        raw = {(each.block, each.contestant): each.samples for each in processes_with_samples(file, path)}
        return file, file.id, partial(_of_file, raw)
    run, run_id = run_named(text)
    return run, run_id, partial(open_store(reading=True).samples, run_id)


def _of_file(raw: Mapping[tuple[int, str], Mapping[str, bytes]], block: int, contestant: str) -> dict[str, np.ndarray]:
    return {quantity: np.frombuffer(ns, dtype="<f8") for quantity, ns in raw[block, contestant].items()}
