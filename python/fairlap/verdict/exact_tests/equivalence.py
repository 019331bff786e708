"""Equivalence by two one-sided tests, of whether the centre is inside the margin on both sides.

Schuirmann's construction on the signed-rank test. Each side is tested at the full level, which is the same
as asking whether the interval of confidence 1 - 2 x level is strictly inside the margin. A difference
that was merely not found is not equivalence; this has to be shown.
"""

from __future__ import annotations

import numpy as np

from fairlap.verdict.blocks import Floats, require_between
from fairlap.verdict.exact_tests import signed_rank


def log_margin(margin: float) -> float:
    """Make a margin mean the same from either side: 0.02 reaches from 1/1.02 to 1.02."""
    require_between("margin", margin, 0.0, 1.0)
    return float(np.log1p(margin))


def p_equivalent(walsh: Floats, margin: float) -> Floats:
    """Compute the p value for "the centre is inside the margin": the worse of the two one-sided ones."""
    edge = log_margin(margin)
    p: Floats = np.maximum(signed_rank.p_above(walsh, -edge), signed_rank.p_below(walsh, edge))
    return p


def equivalence_interval(walsh: Floats, levels: Floats | float) -> tuple[Floats, Floats]:
    """Compute the interval that is strictly inside the margin exactly where the two tests show equivalence."""
    return signed_rank.interval(walsh, 2 * np.asarray(levels))
