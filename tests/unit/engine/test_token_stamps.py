"""Answers are asked for token by token, and each token is stamped when it is on the host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlap.engine.token_stamps import Step, TokenStamps

MS = 1e6
TOKENS = 4


def first(prompt: str) -> Step:
    time.sleep(0.02)
    return [0], prompt, [prompt]


def following(state: list[str], token: str) -> Step:
    time.sleep(0.005)
    return [len(state)], token, [*state, token]


def test_a_first_token_of_20_ms_and_others_of_5_ms_are_stamped_as_such() -> None:
    stamps = TokenStamps(TOKENS)
    slept_ns: list[int] = []

    def slept(step: Callable[..., Step]) -> Callable[..., Step]:
        def timed(*given: Any) -> Step:
            began_ns = time.perf_counter_ns()
            found = step(*given)
            slept_ns.append(time.perf_counter_ns() - began_ns)
            return found

        return timed

    answer, took_ns = stamps.answer(slept(first), slept(following), "p", ["a", "b", "c"], 1), []
    for _ in range(7):
        began_ns = time.perf_counter_ns()
        assert answer() == ([[0], [1], [2], [3]], ["p", "a", "b", "c"])
        took_ns.append(time.perf_counter_ns() - began_ns)
    came_ns = stamps.newest(100)
    assert came_ns.shape == (7, TOKENS)
    slept_until_ns = np.array(slept_ns).reshape(7, TOKENS).cumsum(axis=1)
    assert (came_ns[:, 0] >= 20 * MS).all()
    assert (np.diff(came_ns, axis=1) >= 5 * MS).all()
    assert (came_ns >= slept_until_ns).all()
    assert (came_ns[:, -1] <= took_ns).all()
    # Other programs delay single stamps; the quickest shows that nothing else is between a token and its stamp.
    assert ((came_ns - slept_until_ns).min(axis=0) < 5 * MS).all()


def test_a_step_sees_no_token_before_it_has_chosen_the_one_before() -> None:
    seen: list[str] = []

    def step(_state: Any, token: str) -> Step:
        seen.append(token)
        assert len(seen) == int(token)
        return [int(token)], None, None

    TokenStamps(4).answer(lambda _: ([0], None, None), step, None, ["1", "2", "3"], 1)()
    assert seen == ["1", "2", "3"]


def test_the_newest_answers_are_kept_and_those_not_recorded_leave_nothing() -> None:
    stamps = TokenStamps(1)
    naps_s = iter([0.001, 0.1, 0.01])

    def nap(_: Any) -> Step:
        time.sleep(next(naps_s))
        return [0], None, None

    answer = stamps.answer(nap, following, None, [], 1)
    answer()
    stamps.record(False)
    answer()
    stamps.record(True)
    began_ns = time.perf_counter_ns()
    answer()
    took_ns = time.perf_counter_ns() - began_ns
    assert len(stamps.newest(5)) == 2
    [[last_ns]] = stamps.newest(1)
    assert 10 * MS <= last_ns <= took_ns


def test_answers_of_several_threads_keep_their_threads() -> None:
    stamps = TokenStamps(TOKENS)
    answer = stamps.answer(first, following, "p", ["a", "b", "c"], 1)
    threads = [threading.Thread(target=answer) for _ in range(3)]
    for thread in threads:
        thread.start()
    idents = {thread.ident for thread in threads}
    for thread in threads:
        thread.join()
    found, began_ns, came_ns = stamps.with_threads(10)
    assert set(found.tolist()) == idents
    assert (np.diff(began_ns) >= 0).all()
    assert (came_ns[:, -1] > 35 * MS * 0.99).all()


@pytest.mark.parametrize(
    "step",
    [
        (np.array([1]), None, None),  # an array may still be computed
        ([1, 2], None, None),  # of two items, where there is one
        ([1.0], None, None),
        (1, None, None),
        ([1], None),
        [[1], None, None],
        None,
    ],
)
def test_a_step_that_brings_no_token_to_the_host_is_an_error(step: Any) -> None:
    stamps = TokenStamps(1)
    with pytest.raises(TypeError):
        stamps.answer(lambda _: step, following, None, [], 1)()
    assert len(stamps.newest(1)) == 0


def test_an_error_of_a_step_ends_the_answer_and_leaves_no_row() -> None:
    stamps = TokenStamps(2)

    def broken(_state: Any, _token: Any) -> Step:
        raise RuntimeError("no kernel")

    with pytest.raises(RuntimeError, match="no kernel"):
        stamps.answer(first, broken, "p", ["a"], 1)()
    assert len(stamps.newest(1)) == 0


def test_stamps_for_another_number_of_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="one token more"):
        TokenStamps(3).answer(first, following, "p", ["a"], 1)
