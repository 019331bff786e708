"""Corruptions of data as they are requested: ``fog:3``, ``fog`` for all severities, ``noise`` for all of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.suggestions import did_you_mean

if TYPE_CHECKING:
    import numpy as np

CODE = "E_CORRUPTION"
SEVERITIES = (1, 2, 3, 4, 5)
TYPOS = "typos"
OF_COLOURS = "saturate"  # is for colour images

KINDS: Mapping[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("gaussian_blur", "defocus_blur", "motion_blur", "zoom_blur"),
    "light": ("fog", "brightness", "contrast", OF_COLOURS),
    "files": ("pixelate", "jpeg_compression"),
}
IMAGE_CORRUPTIONS = tuple(name for names in KINDS.values() for name in names)
BY_PILLOW = KINDS["files"]
_GROUPS: Mapping[str, tuple[str, ...]] = {**KINDS, "all": IMAGE_CORRUPTIONS}


class Corruption(msgspec.Struct, frozen=True):
    name: str
    severity: int

    @property
    def text(self) -> str:
        return f"{self.name}:{self.severity}"

    def drawn_for(self, item: int) -> np.random.Generator:
        """Draw for the item of this number: the same every time, in batches of any size."""
        import numpy as np  # here, since requests are read without it

        return np.random.default_rng([*self.name.encode(), self.severity, item])


def corruptions_in(texts: Iterable[str]) -> tuple[Corruption, ...]:
    """Each once, in the order in which they are named."""
    return tuple(dict.fromkeys(each for text in texts for each in _corruptions(text.strip())))


def _corruptions(text: str) -> Iterable[Corruption]:
    name, colon, severity = text.partition(":")
    if colon and severity not in map(str, SEVERITIES):
        raise InvalidRequest(f"--corrupt {text}: the severity must be 1 to 5 (got {severity!r})", code=CODE)
    names = _GROUPS.get(name, (name,))
    known = (*IMAGE_CORRUPTIONS, TYPOS)
    if unknown := [each for each in names if each not in known]:
        hint = did_you_mean(unknown[0], (*known, *_GROUPS)) or f"they are {', '.join((*known, *_GROUPS))}"
        raise InvalidRequest(f"no corruption named {unknown[0]!r}; {hint}", code=CODE)
    severities = (int(severity),) if colon else SEVERITIES
    return [Corruption(each, one) for each in names for one in severities]
