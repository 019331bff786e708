"""Scaling, which any scenario may be raced under, and what scenarios add: their columns, and their figures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fairlap.plugins import class_at
from fairlap.results.column_definitions.about import ScenarioColumns, about, with_columns
from fairlap.results.column_definitions.answers import Answers
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.contract import built_in_scenarios

_scaling = partial(about, group="scaling")
_scenario = partial(about, group="scenario")


if TYPE_CHECKING:

    class _OfScenarios(Answers, frozen=True, kw_only=True):
        def __getattr__(self, name: str) -> Any: ...  # their names are known to their folders alone

else:
    _places = [each.columns for each in reversed(built_in_scenarios()) if each.columns]
    _OfScenarios = with_columns(Answers, [class_at(each, ScenarioColumns, "the columns") for each in _places])


class Scenarios(_OfScenarios, frozen=True, kw_only=True):
    speed_up: Annotated[
        Estimate | None,
        _scaling(
            "How many times the items per second of the same contestant at the smallest scale.",
            unit="times the smallest scale",
        ),
    ]
    speed_up_verdict: Annotated[
        str | None, _scaling("Against the smallest scale: faster, slower, equivalent or inconclusive.")
    ]
    efficiency: Annotated[
        Estimate | None,
        _scaling(
            "Its speed-up over a linear one: by how many more threads times ranks it has.", unit="share of linear"
        ),
    ]
    efficiency_verdict: Annotated[str | None, _scaling("Against linear: slower, equivalent, faster or inconclusive.")]
    exchange_ns: Annotated[
        Estimate | None,
        _scaling("What exchanging between ranks adds to a step: it, less that of the slowest rank alone."),
    ]
    exchange_share: Annotated[Estimate | None, _scaling("How much of a step that is.")]
    straggler: Annotated[
        str | None, _scaling("A rank that the others wait for: 10 % slower alone, by an interval above 0.")
    ]
    slowest_rank_excess: Annotated[
        Estimate | None, _scaling("How much longer the slowest rank takes alone than the others, as a share of them.")
    ]
    largest_rank_memory_bytes: Annotated[Estimate | None, _scaling("The most that any one of its ranks held at once.")]
    energy_per_item_and_rank_j: Annotated[
        Estimate | None, _scaling("Energy for one item, as the machine's sensors saw it, over the number of ranks.")
    ]

    scenario_figures: Annotated[
        dict[str, Estimate],
        _scenario("Figures that a scenario of an installed package adds; a unit is the end of a name."),
    ]
    scenario_absent: Annotated[dict[str, str], _scenario("Such figures that are absent, and why.")]
