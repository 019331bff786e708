"""The loops by hand owe fairlap nothing, take turns with its race, and a ratio agrees only where its interval does."""

import ast
import os
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from fairlap.machine.programs.process_tree import descendants
from fairlap.machine.programs.processes import thread_states

from .agreement.__main__ import write_models
from .agreement.cases import BY_HAND, CASES, Case, median_of
from .agreement.loop import Loop
from .agreement.pairs import Pair, agreement_of, command_of, finished_rows, raced
from .agreement.race_in_turns import ROUNDS, Offer

LOOPS = sorted(BY_HAND.glob("*.py"))


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
        _, program, *given = case.loop_command(contestant, 1, Path())
        functions = offered[Path(program).name]
        assert not given or given[0] in functions or (case.name in OF_USERS and "of_a_user" in functions)


OF_USERS = {
    f"{mode} of {name}": function
    for mode in ("infer", "grad", "train")
    for name, function in (
        ("a user's convolutions", "convolutions"),
        ("a user's transformer", "transformer"),
        ("a Keras model", "network"),
        ("a JAX function", "residual_network"),
    )
}


@pytest.mark.parametrize("name", OF_USERS)
def test_the_loop_of_a_users_model_is_of_the_model_that_races(name: str) -> None:
    [case] = [case for case in CASES if case.name == name]
    source, function = case.command[1].split(":")
    assert case.scenario == f"{function}_{name.partition(' ')[0]}"
    assert function == OF_USERS[name]
    module = ast.parse((BY_HAND / f"{source.rpartition('.')[2]}.py").read_text())
    assert function in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


ROW = {
    "steps_to_score": 3.0,
    "largest_rate_per_s": {"value": 50.0},
    "latency_by_rate": [{"rate_per_s": 25.0}],
    "calls_per_sample": 4,
}
RUNS = [pytest.param(case, on, id=f"{case.name} {on}") for case in CASES for on in case.contestants]


@pytest.mark.thorough
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("case", "contestant"), RUNS)
def test_every_loop_reports_its_figure(case: Case, contestant: str, tmp_path: Path) -> None:
    write_models(tmp_path)
    given = [25.0] if case.turn_of == "steps" else case.given(ROW)
    command, cores = case.loop_command(contestant, 1, tmp_path), sorted(os.sched_getaffinity(0))
    with Loop(command, cores, is_stopped=case.is_stopped) as loop:
        for _ in range(1 if case.turn_of is None else 2):
            loop.take_turn(given)
        assert case.by_hand_figure(loop.turns, ROW) > 0


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("longer", [0.0, 0.03])
def test_pairs_of_loops_find_a_known_difference_within_one_percent(longer: float) -> None:
    found = agreement_of([pair_of_known_loops(longer) for _ in range(12)], 0.01)
    assert found.ratio == pytest.approx(1 + longer, rel=0.01)


def pair_of_known_loops(longer: float) -> Pair:
    """Pair two loops in turns as a race and a loop are paired, in fresh processes."""
    with ExitStack() as stack:
        commands = [[sys.executable, str(BY_HAND / "known_work.py"), str(share)] for share in (0.0, longer)]
        plain, other = (stack.enter_context(Loop(command, [min(os.sched_getaffinity(0))])) for command in commands)
        for number in range(20):
            for loop in (plain, other) if number % 2 else (other, plain):
                loop.take_turn()
        return Pair("known work", f"{longer} longer", 1, median_of(other.turns, {}), median_of(plain.turns, {}))


@pytest.mark.thorough
def test_a_race_hands_over_before_every_turn_while_its_contestants_are_frozen() -> None:
    offers: list[Offer] = []
    frozen: list[int] = []

    def serve(offer: Offer) -> None:
        offers.append(offer)
        workers = [pid for pid in descendants(os.getpid()) if b"fairlap.worker" in command_line(pid)]
        frozen.append(sum(set(thread_states(pid)) == {"T"} for pid in workers))

    latency = next(case for case in CASES if case.name == "latency")
    run = raced(command_of(latency, 1, ["onnxruntime", "torch"], "cpu"), serve)
    assert set(finished_rows(run)) == {"onnxruntime", "torch"}
    expected = {("preparation", 1), ("calls", ROUNDS)}
    for contestant in ("onnxruntime", "torch"):
        assert set(Counter(each.of for each in offers if each.contestant == contestant).items()) == expected
    assert set(frozen) == {2}


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


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
