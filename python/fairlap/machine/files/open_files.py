"""How many files this process may have open: with too few, whatever is opened first looks like the cause."""

from __future__ import annotations

import errno
import resource

from fairlap.errors import NotAvailable

_FEWEST = 16  # below, neither the store nor a temporary folder can be opened in a race


def require_open_files() -> None:
    """Refuse to begin what needs a few open files for sure, such as a race."""
    if _allowed() < _FEWEST:
        raise NotAvailable(why_too_few())


def is_for_lack_of_files(error: OSError) -> bool:
    return error.errno == errno.EMFILE or _allowed() < _FEWEST


def why_too_few() -> str:
    return f"this process may have {_allowed()} open files, which are too few; allow more: `ulimit -n 1024`"


def _allowed() -> float:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if allowed == resource.RLIM_INFINITY else allowed
