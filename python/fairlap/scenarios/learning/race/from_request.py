"""What training to a score makes of a request: its data, its epochs and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.models.modes import MODES
from fairlap.models.registry import Model
from fairlap.race.equal_work.material_sources import require_offered
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.works_from_request import modes_asked
from fairlap.race.scenario_side import Offered, RaceSide
from fairlap.request.race_request import MOST_EPOCHS_BY_DEFAULT, RaceOptions, RaceRequest
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.held_out_scores import require_scorable
from fairlap.scenarios.learning.race.kept_weights import require_folder
from fairlap.scenarios.learning.race.learning import require_learnable, require_plan
from fairlap.scenarios.learning.race.learning_data import (
    E_TO_SCORE,
    data_to_learn,
    labelled,
    require_batches,
    require_same_data,
)

_MOST_EPOCHS = 10**6


class LearningFromRequest(RaceSide):
    title = "--to-score"
    mode = "train"
    scores = True

    def is_asked(self, request: RaceRequest) -> bool:
        return request.to_score is not None and not _of_agents(request)

    def require(self, request: RaceRequest) -> None:
        if request.data is not None:
            raise InvalidRequest(
                "--data feeds single steps; the data to learn are those of --train-on", code=E_TO_SCORE
            )
        _most_epochs(request)

    def require_unasked(self, request: RaceRequest) -> None:
        if _of_agents(request):  # which learn to a score by themselves, and refuse what they do not have
            return
        given = {"epochs": request.epochs, "train-on": request.train_on, "fraction": request.fraction}
        given |= {"count-evaluation": request.count_evaluation or None}
        for name, value in given.items():
            if value is not None:
                raise InvalidRequest(f"--{name} is for {self.title}", code=E_TO_SCORE)

    def with_data(self, request: RaceRequest, model: Model, offered: Offered, notify: Callable[[str], None]) -> Offered:
        """With the model in the sizes of the data."""
        for work, spec in offered:
            require_offered(spec, work)
            if work.mode != self.mode:
                raise InvalidRequest(f"{self.title} is for --mode {self.mode}", code=E_TO_SCORE)
            require_batches(work, spec)
        if request.train_on is not None and not request.train_on.strip():
            raise InvalidRequest("--train-on is empty; name a data set or a file", code="E_DATA")
        fraction = 1.0 if request.fraction is None else float(request.fraction)
        data, spec = data_to_learn(model, request.train_on or "", fraction, notify)
        return [(msgspec.structs.replace(work, train_on=data), spec) for work, _ in offered]

    def plan_fields(self, request: RaceRequest, offered: Offered) -> dict[str, Any]:
        assert request.to_score is not None
        for work, spec in offered:
            require_learnable(work, spec)
        metrics = tuple(dict.fromkeys((request.metric,) if isinstance(request.metric, str) else request.metric))
        for work, spec in offered:
            require_scorable(metrics, spec, labelled(work, spec))
        return {
            "to_score": float(request.to_score),
            "most_epochs": _most_epochs(request),
            "metrics": metrics,
            "count_evaluation": request.count_evaluation,
        }

    def require_output(self, options: RaceOptions, contents: Mapping[Path, str], *, asked: bool) -> None:
        require_folder(options.keep_weights, asked=asked)
        for path, content in contents.items():
            if content == "training" and not asked:
                raise InvalidRequest(
                    f"{path} logs training to a score; add --mode {self.mode} {self.title}, or leave it out",
                    code="E_OUTPUT_FORMAT",
                )

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        require_plan(plan, [each for each in works if not MODES[each.work.mode].acts])

    def require_unchanged(self, work: Work) -> None:
        require_same_data(work)


def _of_agents(request: RaceRequest) -> bool:
    return any(MODES[mode].acts for mode in modes_asked(request))


def _most_epochs(request: RaceRequest) -> int:
    if request.epochs is None:
        return MOST_EPOCHS_BY_DEFAULT
    return whole_number("epochs", request.epochs, least=1, most=_MOST_EPOCHS)
