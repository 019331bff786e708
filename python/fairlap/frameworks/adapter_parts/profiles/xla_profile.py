"""Names of the operations that XLA reports to the profilers of JAX and TensorFlow."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\.(\d+|clone|remat\d*)|_\d+)+$")


def operation_named(hlo: str) -> str:
    """Drop the numbers: ``broadcast_add_fusion`` for ``broadcast_add_fusion.12.clone``.

    They differ in every compilation, and two compilations must have the same names.
    """
    return _NUMBERS.sub("", hlo.removeprefix("%"))
