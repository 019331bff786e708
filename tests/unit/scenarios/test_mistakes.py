"""Planted mistakes: what there is, how processes that are lost are survived, and what is counted and shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from command_line import invoke, refusal
from fairlap.launch.runners import Runner
from fairlap.launch.worker_lost import WorkerLost
from fairlap.render.encoders.text import text_of
from fairlap.request.names import Contestants
from fairlap.scenarios.mistakes.catalogue import KINDS, chosen, mistakes
from fairlap.scenarios.mistakes.mistakes_messages import MistakeSeen, PlantMistake
from fairlap.scenarios.mistakes.race import mistakes_run
from fairlap.scenarios.mistakes.race.mistakes_run import MistakesPlan, MistakesRun, run_mistakes
from fairlap.scenarios.mistakes.render.mistakes_document import document_of
from fairlap.scenarios.mistakes.results.mistakes_result import MistakeRow, MistakesResult, result_of
from fairlap.scenarios.mistakes.ways import WAYS


def test_there_are_thirty_and_each_contestant_has_each_or_the_reason_why_not() -> None:
    found = mistakes()
    assert len(found) == 30
    assert {each.kind for each in found.values()} == set(KINDS)
    for each in found.values():
        assert each.what.endswith(".")
        assert "\n" not in each.what
        for name, way in WAYS.items():
            function = each.function(way)
            assert (function is None) <= bool(each.why_absent(name, way)), (each.name, name)
            assert function is None or each.marked_lines(way), (each.name, name)
    known = {*WAYS, *(function for way in WAYS.values() for function in way.functions)}
    assert all(set(each.absent) <= known for each in found.values())


def test_the_marked_line_is_the_one_of_the_contestant_s_own_code() -> None:
    product = mistakes()["matrix_product"]
    lines = Path(product.file).read_text().splitlines()
    marked = {name: product.marked_lines(WAYS[name]) for name in ("torch", "jax", "numpy")}
    assert len({*marked.values()}) == 3
    assert all("x @ w" in lines[number - 1] for [number] in marked.values())


def test_mistakes_are_chosen_by_name_and_kind() -> None:
    assert len(chosen(())) == 30
    assert {mistakes()[name].kind for name in chosen(["tracing"])} == {"tracing"}
    assert chosen(["nan_loss", "nan_loss"]) == ("nan_loss",)


class LosingWorker:
    """In the place of a worker's process: one mistake crashes it, one hangs, and the others are reported."""

    started = 0
    answers: ClassVar[dict[str, MistakeSeen | WorkerLost]] = {}

    def __init__(self, *_command: object, **_options: object) -> None:
        type(self).started += 1

    def __enter__(self) -> LosingWorker:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def ask(self, request: PlantMistake, **_within: float) -> MistakeSeen:
        answer = self.answers.get(request.mistake, MistakeSeen("1.0", 0.5, "ValueError", "wrong", "Traceback\nwrong"))
        if isinstance(answer, WorkerLost):
            raise answer
        return answer

    def quit(self) -> None:
        pass


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> type[LosingWorker]:
    monkeypatch.setattr(mistakes_run, "WorkerProcess", LosingWorker)
    monkeypatch.setattr(mistakes_run, "_runner", lambda name, *_others: Runner(name, ("none",)))
    LosingWorker.started = 0
    LosingWorker.answers = {"control": MistakeSeen("1.0", right=True)}
    return LosingWorker


def run_of(*names: str, on: str = "numpy", blocks: int = 1) -> MistakesRun:
    return run_mistakes(Contestants(on), MistakesPlan(names, blocks, 1.0, 1), lambda _: None)


def rows_of(run: MistakesRun) -> dict[str, MistakeRow]:
    return {row.mistake: row for row in result_of(run).rows}


def test_a_process_that_is_lost_ends_with_its_mistake_and_the_others_have_a_new_one(worker: type[LosingWorker]) -> None:
    worker.answers["matrix_product"] = WorkerLost("crash", "it crashed with SIGSEGV in matrix_product")
    worker.answers["missing_axis"] = WorkerLost("timeout", "it did not finish missing_axis within 1 s")
    rows = rows_of(run_of("layer_of_chain", "matrix_product", "missing_axis", "reshape_size", "nan_loss"))
    assert {name: row.outcome for name, row in rows.items()} == {
        "layer_of_chain": "error",
        "matrix_product": "crash",
        "missing_axis": "hang",
        "reshape_size": "error",
        "nan_loss": "error",
    }
    assert worker.started == 3
    assert "SIGSEGV" in rows["matrix_product"].message


def test_where_an_error_changes_what_the_next_one_says_each_mistake_has_a_process(worker: type[LosingWorker]) -> None:
    rows = rows_of(run_of("matrix_product", "missing_axis", "reshape_size", on="tensorflow:graph"))
    assert [row.outcome for row in rows.values()] == ["error"] * 3
    assert worker.started == 3


def test_a_contestant_that_fails_without_a_mistake_has_no_rows(worker: type[LosingWorker]) -> None:
    worker.answers["control"] = MistakeSeen("1.0", raised="ImportError", message="no such symbol")
    run = run_of("matrix_product")
    assert "ImportError" in run.failures["numpy"]
    assert run.codes == {"numpy": "E_OUTPUT"}
    assert result_of(run).rows == ()


def test_outcomes_that_differ_between_processes_are_marked_and_the_most_frequent_is_shown(
    worker: type[LosingWorker],
) -> None:
    run = run_of("matrix_product", blocks=3)
    odd = msgspec.structs.replace(run.planted[0], seen=MistakeSeen("1.0", 0.1))
    run.planted[0] = odd
    row = rows_of(run)["matrix_product"]
    assert (row.outcome, row.differs) == ("error", True)
    assert row.report_s is not None
    assert (row.report_s.value, row.report_s.low) == (0.5, None)  # an interval takes six


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (MistakeSeen("1", 0.1, "TypeError", "m"), "error"),
        (MistakeSeen("1", right=True), "works"),
        (MistakeSeen("1", right=True, warned="shape (17, 1)"), "works"),
        (MistakeSeen("1"), "silent"),
        (MistakeSeen("1", warned="model.py:3: FutureWarning: this name will change"), "silent"),
        (MistakeSeen("1", warned="sizes torch.Size([17]) and (17, 1) differ"), "warning"),
        (MistakeSeen("1", warned="model.py:3: mse_loss may be wrong"), "warning"),
    ],
)
def test_a_warning_counts_only_if_it_is_about_the_mistake(
    worker: type[LosingWorker], seen: MistakeSeen, outcome: str
) -> None:
    worker.answers["broadcast_by_accident"] = seen
    assert rows_of(run_of("broadcast_by_accident"))["broadcast_by_accident"].outcome == outcome


def test_counts_are_of_what_is_reported_and_has_such_a_thing(worker: type[LosingWorker]) -> None:
    product = mistakes()["matrix_product"]
    [line] = product.marked_lines(WAYS["numpy"])
    text = "matmul: (4, 17) and (13, 6)"
    worker.answers["matrix_product"] = MistakeSeen("1.0", 0.5, "ValueError", text, f"{product.file}:{line}\n{text}")
    worker.answers["nan_loss"] = MistakeSeen("1.0", 0.1)
    worker.answers["missing_axis"] = MistakeSeen("1.0", 0.3, "AxisError", "axis 3", "Traceback\naxis 3")
    worker.answers["wrong_weight_shape"] = MistakeSeen("1.0", 0.1, "ValueError", "no", "no")  # has no operator
    result = result_of(run_of("matrix_product", "nan_loss", "missing_axis", "wrong_weight_shape", "branch_on_value"))
    [found] = result.contestants
    assert (found.planted, found.outcomes) == (4, {"error": 3, "silent": 1})
    assert (found.line, found.both, found.operator, found.part) == ((1, 3), (1, 3), (1, 2), (0, 0))
    assert (found.report_s, found.printed_lines) == (0.3, 2)
    rows = {row.mistake: row for row in result.rows}
    assert rows["branch_on_value"].outcome == "absent"
    assert rows["branch_on_value"].absent
    assert "error: line, both, operator" in text_of(document_of(result))
    assert "branch_on_value" not in [line.split()[0] for line in text_of(document_of(result)).splitlines() if line]


def test_real_mistakes_in_numpy_are_seen_as_its_users_see_them(tmp_path: Path) -> None:
    file = tmp_path / "found.csv"
    names = (
        "matrix_product",
        "layer_of_sequence",
        "broadcast_by_accident",
        "nan_loss",
        "mixed_precisions",
        "side_effect",
    )
    done = invoke("mistakes", *names, "--on", "numpy", "--json", "-o", file)
    assert done.exit_code == 0, done.output
    result = msgspec.json.decode(done.stdout, type=MistakesResult)
    rows = {row.mistake: row for row in result.rows}
    assert {name: row.outcome for name, row in rows.items()} == {
        "matrix_product": "error",
        "layer_of_sequence": "error",
        "broadcast_by_accident": "silent",
        "nan_loss": "warning",
        "mixed_precisions": "works",
        "side_effect": "absent",
    }
    product, of_list = rows["matrix_product"], rows["layer_of_sequence"]
    assert (product.raised, product.named.line, product.named.sizes, product.named.operator) == (
        "ValueError",
        True,
        True,
        True,
    )
    assert product.printed.startswith("Traceback (most recent call last):\n")
    assert "planting.py" not in product.printed
    assert of_list.named.line is False
    with file.open(newline="") as lines:
        assert len(list(csv.DictReader(lines))) == len(names)


def test_what_cannot_be_planted_is_refused() -> None:
    def code_of(*words: str) -> Any:
        return refusal("mistakes", *words).code

    assert code_of("--on", "torch:fsdp") == "E_CONTESTANT"
    assert code_of("--on", "mxnet") == "E_CONTESTANT"
    assert code_of("--on", "keras==3.0.0") == "E_CONTESTANT"
    assert code_of("matrx_product", "--on", "numpy") == "E_REQUEST"
    assert code_of("--on", "numpy", "--blocks", "0") == "E_REQUEST"


def test_a_contestant_that_is_not_installed_is_reported_and_the_status_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mistakes_run, "find_spec", lambda _name: None)
    done = invoke("mistakes", "matrix_product", "--on", "keras", "--json")
    assert done.exit_code == 1
    assert "not installed" in json.loads(done.stdout)["failures"]["keras"]
