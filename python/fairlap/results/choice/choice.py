"""The document of ``fairlap choose``: candidates, what is shown between them, the front and the recommendation."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairlap.models.task_metrics import Score
from fairlap.printed_document import PrintedDocument
from fairlap.request.work import Objective
from fairlap.results.choice.front import Outcome
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.requirements import Status

Front = Literal["on the front", "may be on it", "dominated", "not compared"]
Reason = Literal["recommended", "trade_off", "not_separated", "none_qualifies", "requirements_unknown"]

EXIT_STATUSES: dict[Reason, int] = {
    "recommended": 0,
    "none_qualifies": 1,
    "trade_off": 3,
    "not_separated": 3,
    "requirements_unknown": 3,
}
"""2 is an error, as of every command."""


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One model in one contestant. A figure that is absent is null, and ``absent`` has the reason."""

    name: str
    model: str
    contestant: str
    batch: int
    outcome: str
    message: Annotated[str, _about("What went wrong, where something did.")]
    code: str
    score: Annotated[Score | None, _about("On all items, with its interval over items.")]
    time_per_item_ns: Annotated[Estimate | None, _about("The median call, by item, with its interval over processes.")]
    peak_memory_bytes: Estimate | None
    energy_per_item_j: Estimate | None
    cost_per_1000_items: Estimate | None
    currency: str | None
    file_bytes: Annotated[int | None, _about("Of the model's files, as they were given; null for a function.")]
    absent: dict[str, str]
    qualifies: Annotated[Status, _about("Whether it meets every requirement, by its whole interval.")]
    reasons: Annotated[dict[str, str], _about("By requirement, why it is not met or unknown.")]
    front: Annotated[Front, _about("Of score and time, by what is shown.")]
    dominated_by: Annotated[list[str], _about("Shown to be better in one of the two and no worse in the other.")]
    may_be_dominated_by: list[str]


class ScoreDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Candidate a against b over the same items; all pairs share one error rate of 5 %."""

    a: str
    b: str
    difference: Annotated[float, _about("a's score minus b's.")]
    low: float
    high: float
    level: Annotated[float, _about("The chance that the interval misses the truth.")]
    p_adjusted: Annotated[float, _about("By Holm over all pairs.")]
    outcome: Annotated[Outcome, _about("Of a against b.")]
    margin: Annotated[float, _about("Differences within it count as equivalent.")]
    equivalence_low: Annotated[float, _about("Of the interval that lies within the margin where they are equivalent.")]
    equivalence_high: float
    detectable: Annotated[float, _about("The smallest difference that was detectable at 80 % power.")]
    method: str
    items_differing: Annotated[int, _about("Items about which the metric's numbers of the two differ.")]
    only_a_right: Annotated[int | None, _about("Items about which a alone is right; null for other metrics.")]
    only_b_right: int | None


class TimeRatio(msgspec.Struct, frozen=True, kw_only=True):
    """Candidate a against b within rounds; all pairs share one error rate of 5 %."""

    a: str
    b: str
    ratio: Annotated[float, _about("a's time of an item divided by b's.")]
    low: Annotated[float | None, _about("Null where too few rounds ran to bound it.")]
    high: float | None
    level: float
    p_adjusted: float
    outcome: Annotated[Literal["faster", "slower", "equivalent", "inconclusive"], _about("Of a against b.")]
    margin: float
    detectable: Annotated[float | None, _about("The smallest difference, as a share, detectable at 80 % power.")]
    rounds: int


class Choice(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.choice/1"):
    """What ``fairlap.choose`` returns."""

    metric: str
    better: Literal["higher", "lower"]
    items: int
    items_disagreeing: Annotated[int, _about("Items about which the metric's numbers of some candidates differ.")]
    candidates: list[Candidate]
    scores: list[ScoreDifference]
    times: list[TimeRatio]
    no_score_verdict: Annotated[str, _about("Why pairs of scores are missing.")] = ""
    no_time_verdict: Annotated[
        str, _about("Why no difference in time can be shown; there may be ratios all the same.")
    ] = ""
    no_time_code: str = ""
    requirements: tuple[str, ...] = ()
    minimise: Objective | None = None
    recommended: Annotated[tuple[str, ...], _about("One candidate; several where these cannot be separated.")] = ()
    reason: Reason
    message: Annotated[str, _about("The reason in words.")]
    exit_status: Annotated[int, _about("0 a recommendation, 1 no candidate qualifies, 3 undecided, 130 after Ctrl-C.")]
    interrupted: Annotated[bool, _about("Ctrl-C ended the race; the answer is that of the rounds before.")] = False
    blocks: Annotated[int, _about("Rounds in which every model raced.")] = 0
    seconds: float = 0.0
