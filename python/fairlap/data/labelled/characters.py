"""Windows of a text with the character after each one: the topics that Python's own `help` shows.

The text differs between versions of Python, and so does the hash of the set.
"""

from __future__ import annotations

import platform

import numpy as np

from fairlap.bench_models.characters.spec import TOKENS
from fairlap.data.labelled.items import CODE, Items
from fairlap.errors import InvalidRequest

ALPHABET = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\t": " "})
_PASSAGE = 8  # windows that are one after the other, and are learnt from or held out together
_HELD_OUT = 50  # one of as many passages


def characters() -> Items:
    try:
        from pydoc_data.topics import topics
    except ModuleNotFoundError:
        raise InvalidRequest(
            "the text to learn comes with Python as pydoc_data, which this installation of Python lacks", code=CODE
        ) from None
    numbers = np.array([ALPHABET.index(each) for each in text_of(topics)], np.int32)
    windows = numbers[: len(numbers) // (TOKENS + 1) * (TOKENS + 1)].reshape(-1, TOKENS + 1)
    held = np.arange(len(windows)) // _PASSAGE % _HELD_OUT == _HELD_OUT - 1
    return Items(
        {"input_ids": np.ascontiguousarray(windows[:, :-1])},
        np.ascontiguousarray(windows[:, 1:]),
        tuple(ALPHABET),
        f"windows of 64 characters of pydoc's topics; Python {platform.python_version()}",
        "PSF-2.0",
        held,
    )


def text_of(topics: dict[str, str]) -> str:
    """Join the paragraphs of the topics, in the order of their names.

    A paragraph that is in several topics is in the text once, so that none is both learnt from and held out. Characters
    outside of the alphabet become question marks.
    """
    paragraphs = {
        " ".join(paragraph.split()): paragraph for name in sorted(topics) for paragraph in topics[name].split("\n\n")
    }
    text = "\n\n".join(paragraphs.values()).translate(_PLAIN)
    return "".join(each if each in ALPHABET else "?" for each in text)
