"""The race side of scenarios: what each makes of a request, and what it requires before processes run.

A scenario names its own in ``Scenario.race_side``. One without is asked for nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, final

from fairlap.errors import InvalidRequest
from fairlap.models.registry import Model
from fairlap.models.spec import Spec
from fairlap.plugins import object_at
from fairlap.race.equal_work.materials import Materials
from fairlap.race.planning.plan import DATA_SEEDS, Plan
from fairlap.request.fields.source import Source
from fairlap.request.names import ContestantName
from fairlap.request.race_request import RaceOptions, RaceRequest
from fairlap.request.work import Mode, Precision, Work
from fairlap.scenarios.contract import Scenario, scenarios
from fairlap.worker.protocol import Prepare

Offered = Sequence[tuple[Work, Spec]]


OF_MODELS_ALONE = (  # fields of a request that mean nothing where no model is called
    *("load", "data", "generate", "shapes", "shapes_from", "dims", "inputs", "items", "before", "after", "ranges"),
    *("reference", "metric", "labels", "loss", "optimizer", "schedule", "start_from", "train_on"),
    *("recompile", "processes", "hosts", "across_precisions", "max_drop"),
)


class RaceSide:
    """Of one scenario. Where a request asks for several of them, all are heard."""

    title: ClassVar[str] = ""  # in messages: an option, or words
    mode: ClassVar[Mode] = "infer"  # of its calls
    precision: ClassVar[Precision] = "fp32"  # of its calls, where none is asked for
    batch: ClassVar[int | None] = None  # the usual one; the model's own by default
    scores: ClassVar[bool] = False  # whether it computes metrics of built-in models
    is_for_choices: ClassVar[bool] = False  # whether `fairlap choose` takes its times
    refuses: ClassVar[tuple[str, ...]] = ()  # fields of a request that mean nothing where it is asked for
    does: ClassVar[str] = ""  # in the message about them: "steps built-in environments"
    is_for_cpu: ClassVar[bool] = False
    code: ClassVar[str] = InvalidRequest.code  # of these refusals

    def is_asked(self, request: RaceRequest) -> bool:
        return False

    def require(self, request: RaceRequest) -> None:
        """Refuse what is wrong with the request before models and data are read, which may take long."""

    @final
    def require_no_others(self, request: RaceRequest) -> None:
        """Refuse options that mean nothing where it is asked for."""
        for field in self.refuses:
            if getattr(request, field):
                option = "fairlap load" if field == "load" else f"--{field.replace('_', '-')}"
                raise InvalidRequest(f"{self.title} {self.does}; leave out {option}", code=self.code)
        if self.is_for_cpu and str(request.device) != "cpu":
            raise InvalidRequest(f"{self.title} is for the CPU; leave out --device", code=self.code)

    def require_unasked(self, request: RaceRequest) -> None:
        """Refuse options that are for this scenario in a request that does not ask for it."""

    def with_source(self, request: RaceRequest, source: Source) -> Source:
        """Add to a model of the user's what is asked of it, before it is opened."""
        return source

    def with_data(self, request: RaceRequest, model: Model, offered: Offered, notify: Callable[[str], None]) -> Offered:
        """Add the data that works of a model need; a built-in model may take other sizes from them."""
        return offered

    def with_settings(self, request: RaceRequest, work: Work, spec: Spec, notify: Callable[[str], None]) -> Work:
        """Add to a work what is asked of it."""
        return work

    def plan_fields(self, request: RaceRequest, offered: Offered) -> dict[str, Any]:
        """Check the works, and give the fields of the plan that are its own."""
        return {}

    def require_output(self, options: RaceOptions, contents: Mapping[Path, str], *, asked: bool) -> None:
        """Refuse files and folders that it could not fill. ``contents`` are those of the files' formats."""

    def require_plan(self, plan: Plan, works: Sequence[Materials]) -> None:
        """Check its own fields again, since a plan that was saved may have been edited."""

    def prepared_with(self, request: Prepare, plan: Plan, materials: Materials, name: ContestantName) -> Prepare:
        """Add to what a contestant is asked to prepare."""
        return request

    def require_unchanged(self, work: Work) -> None:
        """Refuse data that are no longer those that the plan was made from."""

    def readable(self, work: Work) -> Sequence[Path]:
        """List what a contestant in a sandbox may read for it, besides its model."""
        return ()


def race_side_of(scenario: Scenario) -> RaceSide:
    place = scenario.race_side
    return object_at(place, RaceSide, "the race side of a scenario") if place else RaceSide()


def race_sides() -> tuple[RaceSide, ...]:
    """Of all scenarios."""
    return tuple(map(race_side_of, scenarios()))


def sides_asked(asked: RaceRequest | Plan) -> tuple[RaceSide, ...]:
    if isinstance(asked, Plan):
        return tuple(map(race_side_of, asked.scenarios))
    return tuple(each for each in race_sides() if each.is_asked(asked))


def sides_not_asked(asked: RaceRequest | Plan) -> tuple[RaceSide, ...]:
    found = sides_asked(asked)
    return tuple(each for each in race_sides() if each not in found)


def mode_asked(request: RaceRequest) -> Mode:
    """Give the mode of what the request asks for, where it leaves that open."""
    return next((each.mode for each in sides_asked(request)), RaceSide.mode)


def precision_asked(request: RaceRequest) -> Precision:
    """Give the precision of what the request asks for, where it leaves that open."""
    return next((each.precision for each in sides_asked(request)), RaceSide.precision)


def data_seeds_of(request: RaceRequest) -> tuple[int, ...]:
    """Give the usual seeds of what the request asks for."""
    asked = (each.data_seeds for each in scenarios() if race_side_of(each).is_asked(request))
    return next(asked, DATA_SEEDS)
