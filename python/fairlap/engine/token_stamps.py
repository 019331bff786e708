"""Ask for an answer token by token, and stamp each token on the native clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlap.engine import _native
from fairlap.engine.clocks import clock_named

_MOST_BYTES = 4 * 2**20
_HEAD = 2  # the thread, and when the answer began

Step = tuple[list[int], Any, Any]
"""The token that was chosen for each item, on the host; its logits; and the state that the next step takes."""


class TokenStamps:
    """Of answers of so many tokens. Their memory is taken beforehand, and the newest answers stay in it."""

    def __init__(self, tokens: int, most_answers: int | None = None) -> None:
        self.tokens = tokens
        self.most_answers = most_answers or max(1, _MOST_BYTES // (8 * (tokens + _HEAD)))
        self._stamps = _native.AnswerStamps(tokens, self.most_answers, clock_named())
        self._notify: Callable[[], None] | None = None

    def answer(
        self,
        first: Callable[[Any], Step],
        following: Callable[[Any, Any], Step],
        prompt: Any,
        tokens: Sequence[Any],
        items: int,
    ) -> Callable[[], tuple[list[list[int]], list[Any]]]:
        """Make a callable for one answer to ``prompt``.

        It hands a token over when the one before was chosen, and returns what each step chose and its logits.
        """
        begin = first if self._notify is None else _notifying(first, self._notify)
        return _native.PythonAnswer(begin, following, prompt, list(tokens), items, self._stamps)

    @contextmanager
    def notifying(self, notify: Callable[[], None]) -> Iterator[None]:
        """Answers made in here call it when their first token was chosen, which is part of their time."""
        self._notify = notify
        try:
            yield
        finally:
            self._notify = None

    def record(self, on: bool) -> None:
        self._stamps.record(on)

    def newest(self, count: int) -> npt.NDArray[np.float64]:
        """Return a row for each of the newest complete answers, the oldest first.

        A row holds the time of each token since its answer began, in ns.
        """
        return self.with_threads(count)[2]

    def with_threads(
        self, count: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the same rows, after the threads that answered and when each answer began."""
        rows = np.asarray(self._stamps.newest(count)).reshape(-1, self.tokens + _HEAD)
        return rows[:, 0].astype(np.int64), rows[:, 1], rows[:, _HEAD:]


def _notifying(first: Callable[[Any], Step], notify: Callable[[], None]) -> Callable[[Any], Step]:
    def begin(prompt: Any) -> Step:
        step = first(prompt)
        notify()
        return step

    return begin
