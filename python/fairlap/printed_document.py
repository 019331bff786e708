"""What all JSON documents have in common: the schema that they follow, in their first field; and that of an error.

A document is a class that derives from ``PrintedDocument`` and names its schema with its version as its ``tag``:
``fairlap.gate/1``. ``python -m fairlap.cli.schemas`` writes the schemas that are published.
"""

from __future__ import annotations

import msgspec

from fairlap.explanations import explanations, next_step


class PrintedDocument(msgspec.Struct, frozen=True, tag_field="schema"):
    """A JSON document for programs. An infinity or a NaN becomes null, so a field that may be one may be None."""


class ReportedError(msgspec.Struct, frozen=True):
    code: str  # stable; `fairlap explain CODE` explains it
    message: str  # what is wrong and what to do; its wording may change
    hint: str  # what to do about errors of this code


class ErrorDocument(PrintedDocument, frozen=True, tag="fairlap.error/1"):
    error: ReportedError


def error_document(code: str, message: str) -> ErrorDocument:
    return ErrorDocument(ReportedError(code, message, next_step(explanations().get(code, ""))))
