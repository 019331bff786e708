"""One process's answers from file to answer: each file seen and proven, then all of them in drawn order, in turns."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, under
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork, answer_error
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.race.processes.after_turns import AfterTurns, OneProcess
from fairlap.race.processes.bench import Bench
from fairlap.race.processes.rotation import Rotation, Turn
from fairlap.request.fields.data.stages import CODE
from fairlap.request.names import ContestantName
from fairlap.scenarios.file_to_answer.answer_values import from_arrays, why_wrong
from fairlap.scenarios.file_to_answer.race.file_references import FileReference, references_of
from fairlap.scenarios.file_to_answer.stage_messages import (
    INPUTS,
    OUTPUTS,
    AnswersFound,
    MeasureItems,
    SeeItem,
    StageFound,
)
from fairlap.scenarios.process_result import ProcessResult

_FEWEST_ANSWERS = 4  # of a turn, so that overlapped ones have some in between
_SAME_INPUTS = 1e-5  # of the largest value: what code on other threads may round otherwise
_MOST_NAMED = 3


class FileRun(AfterTurns):
    """``samples`` are the times of all answers to each file, and of their stages.

    Those of the fourth file are ``file-3/wall_ns`` and ``file-3-decode/wall_ns``.
    """

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        assert materials.work.stages is not None
        self._stages, self._plan = materials.work.stages, plan
        self._materials = materials
        self._file = scratch / "answer-to-a-file.safetensors"
        drawn = random.Random(f"files {plan.seed} {block.number}")  # for all contestants of the block alike
        count = len(self._stages.names)
        order = drawn.sample(range(count), count)
        self._rotation = Rotation(order, plan.measuring, fewest_of_a_turn=_FEWEST_ANSWERS)
        self._seen_s: dict[int, float] = {}
        self._times_ns: list[list[np.ndarray]] = [[] for _ in order]  # of an answer and its stages, by file
        self._overlapped, self._between_s = 0, 0.0

    def goes_on(self, bench: Bench) -> bool:
        return self._rotation.goes_on

    def begin(self, process: OneProcess) -> None:
        """Answer every file once, in drawn order, and check all that comes of it."""
        self._references = references_of(self._materials, self._plan.pass_env)
        for item in self._rotation.order:
            self._see(item, process)
        process.result.warnings = [*process.result.warnings, *self._unproven()]
        process.result.answers = AnswersFound()

    def step(self, process: OneProcess) -> None:
        if not self._rotation.may_step(process.bench):
            return
        turn = self._rotation.turn(self._answer_s)
        answers_s = self._one_by_one(turn, process)
        self._overlap(turn.places, process)
        self._rotation.took(turn, answers_s)
        process.result.answers = self._found()

    def _see(self, item: int, process: OneProcess) -> None:
        self._file.unlink(missing_ok=True)
        seen = process.worker.ask(SeeItem(self._stages, item, str(self._file)), within_s=self._plan.limits.answer_s)
        self._seen_s[item] = seen.seconds
        found, reference = safetensors.read(self._file), self._references[item]
        _require_same_inputs(under(INPUTS, found), reference)
        self._check_outputs(under(OUTPUTS, found), reference, process.result)
        _require_right_answer(found, reference)

    def _check_outputs(self, got: Arrays, reference: FileReference, result: ProcessResult) -> None:
        when = f"the answer to {reference.name}"
        errors = []
        for name, exact in reference.outputs.items():
            if name not in got:
                raise OtherWork(f"{when} lacks {name}", "E_OUTPUT")
            errors.append(answer_error(name, when, got[name], exact, reference.tolerances[name]))
        result.errors += [max(errors, key=lambda error: error.distance)] if errors else []
        answers.require_right(errors, result.in_force)

    def _one_by_one(self, turn: Turn, process: OneProcess) -> float:
        """Return the seconds that the answers took."""
        items = turn.whole
        request = self._asked(items, overlapped=False)
        process.ask(request, within_s=self._plan.limits.measure_s)
        times_ns = np.frombuffer(process.worker.raw, dtype="<f8")
        if len(times_ns) != request.columns * len(items):
            raise OtherWork(f"{len(times_ns)} times came of {len(items)} answers", "E_OUTPUT")
        rows = times_ns.reshape(len(items), request.columns)[len(turn.unused) :]
        for item, row in zip(turn.places, rows, strict=True):
            self._times_ns[item].append(row)
        for item in set(turn.places):
            for label, times in zip(("", *self._stages.labels), np.stack(self._times_ns[item], axis=1), strict=True):
                self.samples[f"file-{item}{label and f'-{label}'}/wall_ns"] = times
        _require_right_answer(safetensors.read(self._file), self._references[items[-1]])
        return float(np.nansum(rows[:, 0])) / 1e9

    def _overlap(self, places: tuple[int, ...], process: OneProcess) -> None:
        request = self._asked(places, overlapped=True)
        measured = process.worker.ask(request, within_s=self._plan.limits.measure_s)
        self._overlapped += len(places) - 1
        self._between_s += measured.between_s
        _require_right_answer(safetensors.read(self._file), self._references[places[-1]])

    def _asked(self, items: tuple[int, ...], *, overlapped: bool) -> MeasureItems:
        self._file.unlink(missing_ok=True)
        return MeasureItems(self._stages, items, overlapped, str(self._file))

    def _answer_s(self, item: int) -> float:
        rows = self._times_ns[item]
        return float(np.nanmedian([row[0] for row in rows])) / 1e9 if rows else self._seen_s[item]

    def _found(self) -> AnswersFound:
        count = sum(map(len, self._times_ns))
        if not all(self._times_ns):
            return AnswersFound(answers=count)
        medians_ns = [np.nanmedian(np.stack(rows), axis=0) for rows in self._times_ns]
        answer_ns, *stages_ns = np.mean(medians_ns, axis=0).tolist()
        stages = tuple(
            StageFound(label, mean_ns) for label, mean_ns in zip(self._stages.labels, stages_ns, strict=True)
        )
        overlapped_per_s = self._overlapped / self._between_s if self._between_s else None
        return AnswersFound(answer_ns, stages, count, overlapped_per_s)

    def _unproven(self) -> list[Notice]:
        """Name the files whose final answers cannot be compared; the model's outputs were, everywhere."""
        on_edge = [each.name for each in self._references if each.answer.on_edge]
        unknown = sorted({kind for each in self._references for kind in each.answer.value.unknown})
        found = []
        if on_edge:
            some = f"{', '.join(on_edge[:_MOST_NAMED])}{' and others' if len(on_edge) > _MOST_NAMED else ''}"
            found.append(f"rounding alone changes the final answer to {some}, so there only the outputs were compared")
        if unknown:
            found.append(f"final answers have {', '.join(unknown)}, which was not compared")
        return [Notice("W_WEAK_PROOF", text) for text in found]


def require_float32(materials: Materials) -> None:
    if materials.own_types:
        raise InvalidRequest(
            f"--items is for models in float32, and {materials.work.model} computes in "
            f"{', '.join(materials.own_types)}",
            code=CODE,
        )


def _require_same_inputs(got: Arrays, reference: FileReference) -> None:
    """Of the model: the user's code may do something else among other packages."""
    for name, wanted in reference.inputs.items():
        own = got.get(name)
        if own is None or own.shape != wanted.shape or own.dtype != wanted.dtype:
            raise OtherWork(f"its functions gave another {name} for {reference.name} than the reference's", "E_STAGE")
        off = np.abs(own.astype(np.float64) - wanted.astype(np.float64)).max(initial=0.0)
        allowed = _SAME_INPUTS * np.abs(wanted.astype(np.float64)).max(initial=0.0) if wanted.dtype.kind == "f" else 0.0
        if not off <= allowed:
            raise OtherWork(
                f"its functions gave another {name} for {reference.name} than the reference's, off by {off:.2g}; are "
                "the same packages in its environment?",
                "E_STAGE",
            )


def _require_right_answer(found: Arrays, reference: FileReference) -> None:
    if why := why_wrong(from_arrays(found), reference.answer):
        raise OtherWork(f"its final answer to {reference.name} differs from the reference's: {why}", "E_OUTPUT")
