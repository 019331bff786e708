"""The files that a race ends with: rows in several formats, and a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlap.errors import FairlapError
from fairlap.machine.atomic_files import write_for_user
from fairlap.race.run import Run
from fairlap.render.export import write_rows
from fairlap.results.prices import Price
from fairlap.results.results import Results
from fairlap.results.row import Row
from fairlap.results.rows import rows_of_run


def write_outputs(
    run: Run, results: Results, run_id: str, files: Mapping[str, Path], *, baseline: str, price: Price | None
) -> str:
    """By format. Why some could not be written, else empty: the others are written all the same."""
    if not files:
        return ""
    refused = []
    rows: list[Row] | None = None  # the report draws its own
    for name, file in files.items():
        try:
            if name == "html":
                _write_report(file, run, results, run_id, baseline, price)
                continue
            if rows is None:
                rows = rows_of_run(run, run_id or run.began_at, baseline=baseline, price=price, results=results)
            write_rows(rows, file, name)
        except FairlapError as error:
            refused.append(str(error))
    return "; ".join(refused)


def _write_report(file: Path, run: Run, results: Results, run_id: str, baseline: str, price: Price | None) -> None:
    from fairlap.render.report.page import page_of
    from fairlap.render.report.shown_run import shown_run
    from fairlap.store.run_ids import is_an_id
    from fairlap.store.run_sources import samples_of

    samples = samples_of(run_id) if is_an_id(run_id) else None
    shown = shown_run(run, run_id or file.stem, samples=samples, baseline=baseline, price=price, results=results)
    write_for_user(file, page_of(shown).encode())
