"""What is asked in a load: prompts that are new to a server, how long answers are, and how long users think.

Everything is drawn before the load, and is the same for all servers of a block. A session is a prompt or a
conversation: the requests of one user, each after the answer to the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import E_LOAD
from fairlap.scenarios.streams.clients.manner import USUAL, Manner
from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.workload.lengths import Lengths
from fairlap.scenarios.streams.workload.trace import BLOCK_TOKENS, Trace

# Texts without meaning, of short and frequent words, about a token each: they depend on a key alone.
_DIGEST_BYTES = 5
_SHORT_AND_FREQUENT = """
the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down
only way find use may water long little very after words called just where most know get through back much before go
good new write our used me man too any day same right look think also around another came come work three must
because does part even place well such here take why things help put years different away again off went old number
great tell men say small every found still between name should home big give air line set own under read last never
us left end along while might next sound below saw both few those always show large often together asked house world
going want school important until form food keep children feet land side without boy once animals life enough took
four head above kind began almost live page got earth need far hand high year mother light country father let night
picture being study second soon story since white ever paper hard near sentence better best across during today
however sure knew young sun thing whole hear example heard several change answer room sea against top turned
learn point city play toward five himself usually money seen car
"""
_WORDS = _SHORT_AND_FREQUENT.split()


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def drawn_words(key: str, count: int) -> list[str]:
    drawn = np.random.default_rng(int(digest_of(key), 16)).integers(0, len(_WORDS), count)
    return [_WORDS[each] for each in drawn.tolist()]


class RecordedTexts:
    """Of the requests of a trace, which has none: a word for each token, the same ones for the same id of a block."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._blocks: dict[int, list[str]] = {}

    def of_request(self, place: int, tokens: int, blocks: Sequence[int]) -> Prompt:
        if not blocks:
            return Prompt(prompt=" ".join(drawn_words(f"{self._key} request {place}", tokens)))
        found = [word for block in blocks for word in self._block(block)]
        return Prompt(prompt=" ".join(found[:tokens]))

    def _block(self, block: int) -> list[str]:
        if block not in self._blocks:
            self._blocks[block] = drawn_words(f"{self._key} block {block}", BLOCK_TOKENS)
        return self._blocks[block]


Numbers = npt.NDArray[np.int64]

_ORDER, _THINKING = 2, 5  # streams of random numbers
_MOST_SHARED = 0.95


def shared_prefix_named(text: str) -> float:
    """Read a share such as ``30%`` or ``0.3``. At ``100%``, prompts are sent as they are."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= _MOST_SHARED and share != 1:
        raise InvalidRequest(
            f"--shared-prefix must be from 0 to {_MOST_SHARED:g}, or 100% for prompts as they are (got {text})",
            code=E_LOAD,
        )
    return share


@dataclass(frozen=True)
class Session:
    number: int  # of its prompt in the file
    first: Prompt
    tokens: tuple[int, ...]  # of each answer
    thinks_ns: tuple[float, ...]  # before each request
    says: tuple[str, ...] = ()  # the user, after each answer but the last
    manner: Manner = USUAL


@dataclass(frozen=True)
class Source:
    """Prompts, or a trace, of which they are made up. ``nonce`` makes them new to servers that were asked before."""

    prompts: tuple[Prompt, ...]
    trace: Trace | None
    lengths: Lengths | None  # None: those of the file
    shared_prefix: float  # of each prompt, the share at its beginning that is not new; at 1, it is sent as it is
    nonce: str

    @property
    def requests_in_a_session(self) -> float:
        """On average over the file."""
        return 1.0 if self.trace is not None else sum(each.requests for each in self.prompts) / len(self.prompts)

    @property
    def most_requests_in_a_session(self) -> int:
        return max((each.requests for each in self.prompts), default=1)

    def lengths_in_file(self) -> Sequence[int]:
        if self.trace is not None:
            return [int(each) for each in self.trace.output_tokens]
        return [0 if each.tokens is None else each.tokens for each in self.prompts]

    def sessions(
        self, count: int, seed: int, *, numbers: Numbers | None = None, think_s: float = 0.0, users: bool = False
    ) -> list[Session]:
        """Draw so many. ``users`` think before their first request as well; others come when they come."""
        of_file = self.lengths_in_file()
        chosen = _in_turns(len(of_file), count, seed) if numbers is None else numbers
        says = [() if self.trace is not None else self.prompts[each].turns[1:] for each in chosen]
        requests = np.array([1 + len(each) for each in says])
        ends = np.cumsum(requests)
        tokens = np.repeat(np.array(of_file)[chosen], requests)
        if self.lengths is not None:
            tokens = self.lengths.draw(len(tokens), seed)
        thinks_ns = np.random.default_rng([seed, _THINKING]).exponential(1e9 * think_s, len(tokens))
        if not users:
            thinks_ns[ends - requests] = 0.0
        return [
            Session(number, first, tuple(tokens[own].tolist()), tuple(thinks_ns[own].tolist()), said)
            for number, first, said, own in zip(
                chosen.tolist(), self._firsts(chosen, seed), says, map(slice, ends - requests, ends), strict=True
            )
        ]

    def _firsts(self, chosen: Numbers, seed: int) -> list[Prompt]:
        if self.trace is not None:
            return self._recorded(self.trace, chosen, f"{self.nonce} {seed}")
        firsts = [self.prompts[each].first for each in chosen]
        if self.shared_prefix == 1:
            return firsts
        marks = [digest_of(f"{self.nonce} {seed} {place}") for place in range(len(firsts))]
        shared = [round(self.shared_prefix / (1 - self.shared_prefix) * (each.words + 1)) for each in firsts]
        common = drawn_words(self.nonce, max(shared, default=0))
        each = zip(firsts, shared, marks, strict=True)
        return [first.beginning_with(" ".join([*common[:many], mark])) for first, many, mark in each]

    def _recorded(self, trace: Trace, chosen: Numbers, key: str) -> list[Prompt]:
        """Make up texts; those of a trace that is over and begins again are other ones."""
        turns = [RecordedTexts(f"{key} {turn}") for turn in range(-(-len(chosen) // len(trace)))]
        return [
            turns[place // len(trace)].of_request(place, int(trace.input_tokens[number]), trace.blocks[number])
            for place, number in enumerate(chosen.tolist())
        ]


def _in_turns(prompts: int, requests: int, seed: int) -> Numbers:
    """Choose which prompts are sent: each once before any again."""
    draw = np.random.default_rng([seed, _ORDER])
    return np.concatenate([draw.permutation(prompts) for _ in range(-(-requests // prompts))])[:requests]
