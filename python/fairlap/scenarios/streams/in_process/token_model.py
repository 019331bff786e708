"""What a model in a process is to its program: prompts become tokens, tokens follow one after another, and are text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar


class TokenModel(ABC):
    """A model that was loaded. It answers one prompt at a time, greedily."""

    ends: frozenset[int]  # tokens with which an answer ends

    @classmethod
    @abstractmethod
    def load(cls, folder: str, device: str) -> TokenModel: ...

    @abstractmethod
    def tokens_of(self, prompt: str | list[dict[str, Any]]) -> list[int]:
        """Read a text, or the messages of a chat by the model's template."""

    @abstractmethod
    def following(self, prompt: list[int], most: int) -> Iterator[int]:
        """Yield so many tokens, each as soon as it is chosen."""

    @abstractmethod
    def decoder(self) -> Callable[[int], str]:
        """Make a function that turns the tokens of an answer into text, in order; empty while a letter is not whole."""


class Answer:
    """What of an answer is sent: text and counts, until its length or its end."""

    LENGTH, STOP = "length", "stop"
    MOST: ClassVar = 2**20

    def __init__(self, model: TokenModel, asked: dict[str, Any]) -> None:
        messages = asked.get("messages")
        self.prompt = model.tokens_of(asked["prompt"] if messages is None else messages)
        self._model = model
        self._most = min(int(asked["max_tokens"]), self.MOST)
        self._to_the_end = bool(asked.get("ignore_eos"))
        self.finish = self.LENGTH

    def pieces(self) -> Iterator[str]:
        """Yield the text of each token."""
        text_of = self._model.decoder()
        for token in self._model.following(self.prompt, self._most):
            yield text_of(token)
            if token in self._model.ends and not self._to_the_end:
                self.finish = self.STOP
                return
