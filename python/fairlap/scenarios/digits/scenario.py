"""The scenario of digits: contestants are ranked by the time of a call, if they keep enough digits.

An answer may be wrong by design here, so it is measured and never disqualified. A contestant that keeps fewer digits
than are needed is shown with its time and its error, and is not ranked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from fairlap.models.checks.kept_digits import digits
from fairlap.models.operations.hard import PREFIX, is_hard
from fairlap.models.operations.kinds import operation_named
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure, Picture
from fairlap.scenarios.calls.calls_scenario import TIME_OF_A_CALL, Calls
from fairlap.scenarios.contract import Asked, Processes, Ruling, Unqualified
from fairlap.scenarios.digits.settings import DIGITS, SETTINGS
from fairlap.scenarios.process_result import ProcessResult

FEW_DIGITS = "E_FEW_DIGITS"
_LEAST = 1.0  # with fewer than one digit, a time is that of a wrong answer
_SHARE = 1 / 2


@cache
def is_of_digits(model: str) -> bool:
    return model.startswith(PREFIX) and is_hard(operation_named(model))


def kept(process: ProcessResult) -> float | None:
    """Read the digits of its worst answer, those of drawn timed calls included."""
    if process.digits is None or not process.errors:
        return None
    return digits(max(error.distance for error in process.errors), process.digits.roundoff)


def possible(process: ProcessResult) -> float | None:
    found = process.digits
    return None if found is None else digits(found.smallest_error, found.roundoff)


def _other_kinds(process: ProcessResult) -> float | None:
    found = process.digits
    return None if found is None or not found.elements else found.other_kinds / found.elements


def needed_digits(settings: Mapping[str, str], processes: Processes) -> float:
    """Those asked for; otherwise half of what is possible in the best precision of the work, and one at least.

    It is the same for all contestants of a work, also where they have several precisions.
    """
    asked = DIGITS.value_in(settings)
    if asked is not None:
        return asked
    found = [most for own in processes.values() for process in own if (most := possible(process)) is not None]
    return max(_LEAST, _SHARE * max(found, default=0.0))


def _points(process: ProcessResult) -> Iterator[dict[str, float | str]]:
    own, most = kept(process), possible(process)
    if own is not None and most is not None and process.timings:
        yield {"kept": own, "possible": most, "ms": process.headline_ns / 1e6}


def _spec() -> dict[str, Any]:
    work = {"field": "work", "type": "nominal", "title": None, "axis": {"labelLimit": 300}}
    number = {"type": "quantitative", "title": "digits"}
    return {
        "layer": [
            {
                "mark": {"type": "tick", "thickness": 2, "color": "gray"},
                "encoding": {"x": {**number, "field": "possible", "aggregate": "max"}, "y": work},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {
                    "x": {**number, "field": "kept", "aggregate": "min"},
                    "y": work,
                    "color": {"field": "contestant", "type": "nominal"},
                },
            },
        ]
    }


_KEPT = Picture(
    "digits",
    "Digits kept",
    "Each mark is the worst answer of a contestant. The grey tick is what rounding the inputs alone leaves.",
    _points,
    _spec,
    over_works=True,
)


class Digits(Calls):
    after_turns = "fairlap.scenarios.digits.race.digits_run:DigitsRun"
    race_side = "fairlap.scenarios.digits.race.from_request:DigitsFromRequest"
    results_side = "fairlap.scenarios.digits.results.columns:DigitsColumns"
    render_side = "fairlap.scenarios.digits.render.shown:DigitsShown"
    settings = SETTINGS
    figures = (
        AddedFigure("digits_kept", kept, "no answer was measured"),
        AddedFigure("digits_possible", possible, "no answer was measured"),
        AddedFigure("wrong_special_values_share", _other_kinds, "no answer was measured"),
    )
    pictures = (_KEPT,)
    judged_before = ()  # rows of digits have always said by what they were ranked

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.source is None and work.mode == "infer" and is_of_digits(work.model)

    def may_share_process(self, work: Work) -> bool:
        return True

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        needed = needed_digits(asked.scenario_settings, processes)
        given = DIGITS.value_in(asked.scenario_settings) is not None
        by = f"{TIME_OF_A_CALL} that keeps " + (f"{needed:g} digits" if given else "half of the possible digits")
        found = super().judge(asked, work, processes, ranked)
        short = {name: why for name, own in processes.items() if (why := _why_short(own, needed)) is not None}
        judged = replace(found.judged, by=by, is_named=True) if found.judged.by == TIME_OF_A_CALL else found.judged
        return Ruling(judged, short, remark=f"ranked with {needed:.1f} digits or more")


def _why_short(processes: Sequence[ProcessResult], needed: float) -> Unqualified | None:
    finished = [process for process in processes if process.finished]
    found = [own for process in finished if (own := kept(process)) is not None]
    most = max((each for process in finished if (each := possible(process)) is not None), default=0.0)
    if not found or min(found) >= needed:
        return None
    wrong = max((process.digits.other_kinds for process in finished if process.digits is not None), default=0)
    special = f"; {wrong} elements are NaN, infinite or finite where they should not be" if wrong else ""
    return Unqualified(
        f"keeps {min(found):.1f} digits of the {most:.1f} that the problem leaves; {needed:.1f} are needed{special}",
        FEW_DIGITS,
    )
