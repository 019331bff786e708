"""How a field of the row describes itself: its meaning, and the group that the reference lists it in."""

import msgspec


def about(meaning: str, group: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning, extra={"group": group})
