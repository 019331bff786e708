"""A flip is a pair whose order two runs, or two works of one, show in both ways."""

from __future__ import annotations

import msgspec
from fairlap.history.across.flips import flips_of
from fairlap.history.across.lines import Entry, entries_of
from fairlap.race.run import Run
from fairlap.render.across.document import document_of
from fairlap.results.results import results_of
from fairlap.store.stored_rows import RowsOfRun
from runs_side_by_side import scale_times
from runs_to_show import run_of


def rows_of(run: Run, name: str) -> RowsOfRun:
    return RowsOfRun(name, name, tuple(results_of(run, name).rows), run.plan, run.machine)


def a_run(machine: str = "Imaginary 9000", *, slow_at: int = 0) -> Run:
    """One in which a takes a millisecond and b two, but at the batch ``slow_at`` a takes four."""
    run = run_of(("a", "b"), batches=(4, 8))
    run.machine["cpu model"] = machine
    slow = {work.id for work in run.plan.works if work.batch == slow_at}
    for process in run.processes:
        if process.contestant == "a" and process.work_id in slow:
            scale_times(process, 4)
    return run


def entries(*runs: RowsOfRun) -> list[Entry]:
    return entries_of(runs, {}, {})


def test_an_order_that_holds_everywhere_is_no_flip() -> None:
    assert flips_of(entries(rows_of(a_run(), "r1"), rows_of(a_run("Imaginary 100"), "r2"))) == []


def test_a_flip_between_batches_of_one_run_names_both() -> None:
    [flip] = flips_of(entries(rows_of(a_run(slow_at=8), "r1")))
    assert (flip.one, flip.other) == ("a", "b")
    assert flip.differs == {"batch": ("4", "8")}
    assert flip.here.run == flip.there.run == "r1"
    assert "batch 4 → 8" in flip.text


def test_a_flip_between_machines_names_the_machine_alone() -> None:
    here, there = rows_of(a_run(), "r1"), rows_of(a_run("Imaginary 100", slow_at=4), "r2")
    found = flips_of(entries(here, there))
    by = {tuple(each.differs): each for each in found}
    assert set(by) == {("machine",), ("batch",)}
    assert by["machine",].differs["machine"] == ("Imaginary 9000", "Imaginary 100")
    assert (by["machine",].here.run, by["machine",].there.run) == ("r1", "r2")
    document = document_of([here, there])
    [section] = [each for each in document.sections if each.title == "Where rankings flip"]
    assert len(section.notes) == 2


def test_where_several_things_differ_all_are_named() -> None:
    four, eight = a_run(), a_run("Imaginary 100", slow_at=8)
    here, there = rows_of(four, "r1"), rows_of(eight, "r2")
    here = only_at(here, 4)
    there = only_at(there, 8)
    [flip] = flips_of(entries(here, there))
    assert set(flip.differs) == {"machine", "batch"}


def only_at(run: RowsOfRun, batch: int) -> RowsOfRun:
    return RowsOfRun(run.name, run.run, tuple(row for row in run.rows if row.batch == batch), run.plan, run.machine)


def test_ties_are_no_order() -> None:
    run = rows_of(a_run(slow_at=8), "r1")
    tied = tuple(msgspec.structs.replace(row, place=f"{row.place}=") if row.place else row for row in run.rows)
    assert flips_of(entries(RowsOfRun(run.name, run.run, tied, run.plan, run.machine))) == []
