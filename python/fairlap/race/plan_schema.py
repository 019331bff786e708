"""The JSON schema of plan files, made from their definition: ``python -m fairlap.race.plan_schema``."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError
from fairlap.race.request import RaceRequest
from fairlap.whole_files import write_for_user

FILE = Path("docs/reference/plan.schema.json")


def schema_text() -> str:
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(RaceRequest)), indent=2).decode() + "\n"


if __name__ == "__main__":
    try:
        write_for_user(FILE, schema_text().encode())
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
