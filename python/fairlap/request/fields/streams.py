"""What servers of language models are asked: prompts, the length of answers, how requests come, and their bounds."""

from __future__ import annotations

import msgspec

from fairlap import quantity_text
from fairlap.request.fields.load import duration_text


class Bounds(msgspec.Struct, frozen=True):
    """On ninety-nine of a hundred requests. None where there is none."""

    first_token_s: float | None = None
    per_token_s: float | None = None  # of the tokens after the first, on average

    def __bool__(self) -> bool:
        return self.first_token_s is not None or self.per_token_s is not None

    @property
    def texts(self) -> list[str]:
        given = ((self.first_token_s, "first token"), (self.per_token_s, "per token"))
        return [f"{what} within {duration_text(bound)}" for bound, what in given if bound is not None]


class StreamLoad(msgspec.Struct, frozen=True):
    """Of a work. Requests are due at random at a rate, or when a user has its answer; else rates are searched.

    ``ca`` and ``verified`` are about certificates.
    """

    prompts: str  # the file
    sha256: str  # of its content
    tokens: int  # of each answer
    rate_per_s: float | None = None
    concurrency: int | None = None
    bounds: Bounds = Bounds()
    connections: int | None = None  # at most, of each server
    trial_s: float | None = None
    ca: str = ""
    verified: bool = True

    @property
    def identity(self) -> StreamLoad:
        """What is asked for, wherever its files are, and without how long it is measured."""
        return msgspec.structs.replace(self, prompts="", ca="", trial_s=None)

    @property
    def searches(self) -> bool:
        return self.rate_per_s is None and self.concurrency is None

    @property
    def text(self) -> str:
        how = [] if self.rate_per_s is None else [f"{quantity_text.number(self.rate_per_s)} requests/s"]
        how += [] if self.concurrency is None else [quantity_text.count(self.concurrency, "user")]
        most = [] if self.connections is None else [f"up to {quantity_text.count(self.connections, 'connection')}"]
        return ", ".join([f"{quantity_text.count(self.tokens, 'token')}", *how, *self.bounds.texts, *most])
