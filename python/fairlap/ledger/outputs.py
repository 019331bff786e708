"""The files of rows that a race ends with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlap.errors import FairlapError
from fairlap.ledger.export import write_rows
from fairlap.ledger.prices import Price
from fairlap.ledger.rows_of_run import rows_of_run
from fairlap.race.results import Results
from fairlap.race.saving import SavedRun


def write_outputs(
    run: SavedRun, results: Results, run_id: str, files: Mapping[str, Path], *, baseline: str, price: Price | None
) -> str:
    """By format. Why some could not be written, else empty: the others are written all the same."""
    if not files:
        return ""
    rows = rows_of_run(run, run_id or run.began_at, baseline=baseline, price=price, results=results)
    refused = []
    for name, file in files.items():
        try:
            write_rows(rows, file, name)
        except FairlapError as error:
            refused.append(str(error))
    return "; ".join(refused)
