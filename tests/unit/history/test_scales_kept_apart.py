"""Works of different scales are different works to diff, history and across."""

from __future__ import annotations

from pathlib import Path

from fairlap.history.across.lines import entries_of
from fairlap.history.between_runs import compare_saved_runs
from fairlap.store.figures import recorded_figures
from fairlap.store.run_file import save_run
from fairlap.store.store import open_store
from fairlap.store.stored_rows import rows_named
from fairlap.verdict import Change
from fairlap.verdict.warnings import EnvironmentDiffers
from msgspec.structs import replace
from runs_at_scales import a_run, ranks, threads
from stored_histories import daily_run, stored

TWO = threads(1, 2)


def test_a_diff_matches_each_scale_with_itself() -> None:
    before = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}, listed="torch")
    after = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.3}, listed="torch", seed=4)
    compared = compare_saved_runs(before, after)
    assert compared.unmatched == ()
    changes = {each.work.rpartition(" · ")[2]: each.regression.change for each in compared.differences}
    assert changes["2 threads"] is Change.SLOWER
    assert changes["1 thread"] is not Change.SLOWER


def test_a_scale_that_only_one_run_has_is_unmatched_and_no_difference_of_the_others() -> None:
    one = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}, listed="torch")
    three = threads(1, 2, 4)
    more = a_run(three, {three[0]: 1.0, three[1]: 1.6, three[2]: 2.0}, listed="torch", seed=4)
    compared = compare_saved_runs(one, more)
    assert len(compared.differences) == 2
    assert len(compared.unmatched) == 1
    codes = {warning.code for each in compared.differences for warning in each.regression.warnings}
    assert EnvironmentDiffers.code not in codes


def test_histories_keep_scales_apart(tmp_path: Path) -> None:
    run, [row, *_] = daily_run(0)
    rows = [row, replace(row, threads=7), replace(row, ranks=2), replace(row, ranks=2, hosts=["a", "b"])]
    stored(tmp_path / "s", [(run, rows)])
    with open_store(tmp_path / "s", reading=True) as store:
        found = store.ask(recorded_figures, row.workload, "")
    assert len({(each.work, each.threads) for each in found}) == 4


def test_lines_of_several_runs_have_the_work_of_their_own_scale(tmp_path: Path) -> None:
    scales = ranks(1, 2)
    save_run(tmp_path / "a.json", a_run(scales, dict.fromkeys(scales, 1.0), listed="torch"))
    entries = entries_of([rows_named(str(tmp_path / "a.json"))], {}, {})
    assert len({each.line.work for each in entries}) == 2
    assert all(each.row.scale in each.line.work for each in entries)
