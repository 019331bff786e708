"""A library of custom operators of the user's, which ONNX Runtime loads into its process: code, and no data.

Where a model is opened the same one is registered, since nothing else knows what its operators compute.
"""

from __future__ import annotations

from typing import Any

from fairlap.errors import cause_of
from fairlap.models.sources.contract import SourceError


def register_custom_operators(options: Any, library: str) -> None:
    """Make its operators known to the sessions that are made with these options."""
    try:
        options.register_custom_ops_library(library)
    except Exception as error:  # of ONNX Runtime, or of the library
        raise SourceError(f"ONNX Runtime cannot load the custom operators of {library}: {cause_of(error)}") from None
