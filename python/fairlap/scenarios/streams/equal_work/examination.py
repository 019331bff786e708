"""What is found out of a server before it is loaded: what it understands, what it answers alone, what it remembers."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.scenarios.contract import Unqualified
from fairlap.scenarios.streams.answers import Answer, answer_in
from fairlap.scenarios.streams.clients.client import Client
from fairlap.scenarios.streams.clients.client_of_server import client_for
from fairlap.scenarios.streams.equal_work.prefix_cache import WARM_CACHE, reported_share
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.protocols.contract import Fields
from fairlap.scenarios.streams.servers import StreamServer

KEPT_ANSWERS = "E_KEPT_ANSWERS"
_NOT_UNDERSTOOD = (400, 422)
_ALONE = 4  # prompts
_COMPARED = 6  # answers to one prompt, and to as many new ones
_COMPARED_AGAIN = 3
_TIMES_AS_LONG, _LONGER_NS = 3.0, 1e6
_TIMES_FIRST = 2.0
_TOKENS_COMPARED = 16
_LEAST_REPORTED = 0.1  # as a share of a prompt's tokens


@dataclass(frozen=True)
class Examined:
    fields: Fields
    answers: tuple[Answer, ...]  # to the first prompts, one after the other
    alone_s: float  # what an answer takes
    http_version: str
    why_not: Unqualified | None = None  # to be loaded
    warnings: tuple[Notice, ...] = ()
    bytes_per_token: float = 0.0  # of its answers, without what is around each event


def examine(server: StreamServer, certificates: ssl.SSLContext, prompts: Sequence[Prompt], tokens: int) -> Examined:
    client = client_for(server, certificates, tokens)
    try:
        return _examined(client, server, prompts, tokens)
    finally:
        client.close()


def _examined(client: Client, server: StreamServer, prompts: Sequence[Prompt], tokens: int) -> Examined:
    client.connect()
    fields = _understood(client, server, prompts[0], tokens)
    answers, times_s, sizes = [], [], []
    for prompt in prompts[:_ALONE]:
        raw = client.ask(server.body(prompt, tokens, fields))
        answer = answer_in(raw, server)
        if answer.failure is not None:
            why = Unqualified(answer.failure.text, answer.failure.code)
            return Examined(fields, (), 0.0, client.http_version, why)
        answers.append(answer)
        times_s.append((raw.ended_ns - raw.began_ns) / 1e9)
        sizes.append(sum(len(data) for _, data in raw.events) / answer.tokens)
    found = Examined(fields, tuple(answers), float(np.median(times_s)), client.http_version, bytes_per_token=max(sizes))
    remembered = _remembered(client, server, prompts[0], min(tokens, _TOKENS_COMPARED), fields)
    if isinstance(remembered, Unqualified):
        return replace(found, why_not=remembered)
    return replace(found, warnings=remembered)


def _understood(client: Client, server: StreamServer, prompt: Prompt, tokens: int) -> Fields:
    *most, last = server.protocol.fields
    for fields in most:
        if client.ask(server.body(prompt, tokens, fields)).status not in _NOT_UNDERSTOOD:
            return fields
    return last


def _remembered(
    client: Client, server: StreamServer, prompt: Prompt, tokens: int, fields: Fields
) -> Unqualified | tuple[Notice, ...]:
    """Compare the time of one prompt over and over with that of prompts that begin as none before.

    As in a load on models: answers are kept where tokens after the first come much faster, time after time. Where the
    first one does, or the server reports cached tokens, how prompts begin is.
    """
    kept, warm, reported = [], [], []
    for _ in range(_COMPARED_AGAIN):
        new = [prompt.beginning_with(secrets.token_hex(8)) for _ in range(_COMPARED)]  # no seed: never seen before
        once = [_asked_alone(client, server.body(each, tokens, fields), server) for each in new]
        again = [_asked_alone(client, server.body(new[0], tokens, fields), server) for _ in new]
        (first_new, whole_new), (first, whole) = (np.median([each.times_ns for each in of], 0) for of in (once, again))
        kept.append(_much_longer(whole_new - first_new, whole - first, _TIMES_AS_LONG))
        warm.append(_much_longer(first_new, first, _TIMES_FIRST))
        reported.append(reported_share([each.answer for each in again]) - reported_share([once[-1].answer]))
        if not kept[-1] and not warm[-1]:
            break
    if all(kept):
        text = f"tokens after the first took {kept[-1]} times as long for new prompts as for one asked before"
        return Unqualified(f"{text}: its answers are kept", KEPT_ANSWERS)
    if all(warm):
        text = f"first tokens of new prompts took {warm[-1]} times as long as of one asked before"
    elif min(reported) > _LEAST_REPORTED:
        text = f"it took {quantity_text.share(reported[-1])} of the tokens of a prompt asked before from its cache"
    else:
        return ()
    return (Notice(WARM_CACHE, f"{text}: it keeps how prompts begin"),)


@dataclass(frozen=True)
class _Alone:
    answer: Answer
    times_ns: tuple[float, float]  # from the request to the first token, and to the last


def _asked_alone(client: Client, body: bytes, server: StreamServer) -> _Alone:
    raw = client.ask(body)
    answer = answer_in(raw, server)
    if answer.failure is not None:
        return _Alone(answer, (np.nan, np.nan))
    return _Alone(answer, (float(answer.came_ns[0] - raw.began_ns), float(answer.came_ns[-1] - raw.began_ns)))


def _much_longer(new_ns: float, again_ns: float, times: float) -> str:
    if not new_ns > times * again_ns + _LONGER_NS:  # also where one has no answer
        return ""
    return quantity_text.number(new_ns / max(again_ns, 1.0))
