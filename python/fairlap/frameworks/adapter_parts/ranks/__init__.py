"""How the ranks of a framework find each other and exchange."""

from __future__ import annotations

from fairlap.frameworks.contract import RANKS
from fairlap.request.fields.scale import Rank


def in_parts(rank: Rank | None) -> dict[str, str]:
    """Describe the setting in force of inference, in which ranks exchange nothing."""
    return {} if rank is None else {RANKS: f"{rank.count} ranks, each answers its part"}
