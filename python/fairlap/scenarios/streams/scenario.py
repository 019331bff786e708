"""The scenario of servers that stream: ranked by the time of answers, by tokens per second, or by the largest rate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from statistics import median_low

from fairlap import quantity_text, verdict
from fairlap.engine.measurement import Notice
from fairlap.request.fields.streams import StreamLoad
from fairlap.request.work import Work
from fairlap.scenarios.added import AddedFigure, Quantity
from fairlap.scenarios.contract import Asked, Judged, Processes, Ruling, Scenario, Unqualified
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN, TIME_TO_FIRST_TOKEN, TOKEN_GAP
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.streams.equal_work.equal_tokens import (
    agreement_of_all,
    warnings_of,
    warnings_of_agreement,
    why_unequal,
)
from fairlap.scenarios.streams.equal_work.prefix_cache import warnings_of_cache
from fairlap.scenarios.streams.floor.client_limit import busy_client, figures_at_floor, floor_of, why_client_limits
from fairlap.scenarios.streams.streams_found import (
    Agreement,
    Counts,
    Percentiles,
    StreamFigures,
    TurnLength,
)
from fairlap.scenarios.streams.stress_figures import (
    STRESS_FIGURES,
    recovery_notices,
    recovery_ns,
    served_beyond_per_s,
)

TIME_OF_AN_ANSWER = "time of an answer"
TOKENS_PER_SECOND = "tokens per second"
LARGEST_RATE = "largest rate"
ANSWERS_BEYOND = "answers per second beyond capacity"
CERTIFICATES = "certificates"
"""A setting in force, which every row of a server that streams has."""
STARTED = "started"
"""Another one, of a server that fairlap started; it ends with how often."""
WEIGHTS = "weights"
"""Another one, of a server that was started by name: in which types its model's files hold them."""
CLIENTS = "clients"
"""Another one, where several shared the load: their names."""
E_CLIENT_LOST = "E_CLIENT_LOST"
EACH_BLOCK, ONCE = "again for each block", "once"

FEWEST_FOR_P90, FEWEST_FOR_P99 = 10, 100
"""Answers of a block, without which a percentile is the largest of its times."""

TOO_FEW = "blocks have fewer than {} answers; give a longer --trial"
ONE_EVENT = "its answers come in one event each"
W_LONG_TURNS = "W_LONG_TURNS"
_COMPARED_WITH = "its answers are what others are compared with"
_NO_FLOOR = "a function is the client itself, or no answer came"

_FEWEST = {50: 1, 90: FEWEST_FOR_P90, 99: FEWEST_FOR_P99}
_TIME_PER_TOKEN = verdict.Metric("time per token of all", "ns", inverse=TOKENS_PER_SECOND)


def _figures(process: ProcessResult) -> StreamFigures | None:
    return None if process.streams is None else process.streams.figures


def _largest_rate(process: ProcessResult) -> float | None:
    found = None if process.streams is None else process.streams.search
    return None if found is None else found.largest_rate_per_s


def _tokens_per_s(process: ProcessResult) -> float | None:
    found = _figures(process)
    return None if found is None else found.tokens_per_s


def _answer_ns(process: ProcessResult) -> float | None:
    return process.call_ns if process.timings else None


_BY_TIME = Judged(TIME_OF_AN_ANSWER, verdict.Metric(TIME_OF_AN_ANSWER, "ns"), _answer_ns, may_lack=True)
_BY_TOKENS = Judged(TOKENS_PER_SECOND, _TIME_PER_TOKEN, _tokens_per_s, "1/s", may_lack=True)
_BY_OVERLOAD = Judged(
    ANSWERS_BEYOND,
    verdict.Metric("time per answer beyond capacity", "ns", inverse=ANSWERS_BEYOND),
    served_beyond_per_s,
    "1/s",
    may_lack=True,
)
_BY_RATE = Judged(LARGEST_RATE, verdict.TIME_PER_REQUEST, _largest_rate, "1/s", may_lack=True)

_Read = Callable[[ProcessResult], float | None]


def _percentile(quantity: str, percent: int) -> _Read:
    """Absent where a block has too few times for it."""
    fewest = _FEWEST[percent]

    def read(process: ProcessResult) -> float | None:
        timing = process.timings.get(quantity)
        if process.streams is None or timing is None or timing.samples < fewest:
            return None
        value: float = getattr(timing, f"p{percent}_ns")
        return value

    return read


def _of_figures(read: Callable[[StreamFigures], float | None]) -> _Read:
    def value(process: ProcessResult) -> float | None:
        figures = _figures(process)
        return None if figures is None else read(figures)

    return value


def _added_by_client(part: str, percent: int) -> AddedFigure:
    """Absent where a block has too few answers for it."""
    fewest = _FEWEST[percent]

    def read(process: ProcessResult) -> float | None:
        floor = floor_of(process)
        added: Percentiles | None = None if floor is None else getattr(floor, part)
        if floor is None or added is None or floor.answered < fewest:
            return None
        value: float = getattr(added, f"p{percent}_ns")
        return value

    absent = _NO_FLOOR if fewest == 1 else f"{_NO_FLOOR}, or {TOO_FEW.format(fewest)}"
    return AddedFigure(f"client_{part}_p{percent}_ns", read, absent)


def _per_time(read: _Read) -> _Read:
    """Turn a rate into the time of one, as rates are compared."""

    def time_ns(process: ProcessResult) -> float | None:
        rate = read(process)
        return 1e9 / rate if rate else None

    return time_ns


def _identical_share(process: ProcessResult) -> float | None:
    found = None if process.streams is None else process.streams.agreement
    return None if found is None else found.identical / found.prompts


def _identical_text_share(process: ProcessResult) -> float | None:
    found = None if process.streams is None else process.streams.agreement
    return None if found is None else found.identical_characters


def _ready_s(process: ProcessResult) -> float | None:
    return None if process.streams is None else process.streams.ready_s


_goodput = _of_figures(lambda found: found.goodput_per_s)
_NO_BOUNDS = "no bound was given; --first-token and --per-token are"


def _compared(name: str, read: _Read, *, inverse: str = "", headline: verdict.Metric | None = None) -> Quantity:
    metric = verdict.Metric(name, "ns", inverse=inverse)
    return Quantity(metric, read, is_of=lambda process: process.streams is not None, headline=headline)


class StreamedAnswers(Scenario):
    judges_rounds = False
    own_race = "fairlap.scenarios.streams.race.stream_race:StreamRace"
    where = "on servers"
    race_side = "fairlap.scenarios.streams.race.planned_load:PlannedLoad"
    columns = "fairlap.scenarios.streams.results.column_definitions:StreamRow"
    results_side = "fairlap.scenarios.streams.results.columns:StreamColumns"
    render_side = "fairlap.scenarios.streams.render.shown:StreamsShown"
    command = "load"
    data_seeds = (0,)  # the seed of the race draws requests, and the user's prompts are its data
    budgets_s = (300.0, 900.0)
    figures = (
        AddedFigure("first_token_p90_ns", _percentile(TIME_TO_FIRST_TOKEN, 90), TOO_FEW.format(FEWEST_FOR_P90)),
        AddedFigure("first_token_p99_ns", _percentile(TIME_TO_FIRST_TOKEN, 99), TOO_FEW.format(FEWEST_FOR_P99)),
        AddedFigure("per_token_p90_ns", _percentile(TIME_PER_OUTPUT_TOKEN, 90), TOO_FEW.format(FEWEST_FOR_P90)),
        AddedFigure("per_token_p99_ns", _percentile(TIME_PER_OUTPUT_TOKEN, 99), TOO_FEW.format(FEWEST_FOR_P99)),
        AddedFigure("between_tokens_p50_ns", _percentile(TOKEN_GAP, 50), ONE_EVENT),
        AddedFigure("between_tokens_p90_ns", _percentile(TOKEN_GAP, 90), ONE_EVENT),
        AddedFigure("goodput_per_s", _goodput, _NO_BOUNDS),
        AddedFigure("good_share", _of_figures(lambda found: found.good_share), _NO_BOUNDS),
        AddedFigure(
            "cached_prompt_tokens_share",
            _of_figures(lambda found: found.counts.cached_share),
            "its server does not count cached tokens",
        ),
        AddedFigure("server_ready_s", _ready_s, "fairlap did not start its server"),
        *STRESS_FIGURES,
        AddedFigure("identical_answers_share", _identical_share, _COMPARED_WITH),
        AddedFigure("identical_text_share", _identical_text_share, _COMPARED_WITH),
        *(
            _added_by_client(part, percent)
            for part in ("first_token", "per_token", "whole_answer")
            for percent in (50, 90, 99)
        ),
    )
    quantities = (
        _compared("time to first token", _percentile(TIME_TO_FIRST_TOKEN, 50)),
        _compared("time to first token p99", _percentile(TIME_TO_FIRST_TOKEN, 99)),
        _compared("time per token of an answer", _percentile(TIME_PER_OUTPUT_TOKEN, 50)),
        _compared("time between tokens p99", _percentile(TOKEN_GAP, 99)),
        _compared(
            "time per token of all", _per_time(_tokens_per_s), inverse=TOKENS_PER_SECOND, headline=_TIME_PER_TOKEN
        ),
        _compared("time to recover from the overload", recovery_ns),
        _compared("time per request within the bounds", _per_time(_goodput), inverse="goodput"),
    )

    def is_asked(self, asked: Asked, work: Work) -> bool:
        return work.streams is not None

    def judge(self, asked: Asked, work: Work, processes: Processes, ranked: Collection[str]) -> Ruling:
        load = _load_of(work)
        counts = {name: _counts_of(own) for name, own in processes.items()}
        reasons = {name: _why_not(own, counts[name], counts.values()) for name, own in processes.items()}
        return Ruling(
            _judged(load),
            {name: why for name, why in reasons.items() if why is not None},
            {name: _notices(own, counts[name], load) for name, own in processes.items()},
            f"by {_judged(load).by}",
        )

    def has_result(self, work: Work, finished: Sequence[ProcessResult]) -> bool:
        load = _load_of(work)
        has_figure = any(_judged(load).read(process) is not None for process in finished)
        return has_figure and _why_not(finished, _counts_of(finished), ()) is None

    def reaches(self, work: Work) -> Iterable[str]:
        load = work.streams
        if load is None:
            return []
        files = [f"prompts {Path(load.prompts).absolute()}, which are sent to servers"]
        files += [f"certificates {load.ca}"] if load.ca else []
        files += [] if load.clients.isdecimal() or not load.clients else [f"clients on the cluster {load.clients}"]
        return files if load.verified else [*files, "servers whose certificates are not verified"]


def long_turns(turns: Sequence[TurnLength], load: StreamLoad) -> list[Notice]:
    """Warn where a turn had the fewest requests, and yet took much longer than was asked for."""
    long = [each for each in turns if each.is_much_longer and each.sessions == each.fewest]
    if not long:
        return []
    took, asked = (
        quantity_text.seconds(median_low(each.took_s for each in long)),
        quantity_text.seconds(long[0].asked_s),
    )
    fewest = quantity_text.count(long[0].fewest, "request" if load.requests_in_a_session == 1 else "conversation")
    return [Notice(W_LONG_TURNS, f"its turns took {took} instead of {asked}: {fewest} are the fewest of a turn")]


def _load_of(work: Work) -> StreamLoad:
    assert work.streams is not None
    return work.streams


def _judged(load: StreamLoad) -> Judged:
    if load.searches:
        return _BY_RATE
    if load.overload is not None:
        return _BY_OVERLOAD
    waits = load.concurrency is not None and not load.think_s
    return _BY_TOKENS if waits else _BY_TIME


def _counts_of(processes: Iterable[ProcessResult]) -> Counts:
    return sum((found.counts for process in processes if (found := _figures(process)) is not None), Counts())


def _why_not(processes: Sequence[ProcessResult], counts: Counts, of_each: Iterable[Counts]) -> Unqualified | None:
    before = (each.streams.unqualified for each in processes if each.streams is not None)
    if (seen := next((each for each in before if each is not None), None)) is not None:
        return Unqualified(seen.text, seen.code)
    return why_unequal(counts, of_each) or why_client_limits(processes)


def _notices(processes: Sequence[ProcessResult], counts: Counts, load: StreamLoad) -> tuple[Notice, ...]:
    found = [each.streams for each in processes if each.streams is not None]
    compared: list[Agreement] = [each.agreement for each in found if each.agreement is not None]
    return (
        *dict.fromkeys(warning for process in processes for warning in process.warnings),
        *warnings_of(counts),
        *warnings_of_cache(counts, load),
        *warnings_of_agreement(agreement_of_all(compared)),
        *busy_client(processes),
        *figures_at_floor(processes),
        *recovery_notices(processes),
        *long_turns([each.turn for each in found if each.turn is not None], load),
    )
