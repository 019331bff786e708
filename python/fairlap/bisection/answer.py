"""What a search has shown, as its document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

import numpy as np

from fairlap import quantity_text
from fairlap.bisection.bisect_request import BisectRequest
from fairlap.bisection.bisection import (
    EXIT_STATUSES,
    AnotherStep,
    Bisection,
    ChangedPackage,
    CommitOf,
    Outcome,
    Ratio,
    TriedCommit,
)
from fairlap.bisection.points.history import History
from fairlap.bisection.posterior import posterior_of
from fairlap.bisection.races import Raced
from fairlap.bisection.readings import Level, centre_of, levels_of
from fairlap.bisection.saved_search import SavedSearch
from fairlap.bisection.search import Ended, Search
from fairlap.frameworks.registry import framework_named
from fairlap.judgement.judge_request import SearchedQuantity
from fairlap.machine.software import package_of
from fairlap.request.names import contestant_named

# The commands that name what became slower between the release that was found and the one before it.
_BEFORE, _AFTER = "before.json", "after.json"


def commands_across(request: BisectRequest, history: History, before: str, after: str) -> tuple[str, ...]:
    """Profile both versions, and compare the runs; none where the releases are not those of a framework in an index."""
    if history.noun != "release" or history.content or not request.model.model:
        return ()
    on = contestant_named(request.model.on)
    packages = framework_named(on.framework).packages
    if not packages or package_of(packages[0]) != package_of(history.of):
        return ()
    further = on.text.removeprefix(on.framework + on.version)
    profiled = [
        _compare(request, f"{on.framework}=={version}{further}", file)
        for version, file in ((before, _BEFORE), (after, _AFTER))
    ]
    return (*profiled, f"fairlap diff {_BEFORE} {_AFTER}")


def _compare(request: BisectRequest, contestant: str, file: str) -> str:
    asked = request.model
    words = ["fairlap", "compare", asked.model, "--on", contestant]
    usual = {"mode": "infer", "precision": "fp32"}
    named = {
        "batch": asked.batch,
        "mode": asked.mode,
        "precision": asked.precision,
        "dims": asked.dims,
        "inputs": request.benchmark.inputs,
        "threads": request.threads,
    }
    for option, value in named.items():
        words += [f"--{option}", str(value)] if value and value != usual.get(option) else []
    words += [word for each in asked.shapes for word in ("--shapes", each)]
    words += ["--trust"] if asked.trust else []
    return shlex.join([*words, "--blocks", "12", "--profile", "-o", file])


_DEVIATIONS = 1.96
_DEVIATIONS_OF_ANOTHER = 2.58
"""The look for another step errs in one of a hundred."""
_MOST_SUSPECTS = 20
_WORSE: dict[SearchedQuantity, str] = {
    "wall": "slower",
    "cpu_time": "worse in CPU time",
    "memory_peak": "larger in memory",
    "time_to_first": "slower to its first answer",
    "compile_time": "slower to compile",
}


def answer_of(
    request: BisectRequest,
    history: History,
    saved: SavedSearch,
    *,
    search: Search | None = None,
    ended: Ended | None = None,
    why: str = "",
    step: Raced | None = None,
    ends: Raced | None = None,
    changed: tuple[ChangedPackage, ...] = (),
) -> Bisection:
    """Put it together.

    ``ends`` is the race of both ends where no step is shown, and nothing was searched; ``changed`` is what differs
    across the step.
    """
    points = history.points
    found: dict[str, object] = {
        "quantity": request.quantity,
        "package": history.of if history.noun == "release" else "",
        "good": commit_of(history, 0),
        "bad": commit_of(history, history.last),
        "commits": history.last,
        "sure": float(request.sure),
        "blocks": saved.blocks,
        "races": len(saved.readings),
        "seconds": saved.race_s,
    }
    worse = _WORSE[request.quantity] if request.member is None or request.member.is_timed else "worse"
    if search is None:
        assert ends is not None
        return _without_step(ends, worse, found)
    suspects, probability = search.likeliest(saved.readings, saved.skipped)
    suspects = ended.suspects if ended is not None else suspects
    found |= {
        "ends": _ratio_of(levels_of(saved.readings).by_position[history.last]),
        "probability": ended.probability if ended is not None else probability,
        "suspects": tuple(commit_of(history, place) for place in suspects[:_MOST_SUSPECTS]),
        "tried": _tried(history, saved, search),
    }
    if step is None or ended is None or ended.reason != "sure":
        return _undecided(history, suspects, why or _WHY_ENDED[ended.reason if ended else "sure"], found)
    found["step"] = step.ratio
    found["changed"] = changed
    found["another_step"] = _another_step(history, saved, suspects, step)
    if not step.is_worse:
        return _undecided(history, suspects, _why_not_confirmed(history, suspects, step), found)
    if len(suspects) > 1:
        span = f"{points[suspects[0]].name} to {points[suspects[-1]].name}"
        message = f"one of {len(suspects)} {history.noun}s, {span}, made it {worse}; only the last of them can be raced"
        return _document("several_suspects", message, found)
    found["commit"] = commit_of(history, suspects[0])
    found["next"] = commands_across(request, history, *(points[place].id for place in (suspects[0] - 1, suspects[0])))
    return _document("found", f"{points[suspects[0]].name} made it {worse}", found)


_WHY_ENDED = {
    "sure": "the race of the step compared nothing",
    "nothing_to_learn": "further races would add almost nothing, since two copies of the same code differ as much",
    "races_spent": "all races are spent, and the same command goes on with more --races",
}


def commit_of(history: History, place: int) -> CommitOf:
    point = history.points[place]
    if history.noun == "release":
        return CommitOf("", "", "", version=point.id)
    return CommitOf(point.id, point.subject, point.author_date, point.merges)


def _without_step(ends: Raced, worse: str, found: dict[str, object]) -> Bisection:
    ratio = ends.ratio
    found |= {"ends": ratio, "blocks": len(ends.log_ratios), "races": 1}
    if ratio is None:
        return _document(
            "undecided", f"the ends cannot be compared: {ends.found.message}", found | {"code": ends.found.code}
        )
    text = f"{quantity_text.ratio_interval(ratio.value, ratio.low, ratio.high)} times as much as the good end"
    if ends.is_better:
        return _document("no_step", f"the bad end is not {worse} but the opposite: it takes {text}", found)
    message = f"no difference between the ends is shown: the bad end takes {text}; give a longer --budget or --seconds"
    return _document("no_step", message, found)


def _undecided(history: History, suspects: Sequence[int], why: str, found: dict[str, object]) -> Bisection:
    first, last = (history.points[place].name for place in (suspects[0], suspects[-1]))
    among = (
        f"the likeliest is {first}"
        if first == last
        else f"it is among {len(suspects)} {history.noun}s from {first} to {last}"
    )
    return _document("undecided", f"{why}; {among}", found)


def _why_not_confirmed(history: History, suspects: Sequence[int], step: Raced) -> str:
    parent = history.points[suspects[0] - 1].name
    why = step.found.message if step.ratio is None else "it is not shown to be worse"
    return f"the race of the {history.noun} against {parent}, the one before, does not confirm it: {why}"


def _another_step(history: History, saved: SavedSearch, suspects: Sequence[int], step: Raced) -> AnotherStep | None:
    """Look once whether the step explains the difference of both ends, and on which side of it the rest is."""
    if len(step.log_ratios) < 2:
        return None
    levels, floor = levels_of(saved.readings), Search.floor
    bad = levels.by_position[history.last]
    size = centre_of(step.log_ratios)
    spread = float(np.var(step.log_ratios, ddof=1)) / len(step.log_ratios)
    rest = bad.log_ratio - size
    if abs(rest) < _DEVIATIONS_OF_ANOTHER * math.sqrt(bad.variance + spread + 4 * floor**2):
        return None
    parent = levels.by_position.get(suspects[0] - 1)
    before = 0.0 if parent is None else parent.log_ratio
    is_before = abs(before) > abs(rest - before)
    good, end = (0, suspects[0] - 1) if is_before else (suspects[-1], history.last)
    return AnotherStep(math.exp(rest), history.points[good].id, history.points[end].id)


def _tried(history: History, saved: SavedSearch, search: Search) -> tuple[TriedCommit, ...]:
    levels = levels_of(saved.readings)
    at_step = posterior_of(levels, history.last, search.floor).at_step
    tried = []
    for place in sorted({*levels.by_position, *saved.skipped}):
        point, level, skipped = commit_of(history, place), levels.by_position.get(place), saved.skipped.get(place)
        ratio = _ratio_of(level) if level is not None else None
        tried.append(
            TriedCommit(
                position=place,
                commit=point.commit,
                subject=point.subject,
                version=point.version,
                ratio=ratio.value if ratio else None,
                low=ratio.low if ratio else None,
                high=ratio.high if ratio else None,
                blocks=ratio.blocks if ratio else 0,
                probability=float(at_step[place - 1]),
                reason=skipped.reason if skipped else "",
                code=skipped.code if skipped else "",
            )
        )
    return tuple(tried)


def _ratio_of(level: Level) -> Ratio:
    """With the 95 % interval of the model of the search, without what trees differ by."""
    half = _DEVIATIONS * math.sqrt(level.variance)
    low, value, high = (math.exp(level.log_ratio + each) for each in (-half, 0.0, half))
    return Ratio(value, low, high, 0.05, level.blocks)


def _document(outcome: Outcome, message: str, found: dict[str, object]) -> Bisection:
    return Bisection(outcome=outcome, exit_status=EXIT_STATUSES[outcome], message=message, **found)  # type: ignore[arg-type]
