"""What compiling did is asked of fresh processes that are in no block, and whatever happens to them is reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fairlap
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.sources.registry import kinds
from fairlap.race.around_blocks.after_blocks import Findings
from fairlap.race.around_blocks.compilation_result import CompilationResult, still_to_inspect
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.race import Race
from fairlap.race.run import Run
from fairlap.request.fields.sizes.other_inputs import OtherInputs
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.results import results_of
from fairlap.results.row import Row
from machine_marks import needs_proc
from one_block import run_of_one_block

pytestmark = [pytest.mark.sanitized, needs_proc]


@pytest.fixture(autouse=True)
def kinds_of_example(example: None) -> Iterator[None]:
    kinds.cache_clear()  # those of another test lack the example's
    yield
    kinds.cache_clear()


def raced(contestants: str, *batches: int, model: str = "mlp", others: tuple[OtherInputs, ...] = ()) -> Run:
    work = Work(model, 2)
    return run_of_one_block(contestants, work, seconds=0.05, recompile=batches, recompile_inputs=others)


def rows_of(run: Run) -> dict[str, Row]:
    return {row.contestant: row for row in results_of(run, "r").rows}


@pytest.fixture(scope="module")
def asked(example_of_file: None) -> Run:
    """Ask three contestants for their own batch, another one, and four types."""
    kinds.cache_clear()
    types = (OtherInputs("float32"), OtherInputs("float64"), OtherInputs("bfloat16"), OtherInputs("int64"))
    return raced("example,example:compiles,example:one-batch", 2, 5, others=types)


def found_of(run: Run, contestant: str) -> CompilationResult:
    [found] = [each for each in run.compilations if each.contestant == contestant]
    return found


def test_one_that_compiles_again_reports_stall_reason_and_calls_from_processes_that_are_in_no_block(asked: Run) -> None:
    found = found_of(asked, "example:compiles")
    assert (found.code, found.message) == ("", "")
    assert (found.described.graphs, found.described.graph_breaks, found.described.break_reasons) == (1, 1, ("a print",))
    own, other = found.batches[:2]
    assert (own.batch, own.resized.compiled, own.resized.reasons) == (2, 0, ())
    assert (other.batch, other.resized.compiled, other.resized.reasons) == (5, 1, ("batch 5, [784] of float32 is new",))
    assert other.resized.stall_s is not None
    assert other.resized.call_s is not None
    assert other.resized.stall_s > 0.04
    assert other.resized.built_s is None
    assert other.prepared_call_s is not None
    assert own.prepared_call_s is None
    assert own.why_not_prepared


def test_the_race_does_not_know_of_the_processes_that_were_asked(asked: Run) -> None:
    """They are in no block, and in no figure of the row."""
    assert [process.block for process in asked.processes] == [0, 0, 0]
    row = rows_of(asked)["example:compiles"]
    assert (row.processes, row.processes_finished) == (1, 1)
    assert (row.graphs, row.graph_breaks, row.operators_before, row.kernels_after) == (1, 1, 6, 4)
    assert row.operators_counted == "operators, and kernels"
    assert set(row.recompile_stall_s) == {"2", "5", "float32", "float64"}
    assert set(row.recompile_absent) == {"bfloat16", "int64"}


def test_one_that_is_built_for_one_batch_is_built_again_and_reports_how_long_that_took(asked: Run) -> None:
    found = found_of(asked, "example:one-batch")
    own, other = found.batches[:2]
    assert not found.described.takes_any_batch
    assert own.resized.built_s is None
    assert other.resized.built_s is not None
    assert other.resized.stall_s is not None
    assert other.resized.stall_s >= other.resized.built_s
    assert other.prepared_call_s is None


def test_a_contestant_whose_adapter_reports_nothing_has_the_reason_in_its_row(asked: Run) -> None:
    row = rows_of(asked)["example"]
    assert row.graphs is None
    assert row.absent["graphs"] == row.absent["kernels_after"] == row.recompile_absent["5"]
    assert "adapter" in row.absent["graphs"]


def test_inputs_of_another_type_are_compiled_for_at_the_works_own_batch_and_no_process_is_prepared_for_them(
    asked: Run,
) -> None:
    same, wider, unknown, _ = found_of(asked, "example:compiles").batches[2:]
    assert (same.batch, same.text, same.resized.compiled) == (2, "float32", 0)
    assert (wider.text, wider.resized.compiled) == ("float64", 1)
    assert "float64" in wider.resized.reasons[0]
    assert wider.resized.stall_s is not None
    assert wider.resized.stall_s > 0.04
    assert wider.prepared_call_s is None
    assert wider.why_not_prepared
    assert "TypeError" in unknown.resized.why


def test_one_that_refuses_another_type_says_so_in_a_line_without_the_frameworks_own_words(asked: Run) -> None:
    why = rows_of(asked)["example:one-batch"].recompile_absent["float64"]
    assert "float64" in why
    assert "the graph declares them" in why
    assert "INVALID_ARGUMENT" not in why


def test_a_type_of_numbers_that_no_input_holds_is_reported(asked: Run) -> None:
    assert "integers" in rows_of(asked)["example:compiles"].recompile_absent["int64"]


@pytest.mark.slow
def test_a_crash_at_another_batch_keeps_what_was_found_and_leaves_the_race_as_it_was() -> None:
    run = raced("example:crash-at-others,example:compiles", 3)
    rows = rows_of(run)
    assert {row.outcome for row in rows.values()} == {"finished"}
    assert rows["example:crash-at-others"].graphs == 1
    assert "E_CRASH" in rows["example:crash-at-others"].recompile_absent["3"]
    assert "3" in rows["example:compiles"].recompile_stall_s


@pytest.mark.slow
def test_only_contestants_that_finished_are_asked_and_each_once() -> None:
    run = raced("example:raises,example:one-batch", 2)
    assert [each.contestant for each in run.compilations] == ["example:one-batch"]
    assert still_to_inspect(run.plan, run.processes, []) == {("example:one-batch", run.plan.works[0].id)}
    assert rows_of(run)["example:raises"].recompile_absent["2"] == rows_of(run)["example:raises"].message
    asked: list[CompilationResult] = []
    before = Findings(compilations=list(run.compilations), keep_compilation=asked.append)
    Race(run.plan, resumed=run.processes, findings=before).run()
    assert asked == []
    Race(run.plan, resumed=run.processes, findings=Findings(keep_compilation=asked.append)).run()
    assert [each.contestant for each in asked] == ["example:one-batch"]


def test_nothing_is_asked_unless_it_was_requested() -> None:
    run = raced("example:compiles")
    assert run.compilations == []
    row = rows_of(run)["example:compiles"]
    assert "--recompile" in row.absent["graphs"]
    assert (row.recompile_stall_s, row.recompile_absent) == ({}, {})


@pytest.mark.slow
def test_inputs_of_a_users_model_are_repeated_and_one_built_from_its_file_stays_at_its_batch(tmp_path: Path) -> None:
    model = tmp_path / "m.linear.json"
    model.write_text(json.dumps({"matrix": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]}))
    on = ["example:compiles", "example:one-batch"]
    results = fairlap.compare(str(model), on=on, batch=4, recompile=9, blocks=1, seconds=0.05, threads=1)
    rows = {row.contestant: row for row in results.rows}
    assert set(rows["example:compiles"].recompile_stall_s) == {"9"}
    assert rows["example:one-batch"].recompile_stall_s == {}
    assert "--batch" in rows["example:one-batch"].recompile_absent["9"]


@pytest.mark.slow
def test_another_size_of_the_model_is_compiled_for_or_built_again_and_compared_with_a_process_prepared_for_it() -> None:
    run = raced("example:compiles,example:one-batch", model="convnet", others=(OtherInputs(size="image", to=16),))
    by_name = {found.contestant: found.batches[0] for found in run.compilations}
    compiled, built = by_name["example:compiles"], by_name["example:one-batch"]
    assert (compiled.text, compiled.resized.why, compiled.resized.compiled) == ("image=16", "", 1)
    assert compiled.prepared_call_s is not None
    assert built.resized.built_s is not None
    assert built.prepared_call_s is None


@pytest.mark.parametrize(
    ("model", "asked"),
    [("mlp", "tokens=64"), ("convnet", "tokens=64"), ("convnet", "image=4"), ("mlp", "float8"), ("mlp", "image="),
     ("mlp", "")],
)  # fmt: skip
def test_a_size_or_type_that_the_model_does_not_have_is_refused_when_the_race_is_planned(
    model: str, asked: str
) -> None:
    wanted = RaceRequest(models=(model,), contestants=Contestants("example"), threads=1, recompile=(8, asked))
    with pytest.raises(InvalidRequest) as refused:
        plan_of(wanted)
    assert refused.value.code == "E_RECOMPILE"
    assert asked in str(refused.value)


def test_a_size_of_a_model_of_ones_own_is_refused_since_it_is_opened_for_its_shapes(tmp_path: Path) -> None:
    model = tmp_path / "m.linear.json"
    model.write_text(json.dumps({"matrix": [[1.0, 2.0], [3.0, 4.0]]}))
    with pytest.raises(InvalidRequest) as refused:
        fairlap.compare(str(model), on=["example"], batch=4, recompile="image=9", blocks=1, threads=1)
    assert refused.value.code == "E_RECOMPILE"
    assert "--shapes" in str(refused.value)


def test_batches_sizes_and_types_are_read_from_one_option_and_asked_for_once_each() -> None:
    wanted = request(recompile=("8", "float64", 1, "image=32", "8", "float64"), model="convnet")
    plan = plan_of(wanted)
    assert plan.recompile == (8, 1)
    assert plan.recompile_inputs == (OtherInputs("float64"), OtherInputs(size="image", to=32))
    assert plan.recompiled_on == ("8", "1", "float64", "image=32")


def test_batches_are_asked_for_once_each_and_not_in_mode_grad() -> None:
    assert plan_of(request(recompile=(8, 1, 8))).recompile == (8, 1)
    assert plan_of(request(recompile=7)).recompile == (7,)
    for wrong in ({"recompile": 8, "mode": ("infer", "grad")}, {"recompile": 0}):
        with pytest.raises(InvalidRequest) as refused:
            plan_of(request(**wrong))
        assert refused.value.code == ("E_RECOMPILE" if "mode" in wrong else "E_REQUEST")


def request(model: str = "mlp", **options: Any) -> RaceRequest:
    return RaceRequest(models=(model,), contestants=Contestants("example"), threads=1, **options)
