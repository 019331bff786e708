"""What the report needs beyond fairlap itself, and what to say where it is missing."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from fairlap.errors import NotAvailable

_NEEDED = ("altair", "vl_convert")


def charts_missing() -> str:
    """Why there can be no report, asked before a race; empty when there can be one. Nothing is imported."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    return _told(f"{' and '.join(lacking)} cannot be found") if lacking else ""


def altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise NotAvailable(_told(str(error))) from None
    return altair


def vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise NotAvailable(_told(str(error))) from None
    return vl_convert


def _told(why: str) -> str:
    return f"charts need Altair and vl-convert ({why}); install them with: pip install 'fairlap[report]'"
