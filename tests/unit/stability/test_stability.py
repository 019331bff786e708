"""``fairlap stability`` finds what does not repeat, and writes one table in every format."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from command_line import invoke, refusal
from fairlap.models.operations.listed import operations_matching
from fairlap.race.planning.plan import Plan
from fairlap.render.encoders import encoded
from fairlap.render.encoders.text import text_of
from fairlap.stability import trials
from fairlap.stability.document import document_of
from fairlap.stability.table import Repeated, StabilityRow, StabilityTable

EQUAL = Repeated(True, 0, 10, 0.0)
SUM = "hard-sum-r2-n50-c2"


def a_row(contestant: str, **more: object) -> StabilityRow:
    usual = {"work": f"{SUM} · infer", "model": SUM, "precision": "fp32", "batch": 1, "version": "1.0"}
    return StabilityRow(contestant=contestant, **{**usual, **more})  # type: ignore[arg-type]


TABLE = StabilityTable(
    (
        a_row(
            "torch",
            relative_error=1e-6,
            digits_kept=6.0,
            digits_possible=6.6,
            time_ns=1500.0,
            again=EQUAL,
            process=EQUAL,
            threads=Repeated(False, 5, 10, 3e-8),
            batched=Repeated(why="all its sizes are in its name"),
        ),
        a_row("openvino", absent="it cannot", code="E_UNSUPPORTED"),
    ),
    seed=7,
    threads=2,
)


def test_one_table_has_all_in_text_markdown_html_csv_and_json() -> None:
    document = document_of(TABLE)
    for name in ("text", "md", "html"):
        found = text_of(document) if name == "text" else encoded(document, name).decode()
        for shown in ("torch", "6.6", "1.5", "equal", "50 % differ by", "E_UNSUPPORTED"):
            assert shown in found, (name, shown)
    [first, second] = csv.DictReader(encoded(document, "csv").decode().splitlines())
    assert (first["digits_kept"], first["threads_equal"], second["absent"]) == ("6.0", "False", "it cannot")
    data = json.loads(encoded(document, "json"))
    assert data["schema"] == "fairlap.stability/1"
    assert data["rows"][0]["threads"]["relative"] == 3e-8


@pytest.mark.parametrize("format_name", ["svg", "png"])
def test_the_picture_is_drawn(format_name: str) -> None:
    assert len(encoded(document_of(TABLE), format_name)) > 1000


def test_marks_of_several_precisions_differ_in_shape() -> None:
    def shapes(*precisions: str) -> set[str]:
        rows = tuple(a_row("torch", precision=each, digits_kept=2.0, time_ns=1e3) for each in precisions)
        picture = encoded(document_of(StabilityTable(rows, seed=7, threads=2)), "svg").decode()
        return set(re.findall(r'aria-roledescription="point" [^>]*? d="([^"]*)"', picture))

    assert len(shapes("fp32", "fp32")) == 1
    assert len(shapes("fp32", "bf16", "fp16")) == 3


def test_a_framework_that_lacks_an_operation_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "stability_rows", lambda _plan, _report: TABLE.rows)
    done = invoke("stability", SUM, "--on", "torch,openvino", "--seed", "7", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["seed"] == 7
    broken = (a_row("torch", absent="it crashed", code="E_CRASH"),)
    monkeypatch.setattr(trials, "stability_rows", lambda _plan, _report: broken)
    assert invoke("stability", SUM, "--on", "torch", "-q").exit_code == 1


def test_a_precision_that_the_device_lacks_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Plan] = []

    def measured(plan: Plan, _report: object) -> tuple[StabilityRow, ...]:
        planned.append(plan)
        return tuple(a_row(name.text, precision=work.precision) for work in plan.works for name in plan.contestants)

    monkeypatch.setattr(trials, "stability_rows", measured)
    command = ("stability", SUM, "--on", "torch,jax", "--precision", "fp32,tf32,bf16", "--json")
    done = invoke(*command)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [(row["contestant"], row["precision"], row["code"]) for row in rows] == [
        ("torch", "fp32", ""),
        ("jax", "fp32", ""),
        ("torch", "bf16", ""),
        ("jax", "bf16", ""),
        ("torch", "tf32", "E_UNSUPPORTED"),
        ("jax", "tf32", "E_UNSUPPORTED"),
    ]
    assert all("a CPU has none" in row["absent"] for row in rows[-2:])
    assert (planned[0].device, planned[0].precisions) == ("cpu", ("fp32", "bf16"))
    assert refusal("stability", SUM, "--on", "torch", "--precision", "tf32").code == "E_REQUEST"


def plans_of_trials(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Find them here once a command has run; nothing is measured."""
    planned: list[Plan] = []

    def nothing(plan: Plan, _report: object) -> tuple[StabilityRow, ...]:
        planned.append(plan)
        return ()

    monkeypatch.setattr(trials, "stability_rows", nothing)
    return planned


@pytest.mark.slow
def test_an_operation_that_lacks_a_precision_leaves_it_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plans_of_trials(monkeypatch)
    done = invoke("stability", "--on", "torch", "--precision", "fp32,bf16,fp16", "--json")
    assert done.exit_code == 0, done.output
    works = {(work.model, work.precision) for plan in planned for work in plan.works}
    listed = {each.operation.name for each in operations_matching("stability/*")}
    solving = {name for name in listed if "solve" in name}
    assert {model for model, precision in works if precision == "fp32"} == listed
    assert {model for model, precision in works if precision == "bf16"} == listed - solving
    lacking = {(row["model"], row["precision"]) for row in json.loads(done.stdout)["rows"]}
    assert lacking == {(name, each) for name in solving for each in ("bf16", "fp16")} | {
        ("hard-subnormal-r4-n1024", "fp16")
    }
    assert refusal("stability", "hard-solve-hilbert-n4", "--on", "torch", "--precision", "bf16").code == "E_REQUEST"


def test_a_gpu_is_asked_for_all_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plans_of_trials(monkeypatch)
    done = invoke("stability", SUM, "--on", "torch", "--precision", "fp32,tf32", "--device", "cuda", "--json")
    assert done.exit_code == 0, done.output
    [plan] = planned
    assert (plan.device, plan.precisions) == ("cuda:0", ("fp32", "tf32"))
    assert json.loads(done.stdout)["device"] == "cuda:0"


def test_what_all_contestants_lack_is_one_note() -> None:
    why = "no such thing"
    rows = tuple(
        a_row(name, model=model, absent=why, code="E_UNSUPPORTED")
        for name in ("torch", "jax")
        for model in map("model-{}".format, range(20))
    )
    shown = text_of(document_of(StabilityTable(rows, seed=7, threads=2)))
    assert shown.count(why) == 1
    assert all(f"torch, model-{number}:" not in shown for number in range(20))


def test_what_is_not_compared_is_one_note_for_all_works() -> None:
    apart = Repeated(why="all its sizes are in its name")
    rows = tuple(a_row("torch", model=f"model-{number}", batched=apart) for number in range(20))
    shown = text_of(document_of(StabilityTable(rows, seed=7, threads=2)))
    assert shown.count(apart.why) == 1


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    assert refusal("stability", "no-such-model", "--on", "torch").code == "E_REQUEST"
    assert refusal("stability", SUM, "--on", "torch", "-o", str(tmp_path / "a.parquet")).code == "E_OUTPUT_FORMAT"
    assert invoke("stability", SUM, "--on", "torch", "--precision", "int8").exit_code == 2
