"""Users' models that are opened and differentiated in the process of a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, filled_batches, joined_items
from fairlap.models.sources.bundle import bundle_in, inputs_file, weights_file
from fairlap.models.sources.contract import Bundle, Learner
from fairlap.models.sources.opening import Order, opened_folder
from fairlap.models.sources.registry import require_kind
from fairlap.models.spec import BATCH_LABELS, LABELS
from fairlap.models.training.exercise import Exercise
from fairlap.models.training.reference import Batch, OwnSlopes, Slopes, State
from fairlap.models.workload import Workload
from fairlap.request.fields.source import Source
from fairlap.request.fields.training import Training
from fairlap.request.work import Mode

SUPPORT = Path(__file__).parent
SETS = {"inputs": 0, "changed": 1}


class SlopesHere(OwnSlopes):
    def __init__(self, learner: Learner, trained: tuple[str, ...]) -> None:
        self.learner, self.trained = learner, trained

    def slopes(self, weights: Mapping[str, Any], batch: Batch, *, training: bool) -> Slopes:
        found = self.learner.slopes(weights, batch, training)
        return Slopes(found.loss, {name: found.gradients[name] for name in self.trained}, found.averages)

    def outputs(self, weights: Mapping[str, Any], inputs: Mapping[str, Any], batch: int) -> dict[str, Any]:
        answers = [self.learner.outputs(weights, each) for each in filled_batches(inputs, batch)]
        return joined_items(answers, len(next(iter(inputs.values()))))


@dataclass(frozen=True)
class OpenedHere:
    folder: Path
    bundle: Bundle
    slopes: SlopesHere

    @property
    def weights(self) -> dict[str, np.ndarray]:
        return safetensors.read(weights_file(self.folder))

    def batch(self, which: str = "inputs") -> Batch:
        arrays = dict(safetensors.read(inputs_file(self.folder, which)))
        arrays.pop(LABELS, None)
        labels = arrays.pop(BATCH_LABELS, None)
        return Batch(arrays, labels)

    def exercise(self, training: Training, *batches: Batch) -> Exercise:
        return Exercise(self.bundle.spec, self.slopes, training, State(self.weights), batches)

    def workload(self, mode: Mode, training: Training | None = None) -> Workload:
        batch = self.batch()
        weights: Arrays = self.weights
        return Workload(
            self.bundle.spec,
            str(self.folder),
            self.bundle.batch,
            mode,
            "fp32",
            weights,
            batch.inputs,
            batch.labels,
            training,
        )


def opened_here(text: str, loss: str, folder: Path, labels: str = "", *, trust: bool = False) -> OpenedHere:
    path = str(Path(text).absolute()) if "/" in text else text
    return opened_source(Source(text, path, str(SUPPORT), loss=loss, labels=labels, trust=trust), folder)


def opened_source(source: Source, folder: Path) -> OpenedHere:
    found = opened_folder(Order(source, SETS, str(folder)))
    bundle = bundle_in(found)
    learner = require_kind(source).learner(source, found)
    trained = tuple(weight.name for weight in bundle.spec.weights if weight.trained)
    return OpenedHere(found, bundle, SlopesHere(learner, trained))
