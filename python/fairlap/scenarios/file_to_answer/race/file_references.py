"""What contestants' answers to the files are compared with: the float64 reference on the same inputs, then ``--after``.

The user's functions run in a separate process, and so does the model's reference.
"""

from __future__ import annotations

import atexit
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.errors import InvalidRequest, last_line, shortened
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.launch.opened_source import process_of_source
from fairlap.launch.original import Original
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.reference import reference_answers
from fairlap.models.sources.confinement import LIMIT_S
from fairlap.models.spec import Spec, Tolerance
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan_modules import PlanModule, modules_of
from fairlap.request.fields.data.stages import Stages
from fairlap.request.fields.source import Source
from fairlap.scenarios.file_to_answer.answer_values import (
    AnswerValue,
    ExpectedAnswer,
    expected_answer,
    from_arrays,
    value_of,
)
from fairlap.scenarios.file_to_answer.stage_functions import StageFailed, forms_of
from fairlap.scenarios.file_to_answer.stage_process import Order, Outcome, answer_file, inputs_file, outputs_file

_MOVED = 8  # sets of outputs, each off by as much as an answer may be


@dataclass(frozen=True)
class FileReference:
    name: str
    inputs: Arrays
    outputs: Arrays  # in float64
    tolerances: Mapping[str, Tolerance]
    answer: ExpectedAnswer


@dataclass(frozen=True)
class _Asked:
    """A work with its model, and where files are exchanged."""

    materials: Materials
    stages: Stages
    passed: tuple[str, ...]
    scratch: ScratchFolder = field(default_factory=ScratchFolder)

    @property
    def folder(self) -> Path:
        return self.scratch.path


_Answering = Callable[[Arrays], tuple[Arrays, Mapping[str, Tolerance]]]
"""Of a model's inputs: its outputs in float64, and what each may be off by."""

_Key = tuple[Path, Source | None, Stages, int, tuple[str, ...], tuple[PlanModule, ...]]
_found: dict[_Key, list[FileReference]] = {}


def references_of(
    materials: Materials, passed: tuple[str, ...], notify: Callable[[str], None] = lambda _: None
) -> list[FileReference]:
    """Compute them once in this process, in the order of the files.

    Raises InvalidRequest for a function that fails, or that gives another result when it is called again.
    """
    work = materials.work
    assert work.stages is not None
    key = (materials.folder, work.source, work.stages, work.batch, passed, modules_of((), (work,)))
    if key not in _found:
        files = quantity_text.count(len(work.stages.names), "file")
        notify(f"{work.model}: answering {files} by the reference, in float64")
        asked = _Asked(materials, work.stages, passed)
        atexit.register(asked.scratch.remove)
        _found[key] = _references(asked)
    return _found[key]


def _references(asked: _Asked) -> list[FileReference]:
    names, spec = asked.stages.names, asked.materials.spec
    _carry_out(asked, "before")
    inputs = [safetensors.read(inputs_file(asked.folder, item)) for item in range(len(names))]
    with _answering(asked) as answers:
        answered = [answers(own) for own in inputs]
    for item, (outputs, allowed) in enumerate(answered):
        for number in range(_MOVED + 1):
            moved = _moved(spec, outputs, allowed, item, number)
            safetensors.write(outputs_file(asked.folder, item, number), moved)
    if asked.stages.after:
        _carry_out(asked, "after")
    return [
        FileReference(name, inputs[item], *answered[item], _expected(asked, item)) for item, name in enumerate(names)
    ]


@contextmanager
def _answering(asked: _Asked) -> Iterator[_Answering]:
    """Start the original of a user's model, or take the reference of a built-in one."""
    materials = asked.materials
    if (source := materials.work.source) is not None:
        with closing(Original(source, asked.passed)) as original:
            yield lambda inputs: _copied(*original.answers(inputs))
        return
    work, tolerance = materials.workload("inputs"), materials.spec.tolerance("fp32")
    allowed = {tensor.name: tolerance for tensor in materials.spec.outputs}
    yield lambda inputs: (reference_answers(replace(work, inputs=inputs)), allowed)


def _copied(outputs: Arrays, allowed: Mapping[str, Tolerance]) -> tuple[Arrays, Mapping[str, Tolerance]]:
    """Out of the file, which has the next answers soon."""
    return {name: np.array(array) for name, array in outputs.items()}, allowed


def _moved(
    spec: Spec, outputs: Arrays, allowed: Mapping[str, Tolerance], item: int, number: int
) -> dict[str, np.ndarray]:
    """Round the outputs to the model's types; from number 1 on, move floats by as much as they may be off."""
    rng = np.random.default_rng([item, number])
    types = {tensor.name: np.dtype(tensor.dtype) for tensor in spec.outputs}
    found = {}
    for name, exact in outputs.items():
        kind, tolerance = types[name], allowed[name]
        moved = np.asarray(exact)
        if number and kind.kind == "f":
            reach = np.maximum(tolerance.absolute, tolerance.relative * np.abs(exact))
            moved = moved + rng.uniform(-1.0, 1.0, moved.shape) * reach
        found[name] = moved.astype(kind)
    return found


def _expected(asked: _Asked, item: int) -> ExpectedAnswer:
    first, *moved = [_answer(asked, item, number) for number in range(_MOVED + 1)]
    assert first is not None
    return expected_answer(first, moved)


def _answer(asked: _Asked, item: int, number: int) -> AnswerValue | None:
    if not asked.stages.after:
        return value_of(safetensors.read(outputs_file(asked.folder, item, number)))
    file = answer_file(asked.folder, item, number)
    return from_arrays(safetensors.read(file)) if file.is_file() else None


def _carry_out(asked: _Asked, step: str) -> None:
    order = Order(
        asked.stages,
        forms_of(asked.materials.spec, asked.materials.work.batch),
        str(asked.folder),
        "before" if step == "before" else "after",
        _MOVED,
    )
    module = "fairlap.scenarios.file_to_answer.stage_process"
    with process_of_source(module, errors=subprocess.PIPE, passed=asked.passed) as process:
        try:
            printed, errors = process.communicate(msgspec.json.encode(order), timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            text = f"--{step}: the files were not done within {LIMIT_S / 60:.0f} minutes"
            raise InvalidRequest(text, code="E_TIMEOUT") from None
        finally:
            process.terminate()  # does nothing when it has ended
    try:
        outcome = msgspec.json.decode(printed, type=Outcome)
    except NOT_THE_DOCUMENT:
        last = shortened(last_line(errors.decode(errors="replace"))) or f"exit status {process.returncode}"
        text = f"the functions of --{step} ended their process: {last}"
        raise InvalidRequest(text, code=StageFailed.code) from None
    if outcome.code:
        raise InvalidRequest(outcome.message, code=outcome.code)
