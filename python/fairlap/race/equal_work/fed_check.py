"""The parent's side of a fed race.

It chooses which data is fed, and checks whether each contestant computed the right answers from it, or took the right
steps of training on it.

Requests for data that cannot be fed are errors before the race begins.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairlap import quantity_text
from fairlap.data.datasets import DATA_HASH, SYNTHETIC, FedData, by_the_item, drawn_data, require_feedable, users_data
from fairlap.data.pipeline import NUMBERS
from fairlap.data.pipeline_choice import OPTION, choice_in
from fairlap.errors import InvalidRequest
from fairlap.launch.original import Original
from fairlap.launch.worker_process import WorkerProcess
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, under
from fairlap.models.checks.answer_check import output_errors
from fairlap.models.modes import MODES
from fairlap.models.reference import answers_in_float32, reference_answers
from fairlap.models.spec import Spec, Tolerance
from fairlap.models.workload import Workload
from fairlap.race.equal_work.answers import OtherWork, answer_error, require_right
from fairlap.race.equal_work.fed_steps import FedSteps
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.request.fields.source import Source
from fairlap.request.names import ContestantName
from fairlap.request.work import Work
from fairlap.scenarios.calls.fed_latency import GOT, MOST_PROVEN_BYTES, SEEN, WRONG_SAMPLES
from fairlap.scenarios.calls.latency_messages import BEFORE, Feed
from fairlap.scenarios.process_result import AnswerError, ProcessResult

FED_BEFORE, FED_AFTER = "fed, before", "fed, after"
"""``AnswerError.when`` of the first fed steps of training, and of what came after the measurement."""


def require_data(text: str | None, works: Iterable[tuple[Work, Spec]]) -> str:
    """As the plan holds it: empty where nothing is fed, else a path from the root on, to be raced from anywhere."""
    if text is None:
        return ""
    if not text:
        raise InvalidRequest(
            "there is no data at ''; give synthetic, a .npy file or a folder of them, or leave data out"
        )
    try:
        whole = text if text == SYNTHETIC else os.path.realpath(text)  # a link to itself stays as it is
    except ValueError as error:
        raise InvalidRequest(f"{text!r} is not a path: {error}") from None
    if whole != SYNTHETIC and not os.path.exists(whole):  # noqa: PTH110  (a Path raises where the text is too long)
        raise InvalidRequest(f"no data at {whole}; use synthetic, a .npy file or a folder of them", code="E_DATA")
    for work, spec in works:
        require_feedable(whole, fed_spec(spec, work), work)
    return whole


def require_choices(contestants: Iterable[ContestantName], *, fed: bool) -> None:
    for name in contestants:
        options = dict(name.options)
        if OPTION in options and not fed:
            raise InvalidRequest(
                f"{name.text}: {OPTION}= chooses an input pipeline, but no data is fed; add --data synthetic"
            )
        if fed and name.program:
            raise InvalidRequest(f"{name.text}: a program that speaks the worker protocol cannot be fed; leave it out")
        try:
            choice_in(options, name.framework)
        except InvalidRequest as wrong:
            raise InvalidRequest(f"{name.text}: {wrong}") from None


class _Expected(NamedTuple):
    answers: Arrays
    tolerances: Mapping[str, Tolerance]  # by output


_CHECKED = re.compile(rf"(\d+)/{SEEN}")


class Feeding:
    """One race's data, and the reference's answers to what was checked of it, each computed once."""

    def __init__(self, plan: Plan, works: Sequence[Materials]) -> None:
        self._plan = plan
        self._data = {materials.work: data_for(plan, materials) for materials in works if plan.data}
        self._expected: dict[str, _Expected] = {}
        self._originals: dict[Source, Original] = {}
        self._steps = FedSteps(plan.data)

    def __enter__(self) -> Feeding:
        return self

    def __exit__(self, *_raised: object) -> None:
        for original in self._originals.values():
            original.close()

    def __bool__(self) -> bool:
        return bool(self._data)

    def lost(self) -> str:
        """Why nothing more can be fed. To be asked before the first process, as what is there then is what is fed."""
        reasons = [data.lost() for data in self._data.values()]
        return next((why for why in reasons if why), "")

    def begin(
        self, worker: WorkerProcess, process: ProcessResult, materials: Materials, scratch: Path, within_s: float
    ) -> None:
        """Start the pipeline, and prove it before it is measured."""
        data = self._data[materials.work]
        data.require_unchanged()
        proof = scratch / "proof.safetensors"
        proof.unlink(missing_ok=True)
        files = {name: str(file) for name, file in data.files.items()}
        trains = MODES[materials.work.mode].trains
        whole = materials.work.source is not None or trains
        request = Feed(files, data.samples, self._plan.data_seed, str(proof), whole)
        fed = worker.ask(request, within_s=within_s)
        process.in_force = {**process.in_force, "feed": fed.pipeline, DATA_HASH: data.hash}
        found = safetensors.read(proof)
        checked = sorted({match[1] for name in found if (match := _CHECKED.match(name))})
        if not checked or not {NUMBERS, WRONG_SAMPLES} <= set(found):
            raise OtherWork("it did not report all that its pipeline fed, so equal input cannot be proven", "E_FEED")
        require_each_once(found, data.samples, materials.work.batch)
        batches = {each: {name.removeprefix(f"{each}/"): array for name, array in found.items()} for each in checked}
        if trains:
            self._check_first_steps(list(batches.values()), process, materials)
            return
        for number, answered in batches.items():
            self._check_answer(answered, process, materials, f"fed batch {number}")

    def hold_answer(self, file: Path, process: ProcessResult, materials: Materials) -> None:
        """Check the batch that came after the measured ones, from the same pipeline."""
        self._data[materials.work].require_unchanged()
        found = safetensors.read(file)
        if MODES[materials.work.mode].trains:
            self._check_later_step(found, process, materials)
        else:
            self._check_answer(found, process, materials, FED_AFTER)

    def _check_first_steps(self, batches: Sequence[Arrays], process: ProcessResult, materials: Materials) -> None:
        """Check the first steps of training, which were taken on these batches."""
        seen = [self._seen(each, materials, FED_BEFORE) for each in batches]
        errors = self._steps.first_errors(materials, seen, under(GOT, batches[-1]), FED_BEFORE)
        _require_right(errors, process)

    def _check_later_step(self, found: Arrays, process: ProcessResult, materials: Materials) -> None:
        """Check a step that came after the measurement, from the state that it found."""
        seen = self._seen(found, materials, FED_AFTER)
        errors = self._steps.later_errors(materials, seen, under(BEFORE, found), under(GOT, found), FED_AFTER)
        _require_right(errors, process)

    def _seen(self, found: Arrays, materials: Materials, when: str) -> Arrays:
        """Read what was fed."""
        seen = under(SEEN, found)
        if set(seen) != set(self._data[materials.work].files):
            raise OtherWork(f"cannot verify that every sample was fed exactly once ({when})", "E_FEED")
        if not all(np.isfinite(each).all() for each in seen.values()):
            raise InvalidRequest(
                f"{self._plan.data} has numbers that are not finite; no answer can be checked ({when})"
            )
        return seen

    def _check_answer(self, found: Arrays, process: ProcessResult, materials: Materials, when: str) -> None:
        """Check an answer to a fed batch."""
        seen = self._seen(found, materials, when)
        expected = self._expected_for(materials, seen)
        errors = []
        for name, reference in expected.answers.items():
            if GOT + name not in found:
                raise OtherWork(f"its answer to a fed batch lacks {name}", "E_OUTPUT")
            errors.append(answer_error(name, when, found[GOT + name], reference, expected.tolerances[name]))
        if materials.work.source is None and not all(error.right for error in errors):
            self._require_answerable(self._work(materials, seen), expected.answers, when)
        _require_right(errors, process)

    def _expected_for(self, materials: Materials, inputs: Arrays) -> _Expected:
        digest = hashlib.sha256(materials.work.id.encode())
        for name, array in sorted(inputs.items()):
            digest.update(name.encode() + array.tobytes())
        key = digest.hexdigest()
        if key not in self._expected:
            self._expected[key] = self._computed(materials, inputs)
        return self._expected[key]

    def _computed(self, materials: Materials, inputs: Arrays) -> _Expected:
        """Compute the answers that are expected to these inputs.

        Of a built-in model an item's answer depends on nothing else in its batch, so two items make a batch of two; a
        user's model is asked itself, for a whole batch.
        """
        source = materials.work.source
        if source is None:
            answers = reference_answers(self._work(materials, inputs))
            return _Expected(answers, dict.fromkeys(answers, materials.spec.tolerance(materials.work.precision)))
        if source not in self._originals:
            self._originals[source] = Original(source, self._plan.pass_env)
        return _Expected(*self._originals[source].answers(inputs))

    def _work(self, materials: Materials, inputs: Arrays) -> Workload:
        items = len(next(iter(inputs.values())))
        return Workload(
            materials.spec, materials.package, items, "infer", materials.work.precision, materials.weights, inputs
        )

    def _require_answerable(self, work: Workload, expected: Arrays, when: str) -> None:
        """Where the reference itself goes wrong in float32, numbers of the data are to blame and no contestant."""
        tolerance = work.spec.tolerance(work.precision)
        for name, found in answers_in_float32(work).items():
            if why := output_errors(name, found, expected[name], tolerance).why:
                raise InvalidRequest(
                    f"{self._plan.data} has numbers for which the model has no answer in float32: of the reference's "
                    f"own, {why}; no answer can be checked, so scale the data ({when})"
                )


def data_for(plan: Plan, materials: Materials) -> FedData:
    spec = fed_spec(materials.spec, materials.work)
    require_feedable(plan.data, spec, materials.work)
    if plan.data == SYNTHETIC:
        return drawn_data(spec, materials.work.batch, plan.data_seed, materials.folder)
    return users_data(Path(plan.data), spec, materials.work.batch)


def fed_spec(spec: Spec, work: Work) -> Spec:
    """In mode "train" with the labels as a further input."""
    fed = spec if work.source is None else by_the_item(spec, work.batch)
    labels = fed.label_tensor() if MODES[work.mode].batches_have_labels else None
    return fed if labels is None else replace(fed, inputs=(*fed.inputs, labels))


def _require_right(errors: list[AnswerError], process: ProcessResult) -> None:
    process.errors += errors
    require_right(errors, process.in_force)


def require_each_once(proof: Mapping[str, np.ndarray], samples: int, batch: int) -> None:
    """As far as was looked, every sample of an epoch came once, and as the files hold it."""
    numbers, wrong = proof[NUMBERS], int(proof[WRONG_SAMPLES][0])
    if wrong:
        raise OtherWork(f"its pipeline fed {quantity_text.count(wrong, 'sample')} not as the files hold them", "E_FEED")
    in_range = numbers[(numbers >= 0) & (numbers < samples)]
    if beyond := len(numbers) - len(in_range):
        raise OtherWork(f"its pipeline fed {quantity_text.count(beyond, 'sample')} beyond those in the files", "E_FEED")
    if twice := len(numbers) - len(np.unique(numbers)):
        raise OtherWork(f"its pipeline fed {twice:,} of {samples:,} samples more than once in an epoch", "E_FEED")
    whole = samples // batch * batch
    if len(numbers) > whole or (len(numbers) < whole and not _looked_far_enough(proof, len(numbers))):
        raise OtherWork(
            f"its pipeline fed {quantity_text.count(len(numbers), 'sample')} in an epoch, not {whole:,}", "E_FEED"
        )


def _looked_far_enough(proof: Mapping[str, np.ndarray], numbers: int) -> bool:
    """Of an epoch beyond what is proven whole, at least so much must have come."""
    seen = [each for name, each in proof.items() if name.startswith(f"0/{SEEN}")]
    bytes_each = sum(each.nbytes // len(each) for each in seen)
    return bytes_each * numbers >= MOST_PROVEN_BYTES
