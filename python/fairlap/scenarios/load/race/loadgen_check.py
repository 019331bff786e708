"""LoadGen on one process: in the scenario that was asked for, or in its server scenario below the largest rate."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from fairlap.launch.worker_process import WorkerProcess
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN, Materials
from fairlap.race.processes.after_turns import OneProcess
from fairlap.request.fields.load import Load, Scenario
from fairlap.scenarios.load.contestant_issue import output_shapes
from fairlap.scenarios.load.early_stopping import fewest_queries
from fairlap.scenarios.load.loadgen_logs import answers_in
from fairlap.scenarios.load.loadgen_messages import LoadGenResult, LoadGenRun
from fairlap.scenarios.process_result import AnswerError

WHEN = "LoadGen's accuracy run"
WHEN_TIMED = "LoadGen's timed run"
ACCURACY = "accuracy"  # a folder beside the logs of the timed run, whose figure counts
_LOGGED_ANSWERS = 8  # reading them delays what the same thread serves next
SHARE_OF_RATE = 0.9  # LoadGen's rule for short runs, at 99 % confidence, does not accept the largest rate itself
_LATE_QUERIES = 2  # with so many, the run is still accepted
_LONGEST_S = 30.0


class LoadGenCheck:
    """The logs of the timed run stay in ``folder``, and those of the accuracy run in one within it."""

    def __init__(self, load: Load, materials: Materials, folder: Path, seed: int, limit_s: float) -> None:
        self._load, self._materials, self._folder = load, materials, folder
        self._seed, self._limit_s = seed, limit_s

    def why_not_below(self, rate_per_s: float | None, *, here: bool) -> str:
        """Explain why the server scenario cannot be run below this rate; empty when it can.

        ``here`` is whether the contestant runs in this environment.
        """
        if rate_per_s is None:
            return "no rate meets the bound"
        if self._materials.work.batch != 1:
            return "LoadGen asks about single items"
        if not here:
            return "the contestant runs in a separate environment, without LoadGen"
        if find_spec("mlperf_loadgen") is None:
            return "mlcommons-loadgen is not installed: pip install 'fairlap[load]'"
        queries = fewest_queries(self._load.percentile, _LATE_QUERIES)
        if queries / (SHARE_OF_RATE * rate_per_s) > _LONGEST_S:
            return f"its {queries} queries take longer than {_LONGEST_S:g} s at this rate"
        return ""

    def below(self, worker: WorkerProcess, rate_per_s: float) -> LoadGenResult:
        """LoadGen judges first tokens where only they have a bound, else whole answers."""
        return self._run(
            worker, "server", self._folder, rate_per_s=SHARE_OF_RATE * rate_per_s, bound_s=self._load.bound_s
        )

    def in_scenario(self, process: OneProcess, scenario: Scenario) -> LoadGenResult:
        return self._run(process, scenario, self._folder)

    def accuracy(self, worker: WorkerProcess, in_force: Mapping[str, str]) -> list[AnswerError]:
        """Every item once, in the scenario offline; raises OtherWork for a wrong answer."""
        folder = self._folder / ACCURACY
        self._run(worker, "offline", folder, accuracy=True)
        return self._errors(folder, WHEN, in_force)

    def while_timed(self, in_force: Mapping[str, str]) -> list[AnswerError]:
        """Look at the answers of the timed run that LoadGen drew; raises OtherWork for a wrong one."""
        return self._errors(self._folder, WHEN_TIMED, in_force)

    def _errors(self, folder: Path, when: str, in_force: Mapping[str, str]) -> list[AnswerError]:
        """Return the largest."""
        found: list[AnswerError] = []
        for each in answers_in(folder, output_shapes(self._materials.spec)):
            which = (*IN_TURN, *UNSEEN)[each.item]
            errors = answers.array_errors(self._materials, each.outputs, which, when)
            where = f"item {each.item} of {when}"
            answers.require_right_on(self._materials, each.outputs, which, errors, in_force, where)
            found += errors
        return [max(found, key=lambda error: error.distance)] if found else []

    def _run(
        self,
        asked: WorkerProcess | OneProcess,
        scenario: Scenario,
        folder: Path,
        *,
        accuracy: bool = False,
        rate_per_s: float | None = None,
        bound_s: float | None = None,
    ) -> LoadGenResult:
        folder.mkdir(parents=True, exist_ok=True)
        load = self._load
        run = LoadGenRun(
            scenario,
            str(folder),
            accuracy=accuracy,
            logged_answers=0 if accuracy else _LOGGED_ANSWERS,
            least_s=load.trial_s,
            rate_per_s=rate_per_s,
            bound_s=bound_s,
            first_token_s=load.first_token_s,
            percentile=load.percentile,
            seed=self._seed,
            workers=load.workers,
            largest_batch=load.largest_batch,
            longest_wait_s=load.longest_wait_s,
        )
        return asked.ask(run, within_s=self._limit_s)
