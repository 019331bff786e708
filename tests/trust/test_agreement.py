"""The loops by hand owe fairlap nothing, and a ratio agrees only where its whole interval does."""

import ast
import os
from pathlib import Path

import pytest

from .agreement.__main__ import write_models
from .agreement.cases import BY_HAND, CASES, Case
from .agreement.pairs import Pair, agreement_of, by_hand

LOOPS = sorted(BY_HAND.glob("*.py"))
ROW = {
    "steps_to_score": 3.0,
    "largest_rate_per_s": {"value": 50.0},
    "latency_by_rate": [{"rate_per_s": 25.0}],
    "calls_per_sample": 4,
}


def trees() -> dict[str, ast.Module]:
    return {file.name: ast.parse(file.read_text()) for file in LOOPS}


def test_no_loop_imports_anything_of_fairlap() -> None:
    imported = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module))
    assert "torch" in imported
    assert not [name for name in imported if name.partition(".")[0] == "fairlap"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_its_loop(case: Case) -> None:
    offered = {
        name: {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} for name, tree in trees().items()
    }
    for contestant in case.contestants:
        _, program, *given = case.by_hand(contestant, 1, ROW, Path())
        assert not given or given[0] in offered[Path(program).name]


RUNS = [pytest.param(case, on, id=f"{case.name} {on}") for case in CASES for on in case.contestants]


@pytest.mark.thorough
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("case", "contestant"), RUNS)
def test_every_loop_reports_its_figure(case: Case, contestant: str, tmp_path: Path) -> None:
    write_models(tmp_path)
    assert by_hand(case, contestant, 1, ROW, tmp_path, sorted(os.sched_getaffinity(0)), "cpu") > 0


@pytest.mark.parametrize(
    ("ratios", "agrees"),
    [
        ([1.00, 1.01, 1.01, 0.99, 1.00, 1.02, 1.00, 1.01], True),
        ([1.10, 1.11, 1.12, 1.09, 1.10, 1.12, 1.10, 1.11], False),
        ([0.90, 0.91, 0.90, 0.89, 0.91, 0.90, 0.92, 0.90], False),
        ([1.00, 1.10, 0.95, 1.02, 1.20, 1.00, 0.90, 1.05], None),
        ([1.00, 1.00, 1.00], None),
    ],
)
def test_a_ratio_agrees_where_its_whole_interval_is_allowed(ratios: list[float], agrees: bool | None) -> None:
    found = agreement_of([Pair("latency", "torch", 2, each * 5e6, 5e6) for each in ratios], 0.03)
    assert found.agrees is agrees
    assert found.pairs == len(ratios)
    assert found.by_hand == 5e6
