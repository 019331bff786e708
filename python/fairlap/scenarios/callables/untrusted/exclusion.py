"""Why a contestant that is not trusted is not judged."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.errors import FairlapError


class Excluded(FairlapError):
    """A contestant that is not judged, with the code of the reason."""


@dataclass(frozen=True)
class Exclusion:
    code: str
    reason: str
