"""A contestant under load whose service time is known: it sleeps. Its answers are the item and twice the item."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fairlap.request.fields.load import Scenario
from fairlap.scenarios.load.loadgen_messages import LoadGenRun
from fairlap.scenarios.load.system_under_test import FirstTokens, Issue

SERVICE_S = 0.002


def request(scenario: Scenario, logs: Path, **parts: Any) -> LoadGenRun:
    """Make the shortest request that LoadGen calls VALID, for this contestant."""
    parts = {"least_s": 0.2, "percentile": 0.9, "samples_per_query": 4, "rate_per_s": 300.0, "bound_s": 5.0} | parts
    return LoadGenRun(scenario, str(logs), **parts)


def answers(items: Sequence[int], count: int) -> list[np.ndarray]:
    return [np.array([item, 2 * item], np.float32) for item in items[:count]]


def sleeping(
    service_s: float = SERVICE_S,
    largest_batch: int = 1,
    threads: int = 1,
    longest_wait_s: float = 0.0,
    before: Callable[[Sequence[int]], object] = lambda items: None,
    **parts: Any,
) -> Issue:
    """Make an issue in which a group takes as long as an item; ``before`` is called first, with the items."""

    def serve(items: Sequence[int]) -> list[int]:
        before(items)
        time.sleep(service_s)
        return list(items)

    return Issue([serve] * threads, answers, largest_batch, longest_wait_s, **parts)


def generating(first_s: float, each_s: float, tokens: int, wrote: list[tuple[float, float]] | None = None) -> Issue:
    """Make an issue whose answers have so many tokens, and that writes down the times to the first and of the rest."""
    first_tokens = FirstTokens()

    def serve(items: Sequence[int]) -> list[int]:
        began_s = time.monotonic()
        time.sleep(first_s)
        had_first_s = time.monotonic()
        first_tokens()
        time.sleep(each_s * (tokens - 1))
        if wrote is not None:
            wrote.append((had_first_s - began_s, time.monotonic() - had_first_s))
        return list(items)

    return Issue([serve], answers, tokens=tokens, first_tokens=first_tokens)
