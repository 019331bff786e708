"""T5's steps in any library of arrays: what the libraries call in different ways, they bring with them.

Keys and values are [items, heads, tokens, size of a head], of every layer in turn: those of the decoder's own tokens,
then those of the prompt, which the first step makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from fairlap.bench_models.t5.spec import EPSILON, Layers, bucket
from fairlap.bench_models.t5_generate.spec import PROMPT, TOKENS

NEVER = -1e9
OF_PROMPT = np.array([[bucket(key - query, both_ways=True) for key in range(PROMPT)] for query in range(PROMPT)])
LAST_FIRST = np.array([bucket(-apart, both_ways=False) for apart in reversed(range(TOKENS))])


class Library(Protocol):
    of_prompt: Any  # ``OF_PROMPT`` and ``LAST_FIRST``, as arrays that it takes for places
    last_first: Any

    def rows(self, table: Any, places: Any) -> Any: ...

    def linear(self, hidden: Any, weight: Any) -> Any:
        """Multiply with a matrix (out, in)."""

    def norm(self, hidden: Any, weight: Any, epsilon: float) -> Any:
        """Divide by the root of the mean square."""

    def relu(self, hidden: Any) -> Any: ...

    def by_head(self, hidden: Any, heads: int) -> Any: ...

    def attended(self, query: Any, keys: Any, values: Any, nearness: Any) -> Any:
        """Attend without dividing the scores, and join the heads; ``nearness`` is added to them, or None."""

    def turned(self, nearness: Any) -> Any:
        """Put the last axis, of heads, first, and an axis for items before it."""

    def joined(self, held: Any, new: Any) -> Any:
        """Put tokens after others."""

    def written(self, held: Any, new: Any, position: Any) -> Any: ...

    def apart(self, position: Any) -> Any:
        """Count from a position back to each place of a cache for all tokens; below 0 for later ones."""

    def hidden_where(self, later: Any, nearness: Any) -> Any:
        """Put ``NEVER`` where it is later."""

    def length(self, held: Any) -> Any: ...

    def last(self, array: Any, count: Any) -> Any:
        """Take so many of the last elements."""


class Steps:
    """``weights`` are those of the spec by name; ``library`` is what they are arrays of."""

    def __init__(self, library: Library, layers: Layers, weights: Mapping[str, Any]) -> None:
        self._library, self._layers, self._weights = library, layers, weights

    @property
    def _heads(self) -> int:
        return self._layers.heads.queries

    def of_prompt(self, prompt: Any) -> list[Any]:
        """Read the prompt, and return its keys and values for every layer of the decoder."""
        use = self._library
        hidden = use.rows(self._weights["shared.weight"], prompt)
        nearness = use.turned(use.rows(self._weights["encoder.nearness"], use.of_prompt))
        for layer in range(self._layers.count):
            name = f"encoder.layers.{layer}"
            normed = self._norm(f"{name}.self", hidden)
            hidden = hidden + self._attention(f"{name}.self", normed, self._pair(f"{name}.self", normed), nearness)
            hidden = hidden + self._perceptron(name, hidden)
        read = self._norm("encoder", hidden)
        return [
            each for layer in range(self._layers.count) for each in self._pair(f"decoder.layers.{layer}.cross", read)
        ]

    def step(self, tokens: Any, own: Sequence[Any], of_prompt: Sequence[Any], position: Any = None) -> tuple[Any, ...]:
        """Read one token of each item; return logits, and the arrays of the decoder's tokens with those of this one.

        With a position, these have room for all tokens; else they are those of the tokens before, or none.
        """
        use, weights = self._library, self._weights
        hidden = use.rows(weights["shared.weight"], tokens)
        nearness, grown = self._nearness(own, position), []
        for layer in range(self._layers.count):
            name, both = f"decoder.layers.{layer}", slice(2 * layer, 2 * layer + 2)
            normed = self._norm(f"{name}.self", hidden)
            pair = self._pair(f"{name}.self", normed)
            if position is not None:
                pair = [use.written(held, new, position) for held, new in zip(own[both], pair, strict=True)]
            elif own:
                pair = [use.joined(held, new) for held, new in zip(own[both], pair, strict=True)]
            grown += pair
            hidden = hidden + self._attention(f"{name}.self", normed, pair, nearness)
            normed = self._norm(f"{name}.cross", hidden)
            hidden = hidden + self._attention(f"{name}.cross", normed, of_prompt[both], None)
            hidden = hidden + self._perceptron(name, hidden)
        scaled = self._norm("decoder", hidden)[:, 0] * self._layers.width**-0.5
        return (use.linear(scaled, weights["shared.weight"]), *grown)

    def _nearness(self, own: Sequence[Any], position: Any) -> Any:
        use, table = self._library, self._weights["decoder.nearness"]
        if position is None:
            known = use.length(own[0]) if own else 0
            return use.turned(use.rows(table, use.last(use.last_first, known + 1)[None]))
        apart = use.apart(position)
        found = use.turned(use.rows(table, use.rows(use.last_first, TOKENS - 1 - abs(apart))[None]))
        return use.hidden_where(apart < 0, found)

    def _norm(self, name: str, hidden: Any) -> Any:
        return self._library.norm(hidden, self._weights[f"{name}.norm.weight"], EPSILON)

    def _linear(self, name: str, hidden: Any) -> Any:
        return self._library.linear(hidden, self._weights[f"{name}.weight"])

    def _pair(self, name: str, seen: Any) -> list[Any]:
        return [self._library.by_head(self._linear(f"{name}.{part}", seen), self._heads) for part in ("key", "value")]

    def _attention(self, name: str, normed: Any, pair: Sequence[Any], nearness: Any) -> Any:
        query = self._library.by_head(self._linear(f"{name}.query", normed), self._heads)
        keys, values = pair
        return self._linear(f"{name}.output", self._library.attended(query, keys, values, nearness))

    def _perceptron(self, name: str, hidden: Any) -> Any:
        wide = self._library.relu(self._linear(f"{name}.first", self._norm(name, hidden)))
        return self._linear(f"{name}.second", wide)
