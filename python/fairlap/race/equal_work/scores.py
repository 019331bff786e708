"""The metrics of a task: each contestant answers all of the user's data once, after it was timed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.metrics.metric import Parts
from fairlap.models.sources.bundle import bundle_in, data_file, labels_file
from fairlap.models.spec import LABELS
from fairlap.models.task_metrics import NotFinite, joined, parts_of, score_of, scored_outputs
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.group_scores import ScoresByGroup
from fairlap.race.equal_work.materials import Materials
from fairlap.scenarios.process_result import ProcessResult


class Scores:
    """Of one race. Answers to the same inputs are the same in each process, so the first one's scores are everyone's.

    ``resumed`` are processes of an earlier run. ``items`` has what the metrics made of each item, by contestant and
    id of the work, then by metric; it is not kept with a run.
    """

    def __init__(self, resumed: Iterable[ProcessResult]) -> None:
        self._found = {(each.contestant, each.work_id): each.scores for each in resumed if each.scores}
        self.items: dict[tuple[str, str], dict[str, Parts]] = {}
        self._by_group = ScoresByGroup()

    def take(
        self, worker: WorkerProcess, process: ProcessResult, materials: Materials, scratch: Path, within_s: float
    ) -> None:
        """Compute the metrics of a contestant once; raise OtherWork for an answer that is not finite."""
        source = materials.work.source
        if source is None or not source.metrics:
            return
        key = (process.contestant, process.work_id)
        if key not in self._found or (source.groups and key not in self.items):  # a resumed one has no items
            self.items[key] = _items(source.metrics, worker, materials, scratch, within_s)
            self._found[key] = {text: score_of(text, [parts]) for text, parts in self.items[key].items()}
        process.scores = self._found[key]
        if source.groups:
            self._by_group.take(process, self.items[key], materials.folder)


def _items(
    metrics: tuple[str, ...], worker: WorkerProcess, materials: Materials, scratch: Path, within_s: float
) -> dict[str, Parts]:
    labels = safetensors.read(labels_file(materials.folder))[LABELS]
    items, size = bundle_in(materials.folder).items, materials.work.batch
    among = [tensor.name for tensor in materials.spec.outputs]
    parts: dict[str, list[Parts]] = {text: [] for text in metrics}
    answer = scratch / "data-answer.safetensors"
    for number, place in enumerate(range(0, items, size)):
        worker.answer("data", answer, within_s=within_s, inputs=data_file(materials.folder, number))
        outputs = safetensors.read(answer)
        own = labels[place : place + size]
        for text in metrics:
            names = scored_outputs(text, among)
            if missing := [name for name in names if name not in outputs]:
                raise OtherWork(f"its answer lacks {missing[0]}", "E_OUTPUT")
            try:
                found = parts_of(text, [np.asarray(outputs[name])[: len(own)] for name in names], np.asarray(own))
            except NotFinite as wrong:
                raise OtherWork(str(wrong), wrong.code) from None
            parts[text].append(found)
        answer.unlink()
    return {text: joined(parts[text]) for text in metrics}
