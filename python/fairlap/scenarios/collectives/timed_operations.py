"""Time collective operations as one rank. Whole numbers are exchanged, so that every sum is exact and is checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.frameworks.contract import Collectives, Unsupported
from fairlap.request.fields.scale import Collective, Rank
from fairlap.scenarios.collectives.collective_messages import COPY, CollectiveTimed, TimeCollective

Array = npt.NDArray[np.float32]

_LARGEST = 1000  # so that the sums of 16,000 ranks are exact in float32
_BEFORE, _BETWEEN, _AFTER = 0, 1, 2  # checked calls
_SHARES_CHECKED = (0.5,)


def timed(collectives: Collectives, request: TimeCollective, rank: Rank) -> CollectiveTimed:
    """All ranks make the same calls in the same order. Roots of broadcasts take turns, so that no rank runs ahead."""
    from fairlap import engine

    elements = max(1, request.bytes // 4)
    if request.operation == COPY:
        return _copied(elements, request)
    operation: Collective = request.operation  # type: ignore[assignment]  # it is no copy
    roots = range(rank.count) if operation == "broadcast" else range(1)
    wrong: list[str] = []

    def fresh(call: int, root: int) -> Callable[[], Any]:
        return collectives.bind(operation, given(call, rank.number, elements), root)

    def look(call: int, root: int, result: Any) -> None:
        expected = right(operation, call, rank.count, elements, root)
        if not np.array_equal(collectives.output(result), expected):
            wrong.append(f"{operation} of {request.bytes} bytes gave rank {rank.number} something else than it should")

    def checked(call: int) -> None:
        for root in roots:
            result = fresh(call, root)()
            if collectives.done is not None:
                collectives.done(result)
            look(call, root, result)

    try:
        checked(_BEFORE)
        # Zeros stay what they are where a call writes its sum over what was given; filled, so that memory is there.
        bound = [collectives.bind(operation, np.full(elements, 0, np.float32), root) for root in roots]
    except Unsupported as refused:
        return CollectiveTimed(why=str(refused))
    measurement = engine.time_calls(
        bound[0],
        done=collectives.done,
        samples=request.samples,
        warmup=request.warmup,
        calls_per_sample=request.calls_per_sample,
        in_turn=bound[1:],
        drawn=engine.DrawnCalls(
            _SHARES_CHECKED, lambda _number: fresh(_BETWEEN, 0), lambda _number, result, _ns: look(_BETWEEN, 0, result)
        ),
    )
    checked(_AFTER)
    return CollectiveTimed(tuple(map(float, measurement.wall_ns)), wrong=wrong[0] if wrong else "")


def given(call: int, rank: int, elements: int) -> Array:
    """Draw what a rank gives in a checked call."""
    drawn = np.random.default_rng([call, rank, elements]).integers(-_LARGEST, _LARGEST, elements)
    return drawn.astype(np.float32)


def right(operation: Collective, call: int, ranks: int, elements: int, root: int) -> Array:
    """Compute what every rank gets."""
    if operation == "broadcast":
        return given(call, root, elements)
    parts = [given(call, number, elements) for number in range(ranks)]
    return np.concatenate(parts) if operation == "all_gather" else np.sum(parts, axis=0, dtype=np.float32)


def _copied(elements: int, request: TimeCollective) -> CollectiveTimed:
    from fairlap import engine

    source, target = np.full(elements, 1, np.float32), np.full(elements, 0, np.float32)
    measurement = engine.time_calls(
        partial(np.copyto, target, source),
        samples=request.samples,
        warmup=request.warmup,
        calls_per_sample=request.calls_per_sample,
    )
    return CollectiveTimed(tuple(map(float, measurement.wall_ns)))
