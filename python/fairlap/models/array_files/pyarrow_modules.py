"""pyarrow, which reads Parquet and is not part of what fairlap needs everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlap.errors import InvalidRequest
from fairlap.machine.variables import variables_kept


def pyarrow_for(path: Path, code: str) -> tuple[Any, Any]:
    """Import ``pyarrow`` and ``pyarrow.parquet`` to read this file; refuse it by the code where they are missing."""
    try:
        with variables_kept():
            import pyarrow as arrow
            from pyarrow import parquet
    except ModuleNotFoundError:
        raise InvalidRequest(
            f"{path} is read with pyarrow, which is not installed: pip install 'fairlap[parquet]'", code=code
        ) from None
    return arrow, parquet
