"""What was learnt, as files of weights from which another race can start: of each contestant the best process's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from fairlap import quantity_text
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.files.atomic_files import why_no_folder
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.training.reference import WEIGHT
from fairlap.race.planning.plan import Plan
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import ProcessResult

CODE = "E_KEEP_WEIGHTS"


class KeptWeights:
    """In a folder; without one, none are kept. ``failures`` are files that could not be written."""

    def __init__(
        self,
        plan: Plan,
        folder: Path | None = None,
        report: Callable[[str], None] = lambda _: None,
        earlier: Iterable[ProcessResult] = (),
    ) -> None:
        """``earlier`` are processes of this race that ended before it was resumed."""
        self.failures: list[str] = []
        self._works = {work.id: work for work in plan.works}
        self._folder, self._report = folder, report
        self._best: dict[Path, float] = {}
        if folder is not None:
            for process in earlier:
                if process.finished and process.learning is not None and process.learning.evaluations:
                    file = self._file(folder, process)
                    if file.exists():
                        self._note(file, process.learning.last_score)

    def offer(self, process: ProcessResult, curve: LearningCurve, state: Arrays) -> None:
        """Those that the process ended with, if no other process of the contestant ended with a better score."""
        if self._folder is None:
            return
        file, score = self._file(self._folder, process), curve.last_score
        if score <= self._best.get(file, float("-inf")):
            return
        weights = {name.removeprefix(WEIGHT): array for name, array in state.items() if name.startswith(WEIGHT)}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            safetensors.write(file, weights, private=False)
        except OSError as error:
            self.failures.append(f"{file} could not be written: {error.strerror}")
            return
        except FairlapError as error:
            self.failures.append(str(error))
            return
        self._note(file, score)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        after = f"{quantity_text.share(score, 4)} after {quantity_text.count(len(curve.evaluations), 'epoch')}"
        self._report(f"kept the weights of {process.contestant} ({after}) in {file}@sha256:{digest}")

    def _note(self, file: Path, score: float) -> None:
        self._best[file] = max(score, self._best.get(file, score))

    def _file(self, folder: Path, process: ProcessResult) -> Path:
        work = self._works[process.work_id]
        scale = "" if work.scale is None else f"-{work.scale.text}"
        name = f"{work.model}-batch-{work.batch}{scale}-{process.contestant}"
        return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.safetensors"


def require_folder(folder: Path | None, *, asked: bool) -> None:
    """Raise InvalidRequest for what would be known only when the race is over. The first weights make the folder."""
    if folder is None:
        return
    if not asked:
        raise InvalidRequest("--keep-weights keeps what --to-score trained; add --to-score", code=CODE)
    if why := why_no_folder(folder):
        raise InvalidRequest(f"cannot keep weights in {folder}: {why}", code=CODE)
