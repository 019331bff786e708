"""Every token is stamped after the server wrote it, and each request counts from when it was due or its user asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.engine.load import random_arrivals_ns
from fairlap.scenarios.streams.figures import Tokens, gaps_ns
from loaded_streams import TOKENS, by_prompt, loaded
from machine_marks import needs
from stream_server import StreamingServer, in_a_process

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")


@pytest.mark.parametrize("events", [(1,), (1, 2)])
def test_tokens_come_after_the_server_wrote_them_and_as_many_as_it_wrote(
    events: tuple[int, ...], tmp_path: Path
) -> None:
    behaviour: dict[str, Any] = {"first_ms": 5.0, "each_ms": 1.0, "tokens_in_events": events}
    with StreamingServer(**behaviour, split=True, comments=True) as server:
        served = loaded(server, tmp_path, random_arrivals_ns(12, 50, 3), 8, rate=50.0)
        truths = by_prompt(server.truths[-12:])
    assert not any(each.failure for each in served.answers)
    for prompt, answer in zip(served.prompts.tolist(), served.answers, strict=True):
        came = np.repeat(np.array(answer.came_ns), answer.arrived)
        assert len(came) == TOKENS
        assert (came > np.array(truths[f"number {prompt}"].tokens_ns)).all()
    assert len(gaps_ns(served)) == 12 * (TOKENS - 1)


def test_a_wait_for_a_connection_counts_from_when_the_request_was_due(tmp_path: Path) -> None:
    with in_a_process(first_ms=20.0) as server:
        served = loaded(server, tmp_path, np.zeros(4), 1, rate=1000.0)
    first_ns = np.sort(Tokens.of(served).first_ns)
    assert (first_ns >= 20e6 * np.arange(1, 5)).all()


def test_users_ask_again_when_they_have_their_answer(tmp_path: Path) -> None:
    with in_a_process(first_ms=20.0, each_ms=1.0) as server:
        served = loaded(server, tmp_path, np.zeros(9), 3, concurrency=3)
    truths = server.truths[-9:]
    open_at_once = [sum(other.came_ns <= each.came_ns < other.tokens_ns[-1] for other in truths) for each in truths]
    assert max(open_at_once) == 3
    first_ns = Tokens.of(served).first_ns
    assert (first_ns >= 20e6).all()
    assert np.median(first_ns) < 2 * 20e6 + 20e6  # not from the start of the load
