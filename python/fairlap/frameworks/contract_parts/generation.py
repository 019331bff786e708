"""Answers of a model that generates: the prompt, then one token after another through a cache of keys and values.

The tokens that go in are given with the inputs, so that every contestant does the same work and each step's logits can
be compared with the reference. The loop is fairlap's: a step gets its token when the step before has brought the one
that it chose to the host, as a server that streams must, so no contestant can work ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.checks.token_check import CHOSEN_TOKENS, OWN_TOKENS
from fairlap.models.workload import Workload

if TYPE_CHECKING:
    from fairlap.engine.token_stamps import Step, TokenStamps

Tokens = npt.NDArray[np.integer[Any]]

_ALONE = "it hands out no logits, so its answers are proven by their tokens: {}"
_AFTER_HANDED = "each must be the one that the float64 reference prefers, or as near to it as rounding explains"
_AFTER_OWN = (
    "it reads those that it chose itself, and each must be the one that the float64 reference prefers after them"
)


@dataclass(frozen=True)
class Generation:
    """The steps of one contestant. Logits and the state stay in the framework.

    Without ``logits`` the answer is its tokens. A runtime that ``reads_own`` tokens ignores those that it is handed.
    """

    first: Callable[[Tokens], Step]  # of the prompts, one row for each item
    following: Callable[[Any, Tokens], Step]  # of the state and of one token for each item
    logits: Callable[[Any], npt.NDArray[Any]] | None  # of a step, as an array; None if it hands out none
    cache_bytes: Callable[[Any], int] | None = None  # that a state holds for keys and values; None if that is unknown
    reads_own: bool = False


@dataclass(frozen=True)
class AnswerCalls:
    """What a contestant that generates has in place of a function of its inputs."""

    work: Workload
    generation: Generation
    stamps: TokenStamps
    stamps_of_new: TokenStamps

    def bind(self, inputs: Arrays) -> Callable[[], Any]:
        return self._bound(inputs, self.stamps)

    def bind_new(self, inputs: Arrays) -> Callable[[], Any]:
        return self._bound(inputs, self.stamps_of_new)

    def _bound(self, inputs: Arrays, stamps: TokenStamps) -> Callable[[], Any]:
        prompt, tokens = self._tokens(inputs)
        return stamps.answer(self.generation.first, self.generation.following, prompt, tokens, self.work.batch)

    def outputs(self, result: tuple[Sequence[list[int]], Sequence[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Collect the logits of every step, and those of the chosen tokens; or the tokens alone.

        The latter logits are the largest if the contestant chose rightly.
        """
        chosen, of_step = np.array(result[0]).T, self.generation.logits
        if of_step is None:
            name = OWN_TOKENS if self.generation.reads_own else CHOSEN_TOKENS
            return {name: np.ascontiguousarray(chosen, np.int64)}
        logits = np.stack([np.asarray(of_step(each), np.float32) for each in result[1]], axis=1)
        known = (chosen >= 0) & (chosen < logits.shape[2])
        taken = np.take_along_axis(logits, np.where(known, chosen, 0)[..., None], axis=2)[..., 0]
        names = [tensor.name for tensor in self.work.spec.outputs]
        return dict(zip(names, (logits, np.where(known, taken, np.float32(np.nan))), strict=True))

    def cache_bytes(self) -> int:
        """Answer once more, without a stamp, and count what is held for keys and values after the last token."""
        prompt, tokens = self._tokens(self.work.inputs)
        assert self.generation.cache_bytes is not None
        _, _, state = self.generation.first(prompt)
        for each in tokens:
            _, _, state = self.generation.following(state, each)
        return self.generation.cache_bytes(state)

    def _tokens(self, inputs: Arrays) -> tuple[Tokens, list[Tokens]]:
        """Take apart the prompt and the tokens that are handed over after it, in the order of the steps."""
        named = self.work.spec.continuation
        prompt = next(array for name, array in inputs.items() if name != named)
        continuation = inputs[named]
        return prompt, [np.ascontiguousarray(continuation[:, [place]]) for place in range(continuation.shape[1])]


class KeptPrompt:
    """What two prompts in a row begin with, of a runtime that keeps keys and values from one answer to the next."""

    OPTION = "prefix"
    IN_FORCE: ClassVar = {OPTION: "kept from the prompt before"}

    def __init__(self) -> None:
        self._before: Tokens = np.empty((0, 0), np.int64)

    def known(self, prompt: Tokens) -> int:
        """Count the first tokens that are those of the prompt before, in every item. The last one is always read."""
        before, self._before = self._before, prompt
        if before.shape != prompt.shape:
            return 0
        same = np.logical_and.accumulate((before == prompt).all(axis=0))
        return int(min(same.sum(), prompt.shape[1] - 1))


def bytes_of(arrays: Any) -> int:
    """Add up arrays of any framework that has their size, in lists of any depth."""
    if isinstance(arrays, list | tuple):
        return sum(bytes_of(each) for each in arrays)
    return int(arrays.nbytes)


def answer_calls(work: Workload, generation: Generation, *notices: Notice) -> dict[str, Any]:
    """Derive the fields of a contestant that follow from its steps; ``notices`` are further ones."""
    from fairlap.engine.token_stamps import TokenStamps

    if generation.logits is None:
        how = _AFTER_OWN if generation.reads_own else _AFTER_HANDED
        notices = (Notice("W_TOKENS_ALONE", _ALONE.format(how)), *notices)

    tokens = work.spec.tokens_of_an_answer
    calls = AnswerCalls(work, generation, TokenStamps(tokens), TokenStamps(tokens, most_answers=1))
    return {
        "bind": calls.bind,
        "bind_new": calls.bind_new,
        "outputs": calls.outputs,
        "done": None,
        "stamps": calls.stamps,
        "stamps_of_new": calls.stamps_of_new,
        "cache_bytes": calls.cache_bytes if generation.cache_bytes else None,
        "notices": (lambda: notices) if notices else None,
    }
