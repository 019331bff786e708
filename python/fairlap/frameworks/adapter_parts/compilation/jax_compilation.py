"""What ``jax.jit`` compiled: programs, by its own cache, and the kernels that XLA made of their operations."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fairlap.frameworks.adapter_parts.compilation.hlo_text import kernels_in, operations_in
from fairlap.frameworks.contract_parts.compilation import Compilation, Operators

_DIFFERENCE = re.compile(r"^\s*\* (?P<difference>.+)$", re.MULTILINE)


def compilation_of(jitted: Any, lowered: Callable[[], Any], bind: Callable[..., Callable[[], Any]]) -> Compilation:
    """Observe how JAX compiled the contestant.

    ``jitted`` is what a call runs, and ``lowered`` lowers it again for the contestant's own batch. ``bind`` takes
    inputs, and the types that it makes of some of them.
    """

    def operators() -> Operators:
        program = lowered()
        before, after = operations_in(program.as_text()), kernels_in(program.compile().as_text())
        return Operators(before, after, "StableHLO operations without constants; instructions of XLA's entry")

    def programs() -> int:
        """One is in the cache when it was called first."""
        return int(jitted._cache_size())

    return Compilation(
        graphs=programs,
        operators=operators,
        bind=bind,
        bind_as=bind,
        reasons=_explained,
        absent={"breaks": "jax.jit traces a function whole or raises an error"},
    )


@contextmanager
def _explained() -> Iterator[list[str]]:
    """JAX logs why it traces again, if it is asked to."""
    import jax

    found: list[str] = []

    class Reasons(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if "CACHE MISS" in text:
                found.extend(match["difference"].strip() for match in _DIFFERENCE.finditer(text))

    logger, handler = logging.getLogger("jax"), Reasons(logging.WARNING)
    logger.addHandler(handler)
    jax.config.update("jax_explain_cache_misses", True)
    try:
        yield found
    finally:
        jax.config.update("jax_explain_cache_misses", False)
        logger.removeHandler(handler)
