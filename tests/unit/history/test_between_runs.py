"""Two saved runs: which contestants are matched, at which scale, what differs, and what may be claimed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from fairlap.history.across.lines import entries_of
from fairlap.history.between_runs import compare_saved_runs, is_same_run
from fairlap.history.text import runs_text
from fairlap.race.run import Run
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.source import Source
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve
from fairlap.store.figures import recorded_figures
from fairlap.store.runs.run_file import save_run
from fairlap.store.store import open_store
from fairlap.store.stored_rows import rows_named
from fairlap.verdict import Change
from fairlap.verdict.warnings import EnvironmentDiffers
from msgspec.structs import replace
from runs_at_scales import a_run, ranks, threads
from saved_runs import MACHINE, saved_run
from stored_histories import daily_run, stored


def test_a_run_held_against_itself_shows_no_change() -> None:
    run = saved_run({"torch": 1e6, "jax": 2e6})
    compared = compare_saved_runs(run, run)
    assert [each.regression.change for each in compared.differences] == [Change.EQUIVALENT, Change.EQUIVALENT]
    assert compared.unmatched == ()


def test_a_slowdown_far_above_the_allowance_is_shown() -> None:
    [found] = compare_saved_runs(saved_run({"torch": 1e6}), saved_run({"torch": 1.2e6}, seed=1)).differences
    assert found.regression.change is Change.SLOWER
    assert "slower: 1.2" in runs_text(compare_saved_runs(saved_run({"torch": 1e6}), saved_run({"torch": 1.2e6})))


def test_warnings_have_lines_of_their_own() -> None:
    text = runs_text(compare_saved_runs(saved_run({"torch": 1e6}), saved_run({"torch": 1.2e6}, seed=1)))
    assert "\\u000a" not in text
    assert any(line.startswith("    ! ") for line in text.splitlines())


def test_a_change_as_small_as_the_machine_may_make_is_not_claimed() -> None:
    [found] = compare_saved_runs(saved_run({"torch": 1e6}), saved_run({"torch": 1.008e6}, seed=1)).differences
    assert found.regression.change in (Change.INCONCLUSIVE, Change.EQUIVALENT)


def test_a_new_version_under_a_new_name_is_the_same_contestant() -> None:
    before = saved_run({"onnxruntime==1.24.4": 1e6, "torch": 1e6}, versions={"onnxruntime==1.24.4": "1.24.4"})
    after = saved_run({"onnxruntime==1.31.1": 1e6, "torch": 1e6}, versions={"onnxruntime==1.31.1": "1.31.1"})
    compared = compare_saved_runs(before, after)
    names = {(each.before, each.after) for each in compared.differences}
    assert names == {("torch", "torch"), ("onnxruntime==1.24.4", "onnxruntime==1.31.1")}
    assert "onnxruntime==1.24.4 -> onnxruntime==1.31.1 (1.24.4 -> 1.31.1)" in runs_text(compared)


def test_a_changed_version_is_the_question_and_costs_no_allowance() -> None:
    same = saved_run({"torch": 1e6})
    newer = saved_run({"torch": 1e6}, versions={"torch": "2.0"})
    [one], [other] = (compare_saved_runs(same, run).differences for run in (same, newer))
    assert one.regression.allowance == other.regression.allowance


def test_two_candidates_for_one_name_are_left_unmatched() -> None:
    before = saved_run({"torch==1": 1e6})
    after = saved_run({"torch==2": 1e6, "torch==3": 1e6})
    compared = compare_saved_runs(before, after)
    assert compared.differences == ()
    assert len(compared.unmatched) == 3
    assert "only before: torch==1 on mlp" in runs_text(compared)


def test_variants_are_not_mixed_up() -> None:
    compared = compare_saved_runs(saved_run({"torch": 1e6}), saved_run({"torch:compile": 1e6}))
    assert compared.differences == ()


def test_another_kernel_is_named_and_widens_the_answer() -> None:
    before, after = saved_run({"torch": 1e6}), saved_run({"torch": 1e6}, machine={**MACHINE, "kernel": "6.2"})
    [same], [other] = (compare_saved_runs(before, run).differences for run in (before, after))
    assert other.regression.allowance > same.regression.allowance
    assert EnvironmentDiffers("kernel", "6.1", "6.2") in other.regression.warnings


def test_another_processor_or_thread_count_or_data_is_not_comparable() -> None:
    before = saved_run({"torch": 1e6})
    for after in (
        saved_run({"torch": 1e6}, machine={**MACHINE, "cpu model": "two"}),
        saved_run({"torch": 1e6}, threads=2),
    ):
        [found] = compare_saved_runs(before, after).differences
        assert found.regression.change is Change.NOT_COMPARABLE
        assert "not comparable" in runs_text(compare_saved_runs(before, after))


def test_what_varies_from_process_to_process_is_no_difference_between_runs() -> None:
    run = saved_run({"torch": 1e6})
    assert "cache hits" not in runs_text(compare_saved_runs(run, saved_run({"torch": 1e6}, blocks=11)))


def test_the_disqualified_are_not_compared() -> None:
    before, after = saved_run({"torch": 1e6}), saved_run({"torch": 1e6})
    after.processes[3].outcome = "disqualified"
    compared = compare_saved_runs(before, after)
    assert compared.differences == ()
    assert runs_text(compared).startswith("only before: torch")


def test_runs_without_anything_finished_have_nothing_in_common() -> None:
    run = saved_run({"torch": 1e6})
    for process in run.processes:
        process.outcome = "crash"
    assert runs_text(compare_saved_runs(run, run)) == "the two runs have nothing in common"


def fed(data: str = "synthetic", hashes: Sequence[str] = ("aa",), pipeline: str = "fairlap") -> Run:
    return saved_run({"torch": 1.5e6}, data=data, hashes=hashes, pipeline=pipeline)


UNFED = saved_run({"torch": 1e6})


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (UNFED, fed(), "data differs: nothing was fed before, synthetic after"),
        (fed(), UNFED, "data differs: synthetic before, nothing was fed after"),
        (fed(), fed("x.npy", ["bb"]), "data differs: synthetic (hash aa) before, x.npy (hash bb) after"),
        (fed("x.npy", []), fed("y.npy"), "data differs: x.npy before, y.npy after"),
        (
            fed(hashes=["aa", "bb"]),
            fed(hashes=["bb"]),
            "data differs: synthetic (hash aa and bb) before, synthetic (hash bb) after",
        ),
        (
            fed(hashes=["a", "b", "c", "d"]),
            fed(hashes=["a", "b", "c", "e"]),
            "data differs: synthetic (hash a and b and c and d) before, synthetic (hash a and b and c and e) after",
        ),
        (
            fed(pipeline="DataLoader with 0 workers"),
            fed(),
            "pipeline differs: DataLoader with 0 workers before, fairlap after",
        ),
    ],
)
def test_fed_and_unfed_and_other_data_and_other_pipelines_are_other_work_reported_in_one_line(
    before: Run, after: Run, words: str
) -> None:
    compared = compare_saved_runs(before, after)
    [found] = compared.differences
    assert found.regression.change is Change.NOT_COMPARABLE
    assert [str(warning) for warning in found.regression.warnings] == [words]
    assert "not recorded" not in runs_text(compared)


def test_runs_that_were_fed_the_same_by_the_same_are_compared_and_say_that_they_were_fed() -> None:
    text = runs_text(compare_saved_runs(fed(hashes=["aa", "bb"]), fed(hashes=["aa", "bb"])))
    assert text.startswith("mlp · infer · fp32 · batch 1 · fed synthetic · as-found · torch (1.0): equivalent: ")
    assert "differs" not in text


def test_the_same_samples_are_the_same_data_wherever_they_lie() -> None:
    [found] = compare_saved_runs(fed("x.npy"), fed("y.npy")).differences
    assert found.regression.change is Change.EQUIVALENT


def test_contestants_whose_names_ask_for_other_pipelines_are_not_matched() -> None:
    dataloader = saved_run({"torch:feed=dataloader": 1e6}, data="synthetic", pipeline="DataLoader with 0 workers")
    assert runs_text(compare_saved_runs(fed(), dataloader)) == (
        "only before: torch on mlp · infer · fp32 · batch 1 · fed synthetic, as-found; not compared\n"
        "only after: torch:feed=dataloader on mlp · infer · fp32 · batch 1 · fed synthetic, as-found; not compared"
    )


def test_a_setting_that_varied_in_one_run_only_is_reported_as_what_it_was() -> None:
    alike = saved_run({"torch": 1e6})
    for process in alike.processes:
        process.in_force["cache hits"] = "0"
    [found] = compare_saved_runs(saved_run({"torch": 1e6}), alike).differences
    assert EnvironmentDiffers("cache hits", "0 and 1", "0") in found.regression.warnings


def test_times_of_different_quantities_are_never_compared() -> None:
    before = saved_run({"torch==1.0": 1e6, "jax": 1e6}, quantity="device_span_ns")
    after = saved_run({"torch==2.0": 1e6, "jax": 1e6})
    compared = compare_saved_runs(before, after)
    assert compared.differences == ()
    assert len(compared.unmatched) == 4
    assert all("device_span_ns" in each for each in compared.unmatched if each.startswith("only before"))


def trained(step_s: float, target: float = 0.9) -> Run:
    """Reached after 100 steps, while the calls that were timed took as long as ever."""
    run = saved_run({"torch": 1e6})
    run.plan = replace(run.plan, to_score=target)
    for number, process in enumerate(run.processes):
        seconds = 100 * step_s * (1 + 0.001 * (number % 3))
        process.learning = LearningCurve(target, (Evaluation(100, seconds, 0.95, 0.1),))
    return run


def test_runs_to_a_score_are_compared_by_the_time_that_it_took() -> None:
    [found] = compare_saved_runs(trained(1e-3), trained(2e-3)).differences
    assert found.regression.change is Change.SLOWER
    assert found.regression.ratio == pytest.approx(2.0, rel=0.01)


def test_a_run_that_counts_evaluation_is_not_compared_with_one_that_does_not() -> None:
    counting = trained(1e-3)
    counting.plan = replace(counting.plan, count_evaluation=True)
    assert compare_saved_runs(trained(1e-3), counting).differences == ()
    assert len(compare_saved_runs(counting, counting).differences) == 1


def test_runs_to_different_scores_are_not_compared() -> None:
    assert compare_saved_runs(trained(1e-3), trained(1e-3, target=0.8)).differences == ()


TWO = threads(1, 2)


def test_a_diff_matches_each_scale_with_itself() -> None:
    before = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.6}, listed="torch")
    after = a_run(TWO, {TWO[0]: 1.0, TWO[1]: 1.3}, listed="torch", seed=4)
    compared = compare_saved_runs(before, after)
    assert compared.unmatched == ()
    changes = {each.work.rpartition(" · ")[2]: each.regression.change for each in compared.differences}
    assert changes["2 threads"] is Change.SLOWER
    assert changes["1 thread"] is not Change.SLOWER


def test_runs_on_a_file_before_and_after_a_change_are_not_compared_and_it_is_said_why() -> None:
    def on_file(digest: str) -> Run:
        run = saved_run({"torch": 1e6, "jax": 2e6})
        source = Source("net.onnx", "/a/net.onnx", batch=4, files=(("/a/net.onnx", digest),))
        work = replace(run.plan.works[0], model=source.name, source=source)
        run.plan = replace(run.plan, works=(work,))
        for process in run.processes:
            process.work_id = work.id
        return run

    before, after = on_file("1" * 64), on_file("2" * 64)
    compared = compare_saved_runs(before, after)
    assert compared.differences == ()
    [why] = [text for text in compared.unmatched if not text.startswith("only ")]
    assert before.plan.works[0].label in why
    assert len({text.partition(": ")[2] for text in compared.unmatched if text.startswith("only ")}) == 4
    assert len(compare_saved_runs(before, on_file("1" * 64)).differences) == 2
    assert not is_same_run(before, after)


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
    [work] = run.plan.works
    scales = Scale(1), Scale(7), Scale(1, ranks=2), Scale(1, ranks=2, hosts=("a", "b"))
    run.plan = replace(run.plan, works=tuple(replace(work, scale=scale) for scale in scales))
    rows = [replace(row, work_id=each.id, threads=run.plan.threads_of(each)) for each in run.plan.works]
    stored(tmp_path / "s", [(run, rows)])
    with open_store(tmp_path / "s", reading=True) as store:
        found = store.ask(recorded_figures, row.workload, "")
    assert len({(each.work, each.threads) for each in found}) == 4
    assert len({each.work_id for each in found}) == 3


def test_lines_of_several_runs_have_the_work_of_their_own_scale(tmp_path: Path) -> None:
    scales = ranks(1, 2)
    save_run(tmp_path / "a.json", a_run(scales, dict.fromkeys(scales, 1.0), listed="torch"))
    entries = entries_of([rows_named(str(tmp_path / "a.json"))], {}, {})
    assert len({each.line.work for each in entries}) == 2
    assert all(each.row.scale in each.line.work for each in entries)
