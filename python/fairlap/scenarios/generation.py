"""When the tokens of timed answers came: to the first one, and from one to the next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairlap.engine import Measurement
    from fairlap.engine.token_stamps import TokenStamps

TIME_TO_FIRST_TOKEN = "time_to_first_token_ns"
TIME_PER_OUTPUT_TOKEN = "time_per_output_token_ns"
TOKEN_GAP = "token_gap_ns"


def with_tokens(measurement: Measurement, stamps: TokenStamps) -> Measurement:
    """Add these quantities of its timed answers, which are the last ones that were stamped."""
    from fairlap.engine import Quantity

    came_ns = stamps.newest(measurement.samples * measurement.calls_per_sample)
    gaps_ns = np.diff(came_ns, axis=1)
    found = {TIME_TO_FIRST_TOKEN: came_ns[:, 0]}
    if stamps.tokens > 1:
        found |= {TIME_PER_OUTPUT_TOKEN: gaps_ns.mean(axis=1), TOKEN_GAP: gaps_ns.reshape(-1)}
    headline = measurement.headline
    further = {
        name: Quantity(
            name, "stamped within the timed answer", np.ascontiguousarray(values).data, headline.resolution_ns, {}
        )
        for name, values in found.items()
        if len(values)
    }
    return replace(measurement, quantities={**measurement.quantities, **further})


def parts_of_newest(stamps: TokenStamps) -> dict[str, float]:
    """Return when the first token of the newest answer came: there a prompt shows that was read before."""
    came_ns = stamps.newest(1)
    return {TIME_TO_FIRST_TOKEN: float(came_ns[0, 0])} if len(came_ns) else {}
