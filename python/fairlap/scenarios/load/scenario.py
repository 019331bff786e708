"""The scenario of load: contestants are ranked by the largest rate that meets the bound, or by LoadGen's figure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.request.fields import load as of_request
from fairlap.request.fields.load import Load
from fairlap.request.work import Work
from fairlap.scenarios.added import JudgedBefore
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario, Unqualified
from fairlap.scenarios.load.load_messages import LoadFound
from fairlap.scenarios.load.loadgen_messages import WHY_INVALID
from fairlap.scenarios.process_result import ProcessResult

NO_RATE = "E_NO_RATE"
LOADGEN_INVALID = "E_LOADGEN_INVALID"

LARGEST_RATE = "largest rate"
LATENCY_BY_LOADGEN = "latency by LoadGen"
RATE_BY_LOADGEN = "samples per second by LoadGen"


def _largest_rate(process: ProcessResult) -> float | None:
    return None if process.load is None else process.load.largest_rate_per_s


def _loadgen_figure(process: ProcessResult) -> float | None:
    found = None if process.load is None else process.load.loadgen
    return found.figure if found is not None and found.valid and found.figure else None


def _loadgen_latency_ns(process: ProcessResult) -> float | None:
    figure = _loadgen_figure(process)
    return None if figure is None else 1e9 * figure


def _by_loadgen(what: str) -> Judged:
    metric = verdict.Metric(what, "ns")
    return Judged(LATENCY_BY_LOADGEN, metric, _loadgen_latency_ns, period="after_turns", of_slowest=True)


_BY_RATE = Judged(
    LARGEST_RATE,
    verdict.TIME_PER_REQUEST,
    _largest_rate,
    "1/s",
    may_lack=True,
    period="after_turns",
    of_slowest=True,
)
_BY_LOADGEN: dict[of_request.Scenario, Judged] = {
    "single-stream": _by_loadgen("latency in LoadGen's single-stream scenario"),
    "multi-stream": _by_loadgen("latency of a query in LoadGen's multi-stream scenario"),
    "offline": Judged(
        RATE_BY_LOADGEN,
        verdict.Metric("time per sample in LoadGen's offline scenario", "ns"),
        _loadgen_figure,
        "1/s",
        period="after_turns",
    ),
}


class LoadScenario(Scenario):
    judges_rounds = False
    after_turns = "fairlap.scenarios.load.race.load_run:LoadRun"
    race_side = "fairlap.scenarios.load.race.from_request:LoadFromRequest"
    columns = "fairlap.scenarios.load.results.column_definitions:LoadRow"
    results_side = "fairlap.scenarios.load.results.columns:LoadColumns"
    render_side = "fairlap.scenarios.load.render.shown:LoadShown"
    command = "load"
    budgets_s = (300.0, 900.0)  # a search for a rate takes a trial of seconds after the other

    judged_before = (
        JudgedBefore("largest_rate_per_s", "1/s", lambda _cells, _counted: LARGEST_RATE),
        JudgedBefore("loadgen_latency_ns", "ns", lambda _cells, _counted: LATENCY_BY_LOADGEN),
        JudgedBefore("loadgen_rate_per_s", "1/s", lambda _cells, _counted: RATE_BY_LOADGEN),
    )

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.load is not None

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        load = _load_of(work)
        judged = _judged(load)
        found = ((name, _why_without(own, load, judged)) for name, own in processes.items())
        unqualified = {name: why for name, why in found if why is not None}
        return Ruling(judged, unqualified, {name: _without_rate(own) for name, own in processes.items()})

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        load = _load_of(work)
        return bool(finished) and _why_without(finished, load, _judged(load)) is None

    def reaches(self, work: Work) -> Iterable[str]:
        logs = "" if work.load is None else work.load.logs
        return [f"folder {Path(logs).absolute()}, which is written"] if logs else []

    def threads_note(self, work: Work) -> str:
        """Those of a call; each worker makes calls."""
        workers = _load_of(work).workers
        return f" for each of {workers} workers" if workers > 1 else ""


def _load_of(work: Work) -> Load:
    assert work.load is not None
    return work.load


def _judged(load: Load) -> Judged:
    return _BY_RATE if load.searches or load.scenario is None else _BY_LOADGEN[load.scenario]


def _without_rate(processes: Sequence[ProcessResult]) -> tuple[Notice, ...]:
    """Warn where a search found a rate in some of the processes only: blocks without one do not count.

    That favours the contestant, but of equal ones either is as likely to have it, so no difference is claimed more
    often.
    """
    loads = [process.load for process in processes if process.finished and process.load is not None]
    searches = [load for load in loads if load.limited_by]
    without = sum(each.largest_rate_per_s is None for each in searches)
    if not 0 < without < len(searches):
        return ()
    of_all = f"{without} of {quantity_text.count(len(searches), 'process')}"
    text = f"{of_all} found no rate that meets the bound; its rate is that of the others, which favours it"
    return (Notice("W_NO_RATE", text),)


def _why_without(processes: Sequence[ProcessResult], load: Load, judged: Judged) -> Unqualified | None:
    """Of a contestant of which no process found a rate that meets the bound, or LoadGen calls a run INVALID."""
    finished = [process for process in processes if process.finished]
    searches = [process.load or LoadFound() for process in finished]
    without = [found for found, each in zip(searches, finished, strict=True) if judged.read(each) is None]
    if without and not judged.may_lack:
        invalid = next((each.loadgen for each in without if each.loadgen is not None), None)
        reasons = "" if invalid is None else f": {'; '.join(WHY_INVALID[why] for why in invalid.why_invalid)}"
        of_all = f"in {len(without)} of {quantity_text.count(len(searches), 'process')}"
        return Unqualified(f"LoadGen says INVALID {of_all}{reasons}", LOADGEN_INVALID)
    if without and len(without) == len(searches):
        return Unqualified(_why_no_rate({each.limited_by for each in without}, load.bound_text), NO_RATE)
    return None


def _why_no_rate(limited_by: Collection[str], bound: str) -> str:
    if limited_by == {"budget"}:
        return f"the budget ended every search before a rate was found that meets the bound ({bound})"
    lone = limited_by == {"lone_request"}
    why = "even a lone request misses the bound" if lone else "no rate that was tried meets the bound"
    return f"{why} ({bound}) in every process"
