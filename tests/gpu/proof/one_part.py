"""The process of one part: ``python -m tests.gpu.proof.one_part --module ... --record ...``."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from .record import Deadline, PartRecord


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", required=True)
    parser.add_argument("--record", required=True, type=Path)
    parser.add_argument("--number", required=True, type=int)
    parser.add_argument("--title", required=True)
    parser.add_argument("--seconds", required=True, type=float)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    deadline = Deadline(given.seconds)
    record = PartRecord(given.record, given.number, given.title, resume=given.resume)
    import_module(given.module).run(record, deadline)
    record.end()


if __name__ == "__main__":
    main()
