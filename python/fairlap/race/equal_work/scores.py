"""The metrics of a task: each contestant answers all of the user's data once, after it was timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from fairlap.data.corruptions.corruption import corrupted_items
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.metrics.metric import Parts
from fairlap.models.slices.corruptible import MISTYPED
from fairlap.models.slices.corruptions import Corrupted, changes_by_corruption, corrupted_scores
from fairlap.models.slices.groups import Grouped, changes_by_group, scores_by_group
from fairlap.models.slices.slice_scores import SliceChange, SliceScores
from fairlap.models.sources.bundle import GROUPS, bundle_in, data_file, labels_file, mistyped_file
from fairlap.models.spec import LABELS
from fairlap.models.task_metrics import NotFinite, Score, joined, parts_of, score_of, scored_outputs
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.request.fields.data.corruption import Corruption
from fairlap.scenarios.process_result import ProcessResult

# Scores of slices of the data, and how they differ from those of contestants that answered before. All models of a race
# answer the same items, so each is compared with every one before it.
Answered = TypeVar("Answered")
Key = tuple[str, str]  # a contestant, and the id of its work


class ScoresOfSlices(Generic[Answered]):
    """Of one race and one kind of slice: found once for each contestant, in the block in which it first answered."""

    def __init__(
        self,
        scores: Callable[[Answered], dict[str, Score | None]],
        changes: Callable[[Answered, Answered, str, str], list[SliceChange]],
    ) -> None:
        self._scores, self._changes = scores, changes
        self._earlier: dict[Key, Mapping[str, Answered]] = {}
        self._found: dict[Key, tuple[int, SliceScores]] = {}  # with the number of its block

    def of(self, process: ProcessResult, answered: Callable[[], Mapping[str, Answered]]) -> SliceScores | None:
        """None in later blocks. ``answered`` gives, by metric, what it made of the answers."""
        key = (process.contestant, process.work_id)
        if key not in self._found:
            self._found[key] = (process.block, self._compared(key, answered()))
        block, found = self._found[key]
        return found if process.block == block else None

    def _compared(self, key: Key, own: Mapping[str, Answered]) -> SliceScores:
        changes = [
            change
            for whose, other in self._earlier.items()
            for metric, each in own.items()
            for change in self._changes(each, other[metric], *whose)
        ]
        self._earlier[key] = own
        return SliceScores({metric: self._scores(each) for metric, each in own.items()}, changes)


class Scores:
    """Of one race. Answers to the same inputs are the same in each process, so the first one's scores are everyone's.

    ``resumed`` are processes of an earlier run. ``items`` has what the metrics made of each item, by contestant and
    id of the work, then by metric; it is not kept with a run.
    """

    def __init__(self, resumed: Iterable[ProcessResult]) -> None:
        self._found = {(each.contestant, each.work_id): each.scores for each in resumed if each.scores}
        self.items: dict[tuple[str, str], dict[str, Parts]] = {}
        self._by_group = ScoresOfSlices(scores_by_group, changes_by_group)
        self._of_corrupted = ScoresOfSlices(corrupted_scores, changes_by_corruption)

    def take(
        self, worker: WorkerProcess, process: ProcessResult, materials: Materials, scratch: Path, within_s: float
    ) -> None:
        """Compute the metrics of a contestant once; raise OtherWork for an answer that is not finite."""
        source = materials.work.source
        if source is None or not source.metrics:
            return
        key = (process.contestant, process.work_id)
        answering = _Answering(source.metrics, worker, materials, scratch, within_s)
        with_slices = bool(source.groups or source.corruptions)  # which take the items, and a resumed run has none
        if key not in self._found or (with_slices and key not in self.items):
            self.items[key] = answering.items()
            self._found[key] = {text: score_of(text, [parts]) for text, parts in self.items[key].items()}
        process.scores = self._found[key]
        if source.groups:
            process.groups = self._by_group.of(process, partial(_grouped, self.items[key], materials.folder))
        if source.corruptions:
            corrupted = partial(_corrupted, self.items[key], source.corruptions, answering.corrupted_items)
            process.corrupted = self._of_corrupted.of(process, corrupted)


def _grouped(items: Mapping[str, Parts], folder: Path) -> dict[str, Grouped]:
    groups, names = safetensors.read(labels_file(folder))[GROUPS], bundle_in(folder).groups
    return {metric: Grouped(metric, parts, groups, names) for metric, parts in items.items()}


def _corrupted(
    items: Mapping[str, Parts],
    corruptions: tuple[Corruption, ...],
    answered: Callable[[Corruption], Mapping[str, Parts]],
) -> dict[str, Corrupted]:
    found = {corruption: answered(corruption) for corruption in corruptions}
    return {
        metric: Corrupted(metric, clean, {which: parts[metric] for which, parts in found.items()})
        for metric, clean in items.items()
    }


class _Answering:
    """One contestant answers all items, as they are or corrupted, in batches of the model's size."""

    def __init__(
        self, metrics: tuple[str, ...], worker: WorkerProcess, materials: Materials, scratch: Path, within_s: float
    ) -> None:
        self._metrics, self._worker, self._materials = metrics, worker, materials
        self._scratch, self._within_s = scratch, within_s
        self._folder = materials.folder

    def items(self) -> dict[str, Parts]:
        return self._answered(partial(data_file, self._folder))

    def corrupted_items(self, corruption: Corruption) -> dict[str, Parts]:
        """Corrupt one batch at a time; the items that fill up the last one are not scored."""
        file, of = self._scratch / "corrupted.safetensors", bundle_in(self._folder).corruptible
        assert of is not None
        if of == MISTYPED:
            return self._answered(partial(mistyped_file, self._folder, corruption.severity))

        def inputs(number: int) -> Path:
            batch = dict(safetensors.read(data_file(self._folder, number)))
            first = number * self._materials.work.batch
            batch[of.name] = corrupted_items(np.asarray(batch[of.name]), first, corruption, of)
            file.unlink(missing_ok=True)
            safetensors.write(file, batch)
            return file

        try:
            return self._answered(inputs)
        finally:
            file.unlink(missing_ok=True)

    def _answered(self, inputs: Callable[[int], Path]) -> dict[str, Parts]:
        labels = safetensors.read(labels_file(self._folder))[LABELS]
        items, size = bundle_in(self._folder).items, self._materials.work.batch
        among = [tensor.name for tensor in self._materials.spec.outputs]
        parts: dict[str, list[Parts]] = {text: [] for text in self._metrics}
        answer = self._scratch / "data-answer.safetensors"
        for number, place in enumerate(range(0, items, size)):
            self._worker.answer("data", answer, within_s=self._within_s, inputs=inputs(number))
            outputs = safetensors.read(answer)
            own = labels[place : place + size]
            for text in self._metrics:
                names = scored_outputs(text, among)
                if missing := [name for name in names if name not in outputs]:
                    raise OtherWork(f"its answer lacks {missing[0]}", "E_OUTPUT")
                try:
                    found = parts_of(text, [np.asarray(outputs[name])[: len(own)] for name in names], np.asarray(own))
                except NotFinite as wrong:
                    raise OtherWork(str(wrong), wrong.code) from None
                parts[text].append(found)
            answer.unlink()
        return {text: joined(parts[text]) for text in self._metrics}
