"""Figures of a server beyond its capacity, and beside clients that read slowly or hang up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.scenarios.added import AddedFigure
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.streams.streams_found import ManneredFound, OverloadFound

W_NOT_RECOVERED = "W_NOT_RECOVERED"
_NO_MANNERS = "no such --slow-clients or --abort was given"
_NO_OVERLOAD = "no --overload was given"
_LEAST_RECOVERY_NS = 1e3

Read = Callable[[ProcessResult], float | None]


def _overload_of(process: ProcessResult) -> OverloadFound | None:
    return None if process.streams is None else process.streams.overload


def _beyond(read: Callable[[OverloadFound], float | None]) -> Read:
    def value(process: ProcessResult) -> float | None:
        found = _overload_of(process)
        return None if found is None else read(found)

    return value


def _mannered(read: Callable[[ManneredFound], float | None]) -> Read:
    def value(process: ProcessResult) -> float | None:
        found = None if process.streams is None else process.streams.manners
        return None if found is None else read(found)

    return value


def _others_ratio(found: ManneredFound) -> float | None:
    both = (found.others_p50_ns, found.alone_p50_ns)
    return None if both[0] is None or both[1] is None else both[0] / both[1]


def _slow_answered(found: ManneredFound) -> float | None:
    return found.slow_answered / found.slow if found.slow else None


def _hung_up(found: ManneredFound) -> float | None:
    return found.hung_up / found.aborting if found.aborting else None


served_beyond_per_s = _beyond(lambda found: found.served_per_s or None)
_recovery_s = _beyond(lambda found: found.recovery_s)


def recovery_ns(process: ProcessResult) -> float | None:
    """Compare with a resolution of a microsecond: a server that was never beyond its capacity needs no time."""
    found = _recovery_s(process)
    return None if found is None else max(1e9 * found, _LEAST_RECOVERY_NS)


def recovery_notices(processes: Sequence[ProcessResult]) -> list[Notice]:
    """Warn where a server had not recovered while it was watched."""
    found = [each for process in processes if (each := _overload_of(process)) is not None]
    without = [each.watched_s for each in found if each.recovery_s is None]
    if not without:
        return []
    of_all = f"in {len(without)} of {quantity_text.count(len(found), 'block')}"
    text = f"{of_all} its latency was not back {quantity_text.seconds(max(without))} after the overload"
    return [Notice(W_NOT_RECOVERED, text)]


STRESS_FIGURES = (
    AddedFigure("overload_answers_per_s", _beyond(lambda found: found.answered_per_s), _NO_OVERLOAD),
    AddedFigure("overload_served_per_s", _beyond(lambda found: found.served_per_s), _NO_OVERLOAD),
    AddedFigure("overload_answer_p50_ns", _beyond(lambda found: found.answer_p50_ns), _NO_OVERLOAD),
    AddedFigure("overload_first_token_p50_ns", _beyond(lambda found: found.first_token_p50_ns), _NO_OVERLOAD),
    AddedFigure("overload_failed_share", _beyond(lambda found: found.failed_share), _NO_OVERLOAD),
    AddedFigure("recovery_s", _recovery_s, f"{_NO_OVERLOAD}, or it had not recovered; watch it for longer"),
    AddedFigure("others_latency_ratio", _mannered(_others_ratio), _NO_MANNERS),
    AddedFigure("slow_answer_p50_ns", _mannered(lambda found: found.slow_p50_ns), _NO_MANNERS),
    AddedFigure("slow_answered_share", _mannered(_slow_answered), _NO_MANNERS),
    AddedFigure("hung_up_share", _mannered(_hung_up), _NO_MANNERS),
    AddedFigure(
        "work_after_hang_up_share",
        _mannered(lambda found: found.work_after_hang_up_share),
        f"{_NO_MANNERS}, or answers are too short to show it",
    ),
)
