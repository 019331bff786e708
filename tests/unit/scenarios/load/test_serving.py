"""A worker serves requests of known length: what is due, late, answered and kept is what the trial reports."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fairlap.engine.token_stamps import TokenStamps
from fairlap.frameworks.contract import Contestant, Unsupported
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.spec import Tensor
from fairlap.scenarios.load.batched_calls import prepared_batches
from fairlap.scenarios.load.load_messages import LoadTrial, OfferLoad
from fairlap.scenarios.load.loadgen_messages import LoadGenRun
from fairlap.scenarios.load.serving import Serving

CALL_S = 0.002
ITEM = (1, 4)


@dataclass
class Seen:
    """What the contestant was asked."""

    batches: list[int] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0


def contestant_of(seen: Seen, outputs: Callable[[Any], dict[str, Any]] | None = None) -> Contestant:
    def bind(inputs: Arrays) -> Callable[[], Any]:
        x = inputs["x"]

        def call() -> Any:
            seen.batches.append(len(x))
            seen.inputs.append(x.tobytes())
            seen.at_once += 1
            seen.most_at_once = max(seen.most_at_once, seen.at_once)
            began_s = time.perf_counter()
            time.sleep(CALL_S)
            seen.took_s.append(time.perf_counter() - began_s)
            seen.at_once -= 1
            return 2 * x

        return call

    return Contestant(bind, None, outputs or (lambda result: {"y": result}), dict, {})


@dataclass(frozen=True)
class Work:
    """As much of a workload as serving needs."""

    batch: int
    inputs: Arrays
    labels: None = None
    spec: Any = field(
        default_factory=lambda: SimpleNamespace(
            inputs=(Tensor("x", ("batch", 4)),), outputs=(Tensor("y", ("batch", 4)),)
        )
    )


def sets() -> list[Arrays]:
    return [{"x": np.full(ITEM, value, np.float32) + np.arange(4, dtype=np.float32)} for value in (0, 10)]


def serving(tmp_path: Path, contestant: Contestant, seen: Seen) -> Serving:
    files = []
    for number in range(3):
        files.append(str(tmp_path / f"unseen-{number}.safetensors"))
        x = np.full(ITEM, 20 + 10 * number, np.float32) + np.arange(4, dtype=np.float32)
        safetensors.write(Path(files[-1]), {"x": x})
    work: Any = Work(1, sets()[0])
    return Serving(contestant, work, sets(), files, lambda work: contestant_of(seen))


def served(tmp_path: Path, seen: Seen | None = None, contestant: Contestant | None = None, **options: Any) -> LoadTrial:
    seen = seen or Seen()
    request = OfferLoad("search", 60, 0.02, 0.9, 5, str(tmp_path / "answers.safetensors"))
    for name, value in options.items():
        request = _with(request, name, value)
    return serving(tmp_path, contestant or contestant_of(seen), seen).serve(request)[0]


def _with(request: OfferLoad, name: str, value: object) -> OfferLoad:
    import msgspec

    return msgspec.structs.replace(request, **{name: value})


def answers(tmp_path: Path) -> dict[tuple[int, int], Sequence[float]]:
    found = safetensors.read(tmp_path / "answers.safetensors")
    return {(int(key.split("/")[0]), int(key.split("/")[1])): array.ravel().tolist() for key, array in found.items()}


def test_every_request_is_answered_once_and_latency_counts_from_when_it_was_due(tmp_path: Path) -> None:
    trial = served(tmp_path)  # all at once: the last one waits for all others
    assert (trial.requests, trial.unanswered, trial.rate_per_s) == (60, 0, None)
    assert trial.times is not None
    assert trial.times.service_p50_ns >= 1e9 * CALL_S
    assert trial.times.p99_ns >= 0.95 * 60 * 1e9 * CALL_S
    assert trial.late >= 60 - 0.02 / CALL_S
    assert trial.outcome == "missed"


def test_a_trial_offers_as_many_requests_as_its_rate_has_in_its_time(tmp_path: Path) -> None:
    trials = [served(tmp_path, requests=20, rate_per_s=1000.0, seed=seed) for seed in range(6)]
    assert [trial.requests for trial in trials] == [20] * 6


def test_the_kept_answers_are_those_to_known_items_under_their_numbers(tmp_path: Path) -> None:
    trial = served(tmp_path)
    kept = answers(tmp_path)
    assert trial.checked == len(kept) > 0
    for (item, _), outputs in kept.items():
        assert outputs == [2 * (10 * item + place) for place in range(4)]


@pytest.mark.parametrize(("workers", "look_s"), [(1, 0.1), (2, 0.1), (1, 0.0)])
def test_a_trial_lasts_as_long_as_its_calls_however_long_it_takes_to_look_at_answers(
    workers: int, look_s: float, tmp_path: Path
) -> None:
    """By the calls' own clock. Other programs only add to what is between calls, so one of several attempts counts."""

    def outputs(result: Any) -> dict[str, Any]:
        time.sleep(look_s)
        return {"y": result}

    between_s = []
    for _ in range(10):
        seen = Seen()
        trial = served(tmp_path, seen, contestant_of(seen, outputs), kind="capacity", workers=workers)
        assert trial.checked == len(answers(tmp_path)) == workers
        calls_s = sum(seen.took_s[-trial.requests :]) / workers
        between_s.append(trial.requests / trial.served_per_s - calls_s)
        assert between_s[-1] > 0
        if between_s[-1] < max(look_s / 2, 0.2 * calls_s):
            return
    raise AssertionError(between_s)


def test_new_items_are_in_every_trial_and_differ_between_trials(tmp_path: Path) -> None:
    first, second = Seen(), Seen()
    served(tmp_path, first, seed=1)
    served(tmp_path, second, seed=2)
    known = {each["x"].tobytes() for each in sets()}
    new = set(first.inputs) - set(second.inputs)
    assert new
    assert not new & known


def test_unique_items_occur_once_and_one_item_over_and_over(tmp_path: Path) -> None:
    unique, one = Seen(), Seen()
    served(tmp_path, unique, items="unique", requests=20)
    served(tmp_path, one, items="one", requests=20)
    assert len(set(one.inputs)) == 1
    # of four elements there are 24 orders; a warm-up repeats the first
    assert len(set(unique.inputs)) > 10


def test_a_trial_that_may_end_early_ends_as_soon_as_the_bound_is_missed(tmp_path: Path) -> None:
    trial = served(tmp_path, requests=5000, bound_s=0.004, ends_early=True)
    assert trial.outcome == "missed"
    assert trial.requests < 100
    assert trial.unanswered == 0


FIRST_S, EACH_S = 0.001, 0.001
TOKENS = 5


def generating(seen: Seen) -> Contestant:
    """Answers of known times, token by token."""
    stamps = TokenStamps(TOKENS)

    def first(prompt: Any) -> Any:
        seen.batches.append(len(prompt))
        time.sleep(FIRST_S)
        return [0] * len(prompt), prompt, None

    def following(_state: Any, token: Any) -> Any:
        time.sleep(EACH_S)
        return [0] * len(token), token, None

    def bind(inputs: Arrays) -> Callable[[], Any]:
        token = np.zeros((1, 1), np.int32)
        return stamps.answer(first, following, inputs["x"], [token] * (TOKENS - 1), 1)

    return Contestant(bind, None, lambda result: {"y": 2 * result[1][0]}, dict, {}, stamps=stamps)


def test_a_first_token_is_late_by_when_its_request_was_due_and_not_by_when_it_was_begun(tmp_path: Path) -> None:
    """All requests are due at once, so the first tokens come one answer apart."""
    answer_s = FIRST_S + (TOKENS - 1) * EACH_S
    bound_s = 10.5 * answer_s
    trial = served(tmp_path, contestant=generating(Seen()), requests=40, bound_s=None, first_token_s=bound_s)
    assert (trial.requests, trial.late, trial.outcome) == (40, 0, "missed")
    assert 40 - 11 <= trial.late_first_tokens <= 40  # at most eleven, on a machine that is never late itself
    assert trial.times is not None
    assert trial.times.tokens is not None
    assert trial.times.tokens.first_p99_ns >= 1e9 * 38 * answer_s
    assert trial.times.tokens.first_p99_ns + 1e9 * (TOKENS - 1) * EACH_S <= trial.times.p99_ns * 1.0001


def test_a_trial_meets_its_bounds_only_if_it_meets_both(tmp_path: Path) -> None:
    bounds: list[tuple[float | None, float | None, str]] = [
        (None, 30.0, "met"), (30.0, 30.0, "met"), (30.0, 0.0001, "missed"), (0.0001, 30.0, "missed"),
    ]  # fmt: skip
    for bound_s, first_token_s, outcome in bounds:
        for ends_early in (False, True) if bound_s else (False,):
            trial = served(
                tmp_path,
                contestant=generating(Seen()),
                requests=30,
                bound_s=bound_s,
                first_token_s=first_token_s,
                ends_early=ends_early,
            )
            assert trial.outcome == outcome, (bound_s, first_token_s, ends_early)


def test_an_answer_that_misses_its_bound_ends_a_trial_early_and_one_that_meets_it_does_not(tmp_path: Path) -> None:
    options: dict[str, Any] = {"contestant": generating(Seen()), "requests": 120, "ends_early": True}
    assert served(tmp_path, bound_s=0.0001, first_token_s=30.0, **options).requests < 60
    assert served(tmp_path, bound_s=30.0, first_token_s=30.0, **options).requests == 120


def test_with_a_bound_on_the_first_token_a_trial_has_no_more_requests_than_leave_stamps(tmp_path: Path) -> None:
    contestant = generating(Seen())
    assert contestant.stamps is not None
    contestant.stamps.most_answers = 50
    trial = served(tmp_path, contestant=contestant, requests=120, bound_s=None, first_token_s=30.0)
    assert (trial.requests, trial.late_first_tokens) == (25, 0)


def test_a_contestant_without_stamps_of_tokens_can_have_no_bound_on_them(tmp_path: Path) -> None:
    with pytest.raises(Unsupported):
        served(tmp_path, bound_s=None, first_token_s=1.0)


def test_waiting_requests_are_joined_and_padded_to_the_next_prepared_batch(tmp_path: Path) -> None:
    seen = Seen()
    trial = served(tmp_path, seen, requests=61, largest_batch=8)
    assert set(seen.batches) <= {1, 2, 4, 8}
    assert trial.mean_batch > 4
    for (item, _), outputs in answers(tmp_path).items():
        assert outputs == [2 * (10 * item + place) for place in range(4)]


def test_a_contestant_is_prepared_for_powers_of_two_and_the_largest_batch() -> None:
    assert prepared_batches(1) == []
    assert prepared_batches(8) == [2, 4, 8]
    assert prepared_batches(12) == [2, 4, 8, 12]


def test_two_workers_serve_at_once(tmp_path: Path) -> None:
    seen = Seen()
    trial = served(tmp_path, seen, workers=2)
    assert (trial.requests, seen.most_at_once) == (60, 2)


def test_calls_that_write_to_one_place_serve_from_a_contestant_for_each_thread(tmp_path: Path) -> None:
    def writing_to_one_place(_work: Any = None) -> Contestant:
        place = np.zeros(ITEM, np.float32)

        def bind(inputs: Arrays) -> Callable[[], Any]:
            def call() -> None:
                place[...] = 2 * inputs["x"]
                time.sleep(CALL_S)

            return call

        return Contestant(bind, None, lambda _none: {"y": place.copy()}, dict, {})

    request = OfferLoad("search", 200, 0.02, 0.9, 5, str(tmp_path / "answers.safetensors"), workers=3)
    tested = serving(tmp_path, writing_to_one_place(), Seen())
    tested._build = writing_to_one_place
    trial = tested.serve(request)[0]
    assert trial.checked > 0
    for (item, _), outputs in answers(tmp_path).items():
        assert outputs == [2 * (10 * item + place) for place in range(4)]


def test_what_is_no_answer_is_reported_with_what_reading_it_raised(tmp_path: Path) -> None:
    def dropped(_: Any) -> dict[str, Any]:
        raise TypeError("there is nothing in None")

    trial = served(tmp_path, contestant=contestant_of(Seen(), dropped))
    assert "nothing in None" in trial.without_answer
    assert trial.checked == 0


def test_every_thread_enters_what_a_framework_keeps_for_a_thread(tmp_path: Path) -> None:
    of_thread = threading.local()
    outside: list[int] = []

    @contextmanager
    def entered() -> Iterator[None]:
        of_thread.is_in = True
        yield

    plain = contestant_of(Seen())

    def bind(inputs: Arrays) -> Callable[[], Any]:
        call = plain.bind(inputs)

        def checked() -> Any:
            if threading.current_thread() is not threading.main_thread() and not getattr(of_thread, "is_in", False):
                outside.append(threading.get_ident())
            return call()

        return checked

    trial = served(tmp_path, contestant=replace(plain, bind=bind, in_thread=entered), workers=2)
    assert trial.requests == 60
    assert not outside


@pytest.mark.parametrize(("bound_s", "valid"), [(30.0, True), (FIRST_S / 2, False)])
def test_loadgen_counts_the_tokens_of_answers_that_are_made_token_by_token(
    bound_s: float, valid: bool, tmp_path: Path
) -> None:
    pytest.importorskip("mlperf_loadgen", reason="`make test` installs it and runs this")
    asked = LoadGenRun("server", str(tmp_path), percentile=0.9, least_s=0.1, rate_per_s=60.0, first_token_s=bound_s)
    found = serving(tmp_path, generating(Seen()), Seen()).run_loadgen(asked)
    assert (found.errors, found.valid) == ((), valid)
    assert ("first_token" in found.why_invalid) != valid
    assert found.first_token_s["50"] >= FIRST_S
    assert found.per_token_s["50"] >= EACH_S
