"""One process's solves at several tolerances, each with its error, and its rates proven to be the problem's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.bench_models.initial_value_problems.problem import END, RATES, TOLERANCE, Problem
from fairlap.frameworks.solvers.solver_library import EVALUATIONS, STEPS
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Block, Plan
from fairlap.request.names import ContestantName
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.rotated.race.rotated_calls import RotatedCalls, require_different
from fairlap.scenarios.solving.race.gradients_through import gradient_error, gradient_names
from fairlap.scenarios.solving.scenario import error_asked
from fairlap.scenarios.solving.settings import TOLERANCES, USUAL_TOLERANCES
from fairlap.scenarios.solving.work_precision import AtTolerance, WorkPrecision

WHEN = "at a tolerance"
"""``AnswerError.when`` of the rates that come with a solution at one of the tolerances."""

_ROUNDING = 1e-12  # of rates, relative to the largest of them
_MOST_TIMES_WORSE = 1e3  # other initial values may be harder to solve
_LEAST_ERROR = 1e-9


class SolveRun(RotatedCalls):
    prefix = "solve"

    def __init__(self, plan: Plan, block: Block, materials: Materials, scratch: Path, name: ContestantName) -> None:
        super().__init__(plan, block, materials, scratch, name)
        self._error = error_asked(plan.scenario_settings)
        self._tolerances = TOLERANCES.value_in(plan.scenario_settings) or USUAL_TOLERANCES
        self._inputs = scratch / "solve-inputs.safetensors"
        self._errors: dict[int, float] = {}  # by place; infinite where the solver gave up
        self._counts: dict[int, Mapping[str, float]] = {}
        drawn = random.Random(f"solve {plan.seed} {block.number}")
        places = list(range(len(self._tolerances)))
        drawn.shuffle(places)
        self._begin_order([f"{tolerance:g}" for tolerance in self._tolerances], places, drawn)

    @cached_property
    def _problem(self) -> Problem:
        found: Problem = import_module(f"{self._materials.package}.spec").PROBLEM
        return found

    def inputs_file(self, place: int, which: str) -> Path:
        """Write those of the work, with the tolerance of the place."""
        arrays = dict(safetensors.read(self._materials.inputs_file(which)))
        arrays[TOLERANCE] = np.full_like(arrays[TOLERANCE], self._tolerances[place])
        file = self._inputs.with_stem(f"{self._inputs.stem}-{which}")
        safetensors.write(file, arrays)
        return file

    def where(self, place: int) -> str:
        return f"a tolerance of {self._tolerances[place]:g}"

    def hold_seen(self, place: int, by_set: Mapping[str, Arrays], result: ProcessResult) -> None:
        for which, got in by_set.items():
            self._require_rates(got, which, result, f"a call at {self.where(place)}")
        squares = [self._error_of(got, which) ** 2 for which, got in by_set.items()]
        self._errors[place] = float(np.sqrt(np.mean(squares)))
        if np.isfinite(self._errors[place]):
            require_different({which: {END: got[END]} for which, got in by_set.items()}, self.where(place))
        self._counts[place] = {
            name: float(np.mean([got[name] for got in by_set.values()]))
            for name in (STEPS, EVALUATIONS)
            if all(name in got for got in by_set.values())
        }

    def hold_drawn(self, place: int, which: str, got: Arrays, result: ProcessResult, where: str) -> None:
        self._require_rates(got, which, result, where)
        allowed = max(_MOST_TIMES_WORSE * self._errors[place], _LEAST_ERROR)
        found = self._error_of(got, which)
        if found > allowed:
            raise OtherWork(
                f"{where} is off by {found:.1e}, and others at this tolerance by {self._errors[place]:.1e}", "E_OUTPUT"
            )

    def record(self, result: ProcessResult) -> None:
        result.work_precision = WorkPrecision(self._error, tuple(map(self._at, range(len(self._tolerances)))))

    def _at(self, place: int) -> AtTolerance:
        error = self._errors.get(place, np.inf)
        counts = self._counts.get(place, {})
        return AtTolerance(
            self._tolerances[place],
            error if np.isfinite(error) else None,
            self._median_ns(place),
            len(self._times_ns[place]),
            counts.get(STEPS),
            counts.get(EVALUATIONS),
        )

    def _error_of(self, got: Arrays, which: str) -> float:
        reference = self._materials.reference(which)
        at_end = error_at_end(self._problem, _array(got, END), reference[END])
        return max(at_end, gradient_error(got, reference)) if gradient_names(reference) else at_end

    def _require_rates(self, got: Arrays, which: str, result: ProcessResult, where: str) -> None:
        """Require that it solves the same equations: their rates at a drawn state, to rounding."""
        expected = self._materials.reference(which)[RATES]
        allowed = Tolerance(cosine=-1.0, absolute=_ROUNDING * float(np.abs(expected).max()), relative=_ROUNDING)
        error = answers.answer_error(RATES, WHEN, _array(got, RATES), expected, allowed)
        result.errors.append(error)
        answers.require_right_on(self._materials, got, which, [error], result.in_force, where)


def error_at_end(problem: Problem, end: npt.NDArray[Any], expected: npt.NDArray[Any]) -> float:
    """Take the root of the mean square, over items and components, in units of the components' sizes."""
    if end.shape != expected.shape:
        raise OtherWork(f"{END} has the shape {list(end.shape)}, not {list(expected.shape)}", "E_OUTPUT")
    if not np.isfinite(end).all():
        return float("inf")
    return float(np.sqrt(np.mean(np.square((end - expected) / problem.flat_sizes))))


def _array(got: Arrays, name: str) -> npt.NDArray[Any]:
    if name not in got:
        raise OtherWork(f"its answer lacks {name}", "E_OUTPUT")
    return got[name]
