"""What servers of language models are asked: prompts, the length of answers, how requests come, and their bounds."""

from __future__ import annotations

import msgspec

from fairlap import quantity_text
from fairlap.request.fields.load import duration_text
from fairlap.request.fields.traffic import Traffic


def clients_text(clients: str) -> str:
    return quantity_text.count(int(clients), "client") if clients.isdecimal() else f"clients on {clients}"


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


class Overload(msgspec.Struct, frozen=True):
    """A rate beyond what a server can serve, for a while; then the usual one is back, and its recovery is watched."""

    rate_per_s: float
    lasts_s: float
    watched_s: float
    band: float  # it has recovered when latency is at most this share above what it was before

    @property
    def text(self) -> str:
        step = f"{quantity_text.number(self.rate_per_s)}/s for {duration_text(self.lasts_s)}"
        return f"{step}, then watched for {duration_text(self.watched_s)}"


class Manners(msgspec.Struct, frozen=True):
    """Shares of the requests whose clients are not like others."""

    slow_share: float = 0.0
    slow_bytes_per_s: float = 0.0  # at which they read
    abort_share: float = 0.0  # hang up before their answer has ended

    def __bool__(self) -> bool:
        return self.slow_share > 0 or self.abort_share > 0

    @property
    def texts(self) -> list[str]:
        at = f"slow at {quantity_text.size(self.slow_bytes_per_s)}/s"
        given = ((self.slow_share, at), (self.abort_share, "hanging up"))
        return [f"{quantity_text.share(share)} {what}" for share, what in given if share]


OF_FILE = "file"
"""The lengths of answers that each line of the file has."""


class StreamLoad(msgspec.Struct, frozen=True):
    """Of a work. Requests come as ``arrivals`` has it, or when a user has thought; else rates are searched.

    ``ca`` and ``verified`` are about certificates.
    """

    prompts: str  # the file, or a trace
    sha256: str  # of its content
    tokens: int  # of each answer, or a usual one
    lengths: str = ""  # where not all answers have as many: as in --tokens, or OF_FILE
    rate_per_s: float | None = None
    arrivals: str = "poisson"  # as in --arrivals
    concurrency: int | None = None
    think_s: float = 0.0  # on average
    shared_prefix: float | None = 0.0  # of each prompt; None for that of a trace
    requests_in_a_session: float = 1.0  # on average; more in conversations
    bounds: Bounds = Bounds()
    connections: int | None = None  # at most, of each server
    trial_s: float | None = None
    ca: str = ""
    verified: bool = True
    traffic: Traffic | None = None  # that is to be served, of a search
    overload: Overload | None = None  # in the middle of each turn
    manners: Manners = Manners()
    clients: str = ""  # that share the load: a number of processes, or a cluster; empty for this process alone

    @property
    def identity(self) -> StreamLoad:
        """What is asked for, wherever its files are; without how long, unless that is how much of a trace."""
        trial_s = self.trial_s if self.replays else None
        return msgspec.structs.replace(self, prompts="", ca="", trial_s=trial_s, traffic=None, clients="")

    @property
    def replays(self) -> bool:
        """Whether requests come as they were recorded."""
        return self.concurrency is None and self.arrivals == "trace"

    @property
    def searches(self) -> bool:
        return self.rate_per_s is None and self.concurrency is None and not self.replays

    @property
    def text(self) -> str:
        most = [] if self.connections is None else [f"up to {quantity_text.count(self.connections, 'connection')}"]
        shared = [clients_text(self.clients)] if self.clients else []
        return ", ".join([self._lengths, *self._how, *self._beyond, *self._prefix, *self.bounds.texts, *most, *shared])

    @property
    def _lengths(self) -> str:
        if self.lengths == OF_FILE:
            return "tokens as in the file"
        return f"{self.lengths} tokens" if self.lengths else quantity_text.count(self.tokens, "token")

    @property
    def _how(self) -> list[str]:
        if self.concurrency is not None:
            thinking = f" who think {quantity_text.seconds(self.think_s)}" if self.think_s else ""
            return [quantity_text.count(self.concurrency, "user") + thinking]
        unit = "requests" if self.requests_in_a_session == 1 else "conversations"
        rate = [] if self.rate_per_s is None else [f"{quantity_text.number(self.rate_per_s)} {unit}/s"]
        thinking = f"users think {quantity_text.seconds(self.think_s)}" if self.think_s else ""
        arrivals = {"poisson": "", "trace": "recorded" if rate else "as recorded"}.get(self.arrivals, self.arrivals)
        return [*filter(None, [arrivals, *rate, thinking])]

    @property
    def _beyond(self) -> list[str]:
        return [*([] if self.overload is None else [self.overload.text]), *self.manners.texts]

    @property
    def _prefix(self) -> list[str]:
        if self.shared_prefix == 1:
            return ["prompts as they are"]
        return [f"{quantity_text.share(self.shared_prefix)} of each prompt shared"] if self.shared_prefix else []
