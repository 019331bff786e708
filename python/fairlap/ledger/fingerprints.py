"""Two short texts: which machine, and which software around the contestant. Equal ones mean equal facts."""

from __future__ import annotations

import hashlib

import msgspec

from fairlap.machine.kinds import lasting
from fairlap.race.results import Contender
from fairlap.race.saving import SavedRun

_DIGITS = 12


def fingerprints_of(run: SavedRun, contender: Contender) -> tuple[str, str]:
    around = {
        "fairlap": run.fairlap,
        "versions": sorted({lap.version for lap in contender.laps}),
        "settings": next((lap.in_force for lap in contender.laps if lap.in_force), {}),
    }
    return fingerprint(lasting(run.machine)), fingerprint(around)


def fingerprint(facts: object) -> str:
    """Of anything that JSON can hold; the order of keys does not matter."""
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:_DIGITS]
