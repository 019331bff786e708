"""Texts without meaning, of short and frequent words, about a token each: they depend on a key alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from fairlap.scenarios.streams.prompts import Prompt
from fairlap.scenarios.streams.workload.trace import BLOCK_TOKENS

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
