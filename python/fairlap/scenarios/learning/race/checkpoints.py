"""What each process of a block had learnt after its last epoch, on disk until the block is stored whole.

An interrupted race runs its block again, and each contestant goes on from its own checkpoint, with the time that it had
spent. A checkpoint counts only for the training that it is of: the same contestant in the same version, on the same
weights, items and batches.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.errors import reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.private_files import make_private_folder
from fairlap.models.array_files import safetensors
from fairlap.models.array_files.safetensors import BadFile, NotWritten
from fairlap.models.arrays import Arrays, hash_of
from fairlap.scenarios.learning.training_messages import LearningCurve
from fairlap.scenarios.process_result import AnswerError, ProcessResult

_ABOUT = "checkpoint"


class Origin(msgspec.Struct, frozen=True):
    """What a checkpoint is of. Each field has to be the same for training to go on from it."""

    contestant: str
    version: str
    work_id: str
    block: int
    weights: str  # the hash of those that training began with
    items: str  # of the labelled data
    batches: str  # of all epochs so far


_NAMES = {"work_id": "work", "version": "version of the framework", "items": "data", "batches": "order of the batches"}


class _About(msgspec.Struct, frozen=True):
    origin: Origin
    state: str
    curve: LearningCurve
    errors: list[AnswerError]


@dataclass(frozen=True)
class Checkpoint:
    curve: LearningCurve
    errors: list[AnswerError]  # of the first epoch
    state: Arrays


class Checkpoints:
    """Of one race, in a folder; without a folder none are kept."""

    def __init__(self, folder: Path | None = None, report: Callable[[str], None] = lambda _: None) -> None:
        self._folder, self._report = folder, report
        self._trouble = ""

    def write(self, process: ProcessResult, origin: Origin, checkpoint: Checkpoint) -> None:
        """In the place of the process's last one, which stays where this cannot be written."""
        if self._folder is None:
            return
        about = _About(origin, hash_of(checkpoint.state), checkpoint.curve, checkpoint.errors)
        text = np.frombuffer(msgspec.json.encode(about), np.uint8)
        try:
            make_private_folder(self._folder)
            _replace(self._file(self._folder, process), {**checkpoint.state, _ABOUT: text})
            self._trouble = ""
        except (BadFile, NotWritten, OSError) as error:
            why = reason_of(error)
            if not self._trouble:
                self._report(f"no checkpoint of {process.contestant} was written; the race goes on without it: {why}")
            self._trouble = why

    def find(self, process: ProcessResult, origin_after: Callable[[int], Origin]) -> Checkpoint | None:
        """Find the checkpoint; report in one line why training cannot resume from one, and return None.

        ``origin_after`` gives what a checkpoint after so many epochs has to be of.
        """
        file = None if self._folder is None else self._file(self._folder, process)
        if file is None or not file.exists():
            return None
        name = process.contestant
        try:
            state = dict(safetensors.read(file))
            about = msgspec.json.decode(state.pop(_ABOUT).tobytes(), type=_About)
        except (BadFile, KeyError, *NOT_THE_DOCUMENT):
            self._report(f"the checkpoint of {name} is damaged; its training starts from the beginning")
            return None
        if about.state != hash_of(state):
            self._report(f"the checkpoint of {name} is damaged; its training starts from the beginning")
            return None
        wanted = origin_after(len(about.curve.evaluations))
        other = [field for field in Origin.__struct_fields__ if getattr(about.origin, field) != getattr(wanted, field)]
        if other:
            what = " and ".join(_NAMES.get(field, field) for field in other)
            self._report(f"the checkpoint of {name} is of another {what}; its training starts from the beginning")
            return None
        epochs = quantity_text.count(len(about.curve.evaluations), "epoch")
        self._report(f"{name} trains on from its checkpoint after {epochs}")
        return Checkpoint(about.curve, about.errors, state)

    def remove_all(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _file(folder: Path, process: ProcessResult) -> Path:
        whose = hashlib.sha256(process.contestant.encode()).hexdigest()[:16]
        return folder / f"block-{process.block}-{whose}.safetensors"


def _replace(file: Path, arrays: Arrays) -> None:
    """On the disk before it takes the place of the last one, so that a power failure leaves one of the two."""
    following = file.with_suffix(".next")
    try:
        safetensors.write(following, arrays)
        with following.open("rb") as written:
            os.fsync(written.fileno())
        following.replace(file)
    finally:
        following.unlink(missing_ok=True)
