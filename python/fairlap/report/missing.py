"""What the report needs beyond fairlap itself, and what to say where it is missing."""

from __future__ import annotations

from typing import Any

from fairlap.errors import NotAvailable


def altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise _not_installed(error) from None
    return altair


def vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise _not_installed(error) from None
    return vl_convert


def _not_installed(error: ImportError) -> NotAvailable:
    return NotAvailable(
        f"charts need Altair and vl-convert ({error}); install them with: pip install 'fairlap[report]'"
    )
