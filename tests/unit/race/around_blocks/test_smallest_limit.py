"""The smallest limit is found to its resolution, in few tries, and is never one that ran by luck."""

from __future__ import annotations

from fairlap.race.around_blocks.smallest_memory import MOST_TRIES, Found, smallest_limit
from hypothesis import assume, given, strategies

SHARE = 1 / 32


@given(needs=strategies.integers(1, 10**12), first=strategies.integers(1, 10**12))
def test_the_limit_found_works_and_one_smaller_by_the_resolution_does_not(needs: int, first: int) -> None:
    assume(first * 2**20 >= needs)  # a guess; from nowhere near, doubling uses up the tries
    found = smallest_limit(lambda limit: "" if limit >= needs else "no room", first, 10**13, SHARE)
    assert found.limit is not None
    assert found.limit >= needs > found.limit - found.resolution
    assert found.resolution <= max(1, round(SHARE * max(first, 2 * needs)))


def test_eight_tries_find_it_to_a_thirty_second_when_the_guess_is_good() -> None:
    tried: list[int] = []

    def runs(limit: int) -> str:
        tried.append(limit)
        return "" if limit >= 700 else "no room"

    found = smallest_limit(runs, 1024, 10**6, SHARE)
    assert found == Found(704, 32, 7)
    assert tried == [1024, 512, 768, 640, 704, 672, 704]  # the last one once more


def test_a_limit_that_works_once_and_not_again_is_not_the_answer() -> None:
    lucky = {"left": 1}

    def runs(limit: int) -> str:
        if limit == 512 and lucky["left"]:
            lucky["left"] = 0
            return ""
        return "" if limit >= 700 else "no room"

    found = smallest_limit(runs, 1024, 10**6, SHARE)
    assert found.limit == 704


def test_what_runs_under_no_limit_says_what_it_failed_with() -> None:
    found = smallest_limit(lambda limit: f"no room in {limit}", 10, 35, SHARE)
    assert (found.limit, found.tries) == (None, 3)
    assert found.why == "it did not run under the largest limit that was tried: no room in 35"


def test_one_that_runs_by_turns_ends_without_an_answer() -> None:
    turns = {"taken": 0}

    def runs(limit: int) -> str:
        turns["taken"] += 1
        return "" if turns["taken"] % 2 else "not now"

    found = smallest_limit(runs, 1024, 1024, SHARE)
    assert found.tries <= MOST_TRIES
    assert found.limit is None or found.tries >= 2
