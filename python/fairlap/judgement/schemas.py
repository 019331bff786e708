"""Schemas of what ``fairlap judge`` writes: ``python -m fairlap.judgement.schemas`` puts them into the reference."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.ledger import Ledger
from fairlap.machine.atomic_files import write_output

FILES: Mapping[str, type] = {
    "docs/reference/judgement.schema.json": Judgement,
    "docs/reference/ledger.schema.json": Ledger,
}


def schema_text(kind: type) -> str:
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(kind)), indent=2).decode() + "\n"


if __name__ == "__main__":
    try:
        for name, kind in FILES.items():
            write_output(Path(name), schema_text(kind).encode())
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
