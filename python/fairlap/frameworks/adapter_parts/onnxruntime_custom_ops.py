"""The library of custom operators that a contestant of ONNX Runtime is given as an option."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlap.frameworks.contract import Unsupported

CUSTOM_OPS = "custom_ops"


def register_custom_ops(options: Any, given: Mapping[str, str]) -> None:
    """Make its operators known to the sessions that are made with these options, if it is ``given``."""
    if library := given.get(CUSTOM_OPS):
        from fairlap.models.sources.contract import SourceError
        from fairlap.models.sources.onnx_graphs.custom_operators import register_custom_operators

        try:
            register_custom_operators(options, library)
        except SourceError as error:
            raise Unsupported(str(error)) from None


def custom_ops_in_force(given: Mapping[str, str]) -> dict[str, str]:
    """Name the library by its content, so that another build of it shows in a comparison of runs."""
    library = given.get(CUSTOM_OPS)
    if not library:
        return {}
    with Path(library).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {CUSTOM_OPS: f"{Path(library).name} sha256:{digest[:12]}"}
