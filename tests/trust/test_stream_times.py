"""Times of streamed tokens against what the server itself wrote down, and against the theory of its queue."""

from __future__ import annotations

import heapq
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.engine.load import random_arrivals_ns
from fairlap.request.fields.streams import Manners, Overload
from fairlap.scenarios.generation import TIME_PER_OUTPUT_TOKEN, TIME_TO_FIRST_TOKEN, TOKEN_GAP
from fairlap.scenarios.streams.beyond_capacity import overload_found
from fairlap.scenarios.streams.figures import Tokens, answered_per_s, times_of
from fairlap.scenarios.streams.floor.known_server import client_against, known_server
from fairlap.scenarios.streams.issue import Served
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.race.mannered_load import Mannered, mannered_found, work_after_hang_up
from fairlap.scenarios.streams.workload.arrivals import arrivals_named
from fairlap.scenarios.streams.workload.lengths import Lengths
from fairlap.scenarios.streams.workload.overload import step_of
from fairlap.scenarios.streams.workload.sessions import Source
from loaded_streams import SEED, TOKENS, by_prompt, examined, loaded
from machine_marks import needs
from stream_server import in_a_process
from thinking_users import one_slot, repairman_per_s

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")
pytestmark = pytest.mark.slow

Times = npt.NDArray[np.float64]


ATTEMPTS = 5
"""Other programs add to some times, so that one quiet attempt has to show what the client adds."""


def close(measured: float, true: float) -> bool:
    return abs(measured - true) <= max(0.02 * true, 1e6)


def start_ns(served: Served) -> float:
    """When the load began, on the clock that the server reads too."""
    return float(np.median([each.came_ns[0] for each in served.answers] - served.first_ns))


def is_within_2_percent_or_1_ms(events: tuple[int, ...], folder: Path) -> bool:
    """Whatever the machine does to the server's own delays."""
    due_ns = random_arrivals_ns(40, 20, 3)
    with in_a_process(first_ms=50.0, each_ms=5.0, tokens_in_events=events, split=True, comments=True) as server:
        served = loaded(server, folder, due_ns, 16, rate=20.0)
    truths = by_prompt(server.truths[-len(due_ns) :])
    in_order = [truths[f"number {prompt}"] for prompt in served.prompts.tolist()]
    wrote_first = [each.tokens_ns[0] - start_ns(served) - due for each, due in zip(in_order, due_ns, strict=True)]
    gaps = np.concatenate([np.diff(each.tokens_ns) for each in in_order])
    per_token = [
        (each.tokens_ns[-1] - each.tokens_ns[0]) / (TOKENS - answer.arrived[0])
        for each, answer in zip(in_order, served.answers, strict=True)
    ]
    assert min(wrote_first) >= 50e6
    found = times_of(served)
    assert served.uncertainty_ns < 1e5
    measured = [
        (float(np.quantile(found[name], quantile)), true, quantile)
        for name, true in (
            (TIME_TO_FIRST_TOKEN, wrote_first),
            (TIME_PER_OUTPUT_TOKEN, per_token),
            (TOKEN_GAP, gaps),
        )
        for quantile in (0.5, 0.9)
    ]
    return all(close(each, float(np.quantile(true, quantile))) for each, true, quantile in measured)


@pytest.mark.parametrize("events", [(1,), (1, 2)])
def test_times_of_tokens_are_within_2_percent_or_1_ms_of_when_the_server_wrote_them(
    events: tuple[int, ...], tmp_path: Path
) -> None:
    assert any(is_within_2_percent_or_1_ms(events, tmp_path) for _ in range(ATTEMPTS))


def is_what_the_client_adds(folder: Path) -> bool:
    """By the null server, and by what the tests' own server wrote down of a load of the same arrivals."""
    due_ns = random_arrivals_ns(40, 20, 3)
    with in_a_process() as server:
        asked, contestant = examined(server, folder, rate=20.0)
        served = contestant.load(asked, due_ns, 16, 1)
        contestant.close()
    truths = by_prompt(server.truths[-len(due_ns) :])
    in_order = [truths[f"number {prompt}"] for prompt in served.prompts.tolist()]
    sent_ns = start_ns(served) + served.from_ns + served.lateness_ns
    had_ns = np.array([each.came_ns for each in in_order], np.float64)
    wrote_ns = np.array([each.tokens_ns[0] for each in in_order], np.float64)
    came_ns = np.array([each.came_ns[0] for each in served.answers], np.float64)
    added_ns = had_ns - sent_ns + came_ns - wrote_ns
    with known_server() as port:
        floor = client_against(port, contestant, served, asked, due_ns, 16, 1).first_token
    assert floor is not None
    assert added_ns.min() > 0
    return abs(floor.p50_ns - float(np.median(added_ns))) < 0.5e6


def test_what_the_client_adds_is_what_another_server_sees_of_it(tmp_path: Path) -> None:
    assert any(is_what_the_client_adds(tmp_path) for _ in range(ATTEMPTS))


def by_recursion(due_ns: Times, service_ns: Times, slots: int) -> Times:
    """Calculate when each request is served whole, first come first served (Kiefer and Wolfowitz)."""
    free = [0.0] * slots
    ends = []
    for due, service in zip(due_ns, service_ns, strict=True):
        ends.append(max(due, heapq.heappop(free)) + service)
        heapq.heappush(free, ends[-1])
    return np.array(ends)


REQUESTS, RATE, SLOTS, SERVICE_MS = 120, 70.0, 2, 20.0


def beyond_theory(folder: Path) -> float:
    """By how much longer answers of a server with two slots take in the median, as a share."""
    due_ns = random_arrivals_ns(REQUESTS, RATE, 5)
    with in_a_process(each_ms=SERVICE_MS / (TOKENS - 1), slots=SLOTS) as server:
        served = loaded(server, folder, due_ns, 60, rate=RATE)
    truths = server.truths[-REQUESTS:]  # in the order in which requests came
    held_ns = np.array([each.tokens_ns[-1] - each.began_ns for each in truths], float)
    came_ns = np.array([each.came_ns for each in truths], float) - start_ns(served)
    ends_ns = np.sort(by_recursion(came_ns, held_ns, SLOTS))
    assert (ends_ns - came_ns - held_ns).max() > 1e6 * SERVICE_MS
    return float(np.median(np.sort(served.last_ns) - ends_ns) / np.median(ends_ns - came_ns))


def test_answers_of_a_server_with_two_slots_end_as_theory_says(tmp_path: Path) -> None:
    assert any(0 <= beyond_theory(tmp_path) < 0.05 for _ in range(ATTEMPTS))


def is_the_same_queue(folder: Path) -> bool:
    """With as many connections as slots, requests wait in the client, and count from when they were due."""
    due_ns = random_arrivals_ns(REQUESTS, RATE, 5)
    with in_a_process(each_ms=SERVICE_MS / (TOKENS - 1)) as server:
        served = loaded(server, folder, due_ns, SLOTS, rate=RATE)
    started_ns = served.from_ns + served.lateness_ns
    held_ns = served.ended_ns - started_ns
    starts_ns = by_recursion(due_ns, held_ns, SLOTS) - held_ns
    theory_ns = starts_ns + (served.last_ns - started_ns) - due_ns
    took_ns = Tokens.of(served).end_to_end_ns
    assert theory_ns.max() > 2e6 * SERVICE_MS
    pairs = ((float(np.quantile(took_ns, each)), float(np.quantile(theory_ns, each))) for each in (0.5, 0.9))
    return all(abs(measured - true) < 0.05 * true for measured, true in pairs)


def test_a_queue_in_the_client_is_the_same_queue(tmp_path: Path) -> None:
    assert any(is_the_same_queue(tmp_path) for _ in range(ATTEMPTS))


def test_a_server_with_one_slot_is_an_md1_queue(tmp_path: Path) -> None:
    """The mean wait is rho S / 2 (1 - rho), by Pollaczek and Khinchine."""
    requests, rate, service_s = 800, 50.0, 0.010
    due_ns = random_arrivals_ns(requests, rate, 7)
    with in_a_process(each_ms=1e3 * service_s / (TOKENS - 1), slots=1) as server:
        served = loaded(server, tmp_path, due_ns, 60, rate=rate)
    served_ns = np.array([each.tokens_ns[-1] - each.tokens_ns[0] for each in server.truths[-requests:]], float)
    mean_s = float(served_ns.mean()) / 1e9
    wait_s = Tokens.of(served).end_to_end_ns / 1e9 - mean_s
    rho = rate * mean_s
    batches = wait_s.reshape(20, -1).mean(axis=1)
    error_s = float(batches.std(ddof=1)) / math.sqrt(len(batches))
    assert abs(float(wait_s.mean()) - rho * mean_s / (2 * (1 - rho))) < 4 * error_s + 1e-3


def recovery_beyond_theory(folder: Path) -> tuple[float, float, float]:
    """By how much a server with one slot answers and serves more in an overload, and recovers later, as shares."""
    base, overload = 20.0, Overload(100.0, 0.8, watched_s=3.0, band=0.2)
    step = step_of(overload, base, 1.0, arrivals_named("constant"), 1)
    with in_a_process(each_ms=SERVICE_MS / (TOKENS - 1), slots=1) as server:
        served = loaded(server, folder, step.due_ns, 100, rate=base)
    held_s = np.array([each.tokens_ns[-1] - each.began_ns for each in server.truths[-len(step.due_ns) :]], float) / 1e9
    capacity = 1 / float(held_s[step.before : -step.before].mean())
    found = overload_found(served, step, overload)
    assert found.served_per_s is not None
    if found.recovery_s is None:  # other programs left it too little of the machine
        return np.inf, np.inf, np.inf
    drains_s = (overload.rate_per_s - capacity) * overload.lasts_s / (capacity - base)
    return found.answered_per_s / capacity - 1, found.served_per_s / capacity - 1, found.recovery_s / drains_s - 1


def test_a_backlog_of_an_overload_drains_in_the_time_of_theory(tmp_path: Path) -> None:
    assert any(max(map(abs, recovery_beyond_theory(tmp_path))) < 0.1 for _ in range(ATTEMPTS))


def beyond_own_record(folder: Path) -> tuple[float, float]:
    """Return what a server that works at all answers at once ends in an overload, and serves, of its capacity.

    That is what it wrote itself while it had something to do.
    """
    overload = Overload(200.0, 0.5, watched_s=5.0, band=0.2)
    step = step_of(overload, 5.0, 2.0, arrivals_named("constant"), 1)
    with in_a_process(each_ms=2.0, in_turns=True) as server:
        served = loaded(server, folder, step.due_ns, 120, rate=5.0)
    truths = server.truths[-len(step.due_ns) :]
    began_ns = truths[step.before].began_ns
    ended_ns = max(each.tokens_ns[-1] for each in truths[step.before : step.before + step.during])
    written = sum(began_ns < each <= ended_ns for truth in truths for each in truth.tokens_ns)
    capacity = 1e9 * written / TOKENS / (ended_ns - began_ns)
    found = overload_found(served, step, overload)
    assert found.served_per_s is not None
    return found.answered_per_s / capacity, found.served_per_s / capacity


def test_a_server_that_ends_few_answers_in_an_overload_is_shown_to_serve_what_it_wrote(tmp_path: Path) -> None:
    found = [beyond_own_record(tmp_path) for _ in range(2)]
    assert max(answered for answered, _ in found) < 0.6
    assert min(abs(served - 1) for _, served in found) < 0.1


def beside_aborts(folder: Path, *, works_on: bool) -> tuple[float, float]:
    """Return what a server with one slot computes for who has left, and how much longer others wait for it.

    Half of three users hang up. One that stops serves others sooner: they wait for shorter answers.
    """
    with in_a_process(each_ms=1.5 * SERVICE_MS, slots=1, works_on=works_on) as server:
        asked, contestant = examined(server, folder, concurrency=3, abort=0.5)
        share = work_after_hang_up(contestant, asked)
        usual, mixed = (contestant.load(asked, np.zeros(20), 3, SEED, manners=each)
                        for each in (Manners(), asked.load.manners))  # fmt: skip
        contestant.close()
    found = mannered_found(mixed, Mannered(usual, share))
    assert found.others_p50_ns is not None
    assert found.alone_p50_ns is not None
    assert share is not None
    return share, found.others_p50_ns / found.alone_p50_ns


def are_told_apart(folder: Path) -> bool:
    (stops, sooner), (works_on, later) = (beside_aborts(folder, works_on=each) for each in (False, True))
    return stops < 0.3 and 0.7 < works_on < 1.3 and sooner < 0.95 < later


def test_a_server_that_works_on_for_who_has_left_is_told_apart_from_one_that_stops(tmp_path: Path) -> None:
    assert any(are_told_apart(tmp_path) for _ in range(ATTEMPTS))


def against_theory(folder: Path) -> tuple[float, float, float]:
    """Compare users who think with a simulation that has the server's own services, and with theory.

    Return the ratios of rates and of mean times of an answer to those simulated, and of the rate to the theory's.
    """
    users, requests, think_s, service_s = 6, 500, 0.06, 0.02
    with in_a_process(each_ms=1e3 * service_s / (TOKENS - 1), slots=1, exponential=True) as server:
        served = loaded(server, folder, np.zeros(requests), users, concurrency=users, think=think_s)
    service_ns = np.array([each.tokens_ns[-1] - each.began_ns for each in server.truths[-requests:]], float)
    drawn = Source((Prompt(prompt="a"),), None, Lengths(1, 1), 1.0, "").sessions(
        requests, SEED, think_s=think_s, users=True
    )
    simulated = one_slot(drawn, users, service_ns)
    rate, rate_simulated = (answered_per_s(each) for each in (served, simulated))
    mean, mean_simulated = (float(Tokens.of(each).end_to_end_ns.mean()) for each in (served, simulated))
    theory = repairman_per_s(users, think_s, float(service_ns.mean()) / 1e9)
    return rate / rate_simulated, mean / mean_simulated, rate / theory


def test_users_who_think_at_a_server_with_one_slot_are_a_machine_repairman_queue(tmp_path: Path) -> None:
    found = [against_theory(tmp_path) for _ in range(2)]
    assert min(max(abs(rate - 1), abs(mean - 1)) for rate, mean, _ in found) < 0.05
    assert min(abs(theory - 1) for _, _, theory in found) < 0.1
