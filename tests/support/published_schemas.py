"""The schemas of docs/reference/schemas, and documents that are checked against them as another program would."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "schemas"


@cache
def _validators() -> dict[str, jsonschema.Draft202012Validator]:
    """By the schema's name with its version, such as ``fairlap.gate/1``."""
    schemas = [json.loads(path.read_text()) for path in FOLDER.glob("*.json")]
    return {schema["title"]: jsonschema.Draft202012Validator(schema) for schema in schemas}


def checked(text: str) -> dict[str, Any]:
    """Read a document and check it against the schema that it names."""
    document: dict[str, Any] = json.loads(text, parse_constant=lambda name: {"not JSON": name})
    found = next(iter(_validators()[document["schema"]].iter_errors(document)), None)
    assert found is None, f"{document['schema']}, {found.json_path}: {found.message}"
    return document
