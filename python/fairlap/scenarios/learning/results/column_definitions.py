"""The columns of training to a score."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fairlap.results.column_definitions.about import Gauge, ScenarioColumns, about
from fairlap.results.column_definitions.estimate import Estimate

_learning = partial(about, group="learning")


class LearningRow(ScenarioColumns, frozen=True, kw_only=True):
    target_score: Annotated[
        float | None,
        _learning(
            "The score to be reached: the share of held-out items answered rightly; of values R squared.", unit="share"
        ),
    ]
    time_to_score_s: Annotated[
        Estimate | None,
        _learning(
            "Time in steps, and in evaluation that counts, until it was reached; the median over processes.",
            gauge=Gauge("time_to_score", "seconds", "Time of training until the score."),
            across="",
        ),
    ]
    evaluation_to_score_s: Annotated[
        Estimate | None,
        _learning("Part of time_to_score_s in which it answered held-out items, where evaluation counts."),
    ]
    energy_to_score_j: Annotated[
        Estimate | None,
        _learning("Energy in time_to_score_s, by all sensors; idle power included.", across="energy to score"),
    ]
    steps_to_score: Annotated[float | None, _learning("Steps until it was reached, the median.")]
    scored_every_epochs: Annotated[
        float | None,
        _learning(
            "Epochs from one score to the next: above 1 where scoring each would take longer than training. Of those "
            "in between, the first that reached the score is found by bisecting."
        ),
    ]
    step_in_epochs_ns: Annotated[
        Estimate | None,
        _learning("Time of a step in the epochs, the mean over all of them; the median over processes."),
    ]
    reached_share: Annotated[float | None, _learning("Share of processes that reached it.")]
    best_score: Annotated[float | None, _learning("The best score that any process reached.", unit="share")]
    cost_to_score: Annotated[
        Estimate | None,
        _learning("Money for time_to_score_s, at the given price.", is_money=True, across="cost to score"),
    ]
