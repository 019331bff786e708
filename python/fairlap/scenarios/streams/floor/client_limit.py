"""Where times of a server are in large part the client's: its row is not ranked, or a warning says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN, TIME_TO_FIRST_TOKEN
from fairlap.scenarios.process_result import ProcessResult
from fairlap.scenarios.streams.streams_found import ClientFloor, Percentiles, StreamFigures

BUSY_CLIENT = "W_BUSY_CLIENT"
E_CLIENT_LIMIT = "E_CLIENT_LIMIT"
W_CLIENT_FLOOR = "W_CLIENT_FLOOR"
_MOST_SHARE, _LEAST_NS = 0.2, 1e6
_SHARE_OF_FLOOR = 0.5
_MOST_OF_A_CORE = 0.9
_BUSY_SHARE = 0.7  # of a core; the interpreter lock lets a process compute on one
_LATE_SHARE, _LATE_NS = 0.1, 1e6


_Part = Callable[[ClientFloor], Percentiles | None]
_FIRST_TOKEN: tuple[str, _Part, str] = ("first token", lambda found: found.first_token, TIME_TO_FIRST_TOKEN)
_WHOLE_ANSWER: tuple[str, _Part, str] = ("whole answer", lambda found: found.whole_answer, "wall_ns")
_PER_TOKEN: tuple[str, _Part, str] = ("time per token", lambda found: found.per_token, TIME_PER_OUTPUT_TOKEN)
_FIGURES = (_FIRST_TOKEN, _WHOLE_ANSWER, _PER_TOKEN)


def why_client_limits(processes: Sequence[ProcessResult]) -> Unqualified | None:
    """Why a row's times are a client's rather than the server's, by the medians over its blocks.

    It adds more than a fifth, and more than 1 ms; or it used all that the interpreter lock lets a process use. Where
    several share the load, each is looked at by its own requests: one that is slow hides among others.
    """
    return next(filter(None, (_why_limits(of, turns) for of, turns in _clients_of(processes).items())), None)


@dataclass(frozen=True)
class _OfTurn:
    """What a client added to the answers of a turn, and what they took."""

    floor: ClientFloor
    share: float | None  # of a core
    first_token_p50_ns: float | None
    whole_answer_p50_ns: float | None


def _clients_of(processes: Sequence[ProcessResult]) -> Mapping[str, Sequence[_OfTurn]]:
    """Return the turns of each client, by how a sentence names it."""
    found: dict[str, list[_OfTurn]] = {}
    for process in processes:
        several = () if process.streams is None else process.streams.clients
        for each in several:
            if each.floor is not None:
                times = (each.first_token_p50_ns, each.whole_answer_p50_ns)
                found.setdefault(f"the client {each.name}", []).append(_OfTurn(each.floor, each.client_share, *times))
        floor, figures = floor_of(process), _figures(process)
        if floor is not None and not several:
            p50_ns = {name: each.p50_ns for name, each in process.timings.items()}
            times = (p50_ns.get(TIME_TO_FIRST_TOKEN), p50_ns.get("wall_ns"))
            share = None if figures is None else figures.client_share
            found.setdefault("the client", []).append(_OfTurn(floor, share, *times))
    return found


def _why_limits(client: str, turns: Sequence[_OfTurn]) -> Unqualified | None:
    requests, answered = (sum(getattr(each.floor, name) for each in turns) for name in ("requests", "answered"))
    if answered < requests:
        failed = f"{requests - answered:,} of {quantity_text.count(requests, 'request')}"
        return Unqualified(f"{failed} of {client} to its null server had no whole answer", E_CLIENT_LIMIT)
    share = median([each.share for each in turns if each.share is not None] or [0.0])
    if share > _MOST_OF_A_CORE:
        return Unqualified(f"{client} used {quantity_text.share(share)} of a core", E_CLIENT_LIMIT)
    first = [(each.floor.first_token, each.first_token_p50_ns) for each in turns]
    whole = [(each.floor.whole_answer, each.whole_answer_p50_ns) for each in turns]
    return _why_adds_much(client, "first token", first) or _why_adds_much(client, "whole answer", whole)


def _why_adds_much(
    client: str, what: str, turns: Sequence[tuple[Percentiles | None, float | None]]
) -> Unqualified | None:
    both = [(added.p50_ns, took_ns) for added, took_ns in turns if added is not None and took_ns is not None]
    if not both:
        return None
    added_ns, measured_ns = (median(times_ns) for times_ns in zip(*both, strict=True))
    if added_ns <= max(_MOST_SHARE * measured_ns, _LEAST_NS):
        return None
    adds, of_all = quantity_text.duration(added_ns), quantity_text.duration(measured_ns)
    return Unqualified(f"{client} adds {adds} to the {what}, which took {of_all}", E_CLIENT_LIMIT)


def figures_at_floor(processes: Sequence[ProcessResult]) -> list[Notice]:
    """Warn of each figure of which at least half is the client's own time, or below what its stamps resolve."""
    found = []
    for what, of_floor, quantity in _FIGURES:
        both = _added_and_measured_ns(processes, of_floor, quantity)
        timings = [each.timings[quantity] for each in processes if quantity in each.timings]
        if not timings:
            continue
        added_ns, measured_ns = both or (0.0, median([each.p50_ns for each in timings]))
        if quantity != TIME_PER_OUTPUT_TOKEN:  # which is between arrivals, whose clock is read to nanoseconds
            added_ns = max(added_ns, median([each.resolution_ns for each in timings]))
        if added_ns >= _SHARE_OF_FLOOR * measured_ns:
            own, of_all = quantity_text.duration(added_ns), quantity_text.duration(measured_ns)
            found.append(f"{own} of the {what}, {of_all}")
    if not found:
        return []
    return [Notice(W_CLIENT_FLOOR, f"may be the client's own time: {'; '.join(found)}")]


def _added_and_measured_ns(
    processes: Sequence[ProcessResult], of_floor: _Part, quantity: str
) -> tuple[float, float] | None:
    """Return what the client adds to a median, and that median, both the medians over blocks. None where unknown."""
    both = [
        (added.p50_ns, process.timings[quantity].p50_ns)
        for process in processes
        if (floor := floor_of(process)) is not None
        and (added := of_floor(floor)) is not None
        and quantity in process.timings
    ]
    if not both:
        return None
    added_ns, measured_ns = (median(times_ns) for times_ns in zip(*both, strict=True))
    return added_ns, measured_ns


def busy_client(processes: Sequence[ProcessResult]) -> list[Notice]:
    """Of the block in which it was busiest."""
    share = max((found.client_share for each in processes if (found := _figures(each)) is not None), default=0.0)
    reasons = [f"used {quantity_text.share(share)} of a core"] if share > _BUSY_SHARE else []
    if late_ns := max(map(_late_ns, processes), default=0.0):
        reasons.append(f"began one request in a hundred {quantity_text.duration(late_ns)} late or later")
    return [Notice(BUSY_CLIENT, f"the client {' and '.join(reasons)}, which is part of the times")] if reasons else []


def floor_of(process: ProcessResult) -> ClientFloor | None:
    return None if process.streams is None else process.streams.client_floor


def _figures(process: ProcessResult) -> StreamFigures | None:
    return None if process.streams is None else process.streams.figures


def _late_ns(process: ProcessResult) -> float:
    figures, first = _figures(process), process.timings.get(TIME_TO_FIRST_TOKEN)
    if figures is None or first is None:
        return 0.0
    late_ns = figures.lateness_p99_ns or 0.0
    return late_ns if late_ns > max(_LATE_SHARE * first.p50_ns, _LATE_NS) else 0.0
