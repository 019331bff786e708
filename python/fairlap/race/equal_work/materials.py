"""What every contestant is handed for one piece of work: the same files of weights and inputs, and their hashes.

The answers of the float64 reference are stored with them, since a large model's reference takes longer than its race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.launch.own_slopes import slopes_of
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays, hash_of
from fairlap.models.call_cost import bytes_of_weights
from fairlap.models.checks.fp8_answers import fp8_tolerance, fp8_tolerances
from fairlap.models.checks.token_check import why_no_tokens
from fairlap.models.code_hash import hash_of_learning_code, hash_of_model_code
from fairlap.models.draw import rounded_to
from fairlap.models.modes import MODES
from fairlap.models.reference import reference_answers
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.callables.drawing import FURTHER
from fairlap.models.sources.inputs import CALIBRATION
from fairlap.models.spec import BATCH_LABELS, LABELS, UNIT_ROUNDOFF, Spec, Tolerance
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import Exercise, as_trained, without_loss
from fairlap.models.training.gradients import GradientCheck, GradientExercise
from fairlap.models.training.in_bfloat16 import in_precision, trained_in_precision
from fairlap.models.training.reference import Batch, OwnSlopes, State, state_named
from fairlap.models.workload import Workload
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.request.fields.training import STEPS_OF_AN_ANSWER
from fairlap.request.work import CALIBRATED, Work

SLOPES = "slopes"  # a row for each of the possible ones
IN_TURN = ("inputs", "changed")  # inputs that take turns in the timed calls
UNSEEN = ("unseen-0", "unseen-1", "unseen-2")  # inputs of the drawn calls
_SWAY_OF_OWN = 0.02  # every array of its gradients is compared with the reference, which allows as much at kinks
_ROUNDINGS = 8  # of a number of usual size, that an element may be off by


@dataclass(frozen=True)
class Materials:
    """One piece of work, ready to be handed out."""

    work: Work
    spec: Spec
    package: str
    folder: Path
    notices: tuple[Notice, ...] = ()  # of a user's model: what its checks cannot see
    output_tolerances: Mapping[str, Tolerance] = field(default_factory=dict)  # of a user's model, in this precision
    own_types: tuple[str, ...] = ()  # of few bits, of a user's file
    start_file: Path | None = None  # with the weights that it starts from, or has at every size; not its own
    _after_tokens: dict[bytes, Arrays] = field(default_factory=dict, compare=False, repr=False)
    _training_checks: dict[str, TrainingCheck] = field(default_factory=dict, compare=False, repr=False)
    _gradient_checks: dict[str, GradientCheck] = field(default_factory=dict, compare=False, repr=False)

    @property
    def tells_inputs_apart(self) -> bool:
        """Whether another input is known to have another answer."""
        return all(notice.code != "W_WEAK_PROOF" for notice in self.notices)

    @property
    def weights_file(self) -> Path:
        return self.start_file or weights_file(self.folder)

    def inputs_file(self, which: str) -> Path:
        """Find a file of inputs.

        ``inputs`` and ``changed`` ones take turns in the timed calls; each ``unseen`` one has a single call in a
        process, so an answer that was kept from before is wrong there.
        """
        return inputs_file(self.folder, which)

    @property
    def further_files(self) -> tuple[Path, ...]:
        """Further inputs of callables, which are valid as they were drawn; without reference answers."""
        return tuple(sorted(self.folder.glob(f"{FURTHER}*.safetensors")))

    @property
    def calibration_files(self) -> tuple[Path, ...]:
        """Sets of inputs for the quantization to eight bits; none of another precision.

        Answers are checked on others, unless a user gave one set only.
        """
        if self.work.precision not in CALIBRATED:
            return ()
        return tuple(sorted(self.folder.glob(f"{CALIBRATION}*.safetensors")))

    @cached_property
    def weights(self) -> Arrays:
        return safetensors.read(self.weights_file)

    def workload(self, which: str) -> Workload:
        arrays = dict(safetensors.read(self.inputs_file(which)))
        labels, of_batch, work = arrays.pop(LABELS, None), arrays.pop(BATCH_LABELS, None), self.work
        if MODES[work.mode].batches_have_labels:
            labels = of_batch
        return Workload(
            self.spec, self.package, work.batch, work.mode, work.precision, self.weights, arrays, labels, work.training
        )

    @property
    def has_labels(self) -> bool:
        """Whether its loss compares with any; a function of the user's may go without."""
        if self.spec.loss == "own":
            return LABELS in safetensors.read(self.inputs_file("inputs"))
        return self.spec.loss != "mean_square"

    @property
    def weight_bytes(self) -> int:
        """What a contestant holds of them at least."""
        return bytes_of_weights(self.spec, self.work.precision)

    @cached_property
    def weights_hash(self) -> str:
        """What a contestant must have loaded; in a type of 16 bits, what is left of the weights after rounding."""
        if self.work.precision not in ("bf16", "fp16"):
            return hash_of(self.weights)
        return hash_of({name: rounded_to(self.work.precision, array) for name, array in self.weights.items()})

    @cached_property
    def zero_weights(self) -> float | None:
        """The share of weights that are 0, as pruning leaves them; None for a model without weights."""
        count = sum(array.size for array in self.weights.values())
        zeros = count - sum(int(np.count_nonzero(array)) for array in self.weights.values())
        return zeros / count if count else None

    def reference(self, which: str) -> Arrays:
        """Compute the float64 answer once, and keep it for ever."""
        if self.work.source is not None and MODES[self.work.mode].gives_outputs:
            return safetensors.read(reference_file(self.folder, which))
        side = mode_side(self.work.mode)
        what = f"reference-{self.work.precision}-{which}" if side.refers_by_precision else f"reference-{which}"
        return self._kept(what, lambda: side.reference(self, which))

    def reference_after(self, which: str, tokens: npt.NDArray[Any]) -> Arrays:
        """Compute the float64 logits of every step after these tokens, which a contestant chose and read itself."""
        found, named = self.reference(which), self.spec.continuation
        if self.own_slopes is None or why_no_tokens(tokens, found[self.spec.outputs[0].name]):
            return found
        inputs = self.workload(which).inputs
        read = np.ascontiguousarray(tokens[:, :-1], inputs[named].dtype)
        if np.array_equal(read, inputs[named]):
            return found
        key = which.encode() + read.tobytes()
        if key not in self._after_tokens:  # of many processes alike, and of all calls of one
            given = {**inputs, named: read}
            self._after_tokens[key] = self.own_slopes.outputs(self.weights, given, self.work.batch)
        return self._after_tokens[key]

    def _kept(self, what: str, compute: Callable[[], Mapping[str, Any]]) -> Arrays:
        training, precision = self.work.training, self.work.precision
        how = self.work.mode if training is None else f"{self.work.mode} {training.text}"
        if training is not None and precision != "fp32":
            how = f"{how} {precision}"
        if self.start_file is not None:
            how = f"{how} {self.start_file.stem}"
        code = hash_of_model_code(self.package) if self.work.source is None else hash_of_learning_code()
        file = self.folder / f"{what}-{how}-{code[:16]}.safetensors"
        try:
            return safetensors.read(file)
        except safetensors.BadFile:  # there is none, or not all of it
            arrays = compute()
        safetensors.write(file, {name: np.asarray(value, dtype=np.float64) for name, value in arrays.items()})
        return safetensors.read(file)

    @property
    def own_slopes(self) -> OwnSlopes | None:
        """The gradients of a user's model, which is no code of fairlap's; None for another."""
        return None if self.work.source is None else slopes_of(self.folder)

    def gradient_exercise(self, which: str) -> GradientExercise:
        assert self.own_slopes is not None
        work = self.workload(which)
        return GradientExercise(self.own_slopes, self.weights, Batch(work.inputs, work.labels))

    def gradient_check(self, which: str) -> GradientCheck | None:
        """Of a user's model, array by array; None for another, whose slopes are compared."""
        if self.own_slopes is None:
            return None
        if which not in self._gradient_checks:
            found = as_trained(self.reference(which))
            self._gradient_checks[which] = GradientCheck(self.gradient_exercise(which), found)
        return self._gradient_checks[which]

    def exercise(self, which: str) -> Exercise:
        """Take the steps of an answer in mode "train", from the weights that were given."""
        first = IN_TURN.index(which)
        order = [IN_TURN[(first + number) % len(IN_TURN)] for number in range(STEPS_OF_AN_ANSWER)]
        return self.exercise_on([self._batch(each) for each in order])

    def training_check(self, which: str) -> TrainingCheck:
        """Of an answer; the same one for all contestants, since it keeps what it computes."""
        if which not in self._training_checks:
            found = as_trained(self.reference(which))
            self._training_checks[which] = TrainingCheck(self.exercise(which), found)
        return self._training_checks[which]

    def unseen_mistakes(self) -> list[Notice]:
        """Of training, which rounding to bfloat16 hides; the check of the steps of an answer cannot find them."""
        if self.work.training is None or self.work.precision == "fp32":
            return []
        check = self.training_check("inputs")
        of_ranks = "" if check.exercise.ranks == 1 else f"-{check.exercise.ranks}-ranks"
        hidden = self._kept(f"unseen{of_ranks}", check.unseen_mistakes)
        if not hidden:
            return []
        named = "; ".join(sorted(hidden))
        return [
            Notice(
                "W_TRAINING_UNSEEN",
                f"in {self.work.precision} rounding hides some mistakes, so the check would not find that {named}",
            )
        ]

    def epoch_check(self, block: int, batches: Sequence[Batch]) -> TrainingCheck:
        """Of the first steps of a block on labelled data."""
        key = f"epoch of block {block}"
        if key not in self._training_checks:
            exercise = self.exercise_on(batches)
            self._training_checks[key] = TrainingCheck(exercise, without_loss(trained_in_precision(exercise)))
        return self._training_checks[key]

    def exercise_on(self, batches: Sequence[Batch], before: Arrays | None = None) -> Exercise:
        """Make steps on these batches, from the weights that were given or from the state ``before``."""
        given = State({name: np.asarray(array) for name, array in self.weights.items()})
        forward = self.own_slopes or self.workload("inputs").implementation_of_reference().forward
        assert self.work.training is not None
        start = given if before is None else state_named(before)
        ranks = 1 if self.work.scale is None else self.work.scale.ranks
        exercise = Exercise(self.spec, forward, self.work.training, start, batches, ranks=ranks)
        return in_precision(exercise, self.work.precision)

    def drawn_step(self, which: str, before: Arrays) -> Exercise:
        """One timed step, from the state that it found."""
        return self.exercise_on([self._batch(which)], before)

    def _batch(self, which: str) -> Batch:
        work = self.workload(which)
        return Batch(work.inputs, work.labels)

    def tolerance(self, output: str) -> Tolerance:
        """Choose the tolerance: of a user's model by its own sensitivity, of a built-in one by the spec.

        With few bits, single elements are off by what rounds away from numbers of the output's usual size, even where
        they are near 0.
        """
        if output in self.output_tolerances:
            return self.output_tolerances[output]
        if self.work.precision == "fp8":
            return self._of_fp8[output]
        found, precision = self.spec.tolerance(self.work.precision), self.work.precision
        if precision in ("fp32", "fp64"):
            return found
        return replace(
            found, absolute=max(found.absolute, _ROUNDINGS * UNIT_ROUNDOFF[precision] * self._sizes.get(output, 0.0))
        )

    @cached_property
    def _of_fp8(self) -> dict[str, Tolerance]:
        """Compute them once for a work, and keep the two numbers that they consist of."""

        def computed() -> dict[str, npt.NDArray[np.float64]]:
            works = [self.workload(which) for which in IN_TURN]
            exact = [self.reference(which) for which in IN_TURN]

            def answered(weights: Arrays, inputs: Arrays) -> Arrays:
                return reference_answers(replace(works[0], weights=dict(weights), inputs=inputs))

            found = fp8_tolerances(answered, self.weights, [work.inputs for work in works], exact)
            return {name: np.array([each.absolute, each.norm]) for name, each in found.items()}

        return {name: fp8_tolerance(*map(float, kept)) for name, kept in self._kept("fp8", computed).items()}

    @cached_property
    def _sizes(self) -> dict[str, float]:
        """The usual size of an output's elements."""
        first = self.reference("inputs")
        return {name: float(np.sqrt(np.mean(np.square(array)))) for name, array in first.items() if array.size}

    def usual(self, output: str) -> npt.NDArray[np.float64]:
        """Return the average of the reference's answers to all inputs."""
        return self._usual[output]

    @cached_property
    def _usual(self) -> dict[str, npt.NDArray[np.float64]]:
        answers = [self.reference(which) for which in (*IN_TURN, *UNSEEN)]
        return {name: np.mean([each[name] for each in answers], axis=0) for name in answers[0]}

    @cached_property
    def sway(self) -> float:
        """How far rounding alone may move the slopes of the loss, relative to the slopes."""
        if self.own_slopes is not None:
            return _SWAY_OF_OWN
        possible = self.reference("inputs")[SLOPES]
        return float(np.abs(possible - possible[0]).max() / max(np.sqrt(np.mean(possible[0] ** 2)), 1e-300))
