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

from .agreement.__main__ import chosen, write_files, write_models
from .agreement.by_hand.sizes import BATCH, LENGTHS
from .agreement.case import BY_HAND, Case, median_of
from .agreement.cases import CASES
from .agreement.loop import Loop, LoopTurn
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
        of_user = case.name in OF_USERS and "of_a_user" in functions
        assert not given or given[0] in functions or of_user or f"{given[0]}.py" in offered
        assert not case.writes or case.writes in offered["users_files.py"]


def test_cases_are_chosen_by_name_or_all_of_one_kind() -> None:
    names = [case.name for case in chosen(CASES, "simulating,latency,solving with diffrax")]
    assert names[0] == "latency"
    assert "solving with scipy:LSODA" not in names
    assert [name for name in names if name.startswith("solving")] == ["solving with diffrax"]
    libraries = {name.partition(" with ")[2] for name in names if name.startswith("simulating")}
    assert libraries == {"numpy", "torch", "jax", "gymnax", "gymnasium", "gymnasium:vectorized"}
    with pytest.raises(SystemExit):
        chosen(CASES, "simulate")


OF_USERS = {
    f"{mode} of {name}": function
    for mode in ("infer", "grad", "train")
    for name, function in (
        ("a user's convolutions", "convolutions"),
        ("a user's transformer", "transformer"),
        ("a Keras model", "network"),
        ("a JAX function", "residual_network"),
        ("a flax model", "network"),
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


def test_times_of_calls_whose_size_changes_are_medians_of_each_size_by_how_often_it_occurs() -> None:
    """Of the calls of each size one is slow, and all others take as many nanoseconds as the size."""
    flat = [number for size in LENGTHS for time_ns in (size, size, 10**9) for number in (size, time_ns)]
    turns = [LoopTurn((), flat[:10]), LoopTurn((), flat[10:])]
    figures = {case.name: case.by_hand_figure(turns, {}) for case in CASES if case.name.startswith("sizes that change")}
    mean = sum(size * calls for size, calls in LENGTHS.items()) / sum(LENGTHS.values())
    assert figures == {
        "sizes that change": pytest.approx(mean),
        **{f"sizes that change: {size}": size for size in LENGTHS},
    }
    row = {
        "judged": {"value": 7.0},
        "mix_by_size": [{"size": str(size), "call_ns": {"value": size + 0.5}} for size in reversed(LENGTHS)],
    }
    read = {case.name: case.figure(row) for case in CASES if case.name in figures}
    assert read == {"sizes that change": 7.0, **{f"sizes that change: {size}": size + 0.5 for size in LENGTHS}}


def test_a_candidate_is_paired_with_the_loop_of_its_own_model() -> None:
    candidates = [
        {
            "contestant": contestant,
            "model": f"files/{model}.onnx",
            "outcome": "finished",
            "time_per_item_ns": {"value": time_ns},
            "score": {"value": score},
        }
        for contestant, factor in (("torch", 5), ("onnxruntime", 1))
        for model, time_ns, score in (("small", 10.0 * factor, 0.25), ("large", 30.0 * factor, 0.75))
    ]
    rows = finished_rows({"candidates": candidates})
    cases = {case.name: case for case in CASES if case.command[0] == "choose"}
    found = {name: case.figure(rows["onnxruntime"]) for name, case in cases.items()}
    assert found == {
        "time of a candidate: small": 10.0 * BATCH,
        "time of a candidate: large": 30.0 * BATCH,
        "score of a candidate: small": 0.25,
        "score of a candidate: large": 0.75,
    }
    for name, case in cases.items():
        models = [model for model in ("small", "large") if case.is_of(f"files/{model}.onnx")]
        assert models == [name.rpartition(" ")[2]]
        assert Path(case.loop_command("onnxruntime", 1, Path("files"))[-1]).stem == models[0]


def test_the_file_that_a_user_brings_has_the_network_of_the_loops(tmp_path: Path) -> None:
    """By the shapes of its weights, which name every layer of the loops' network."""
    onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    write_files(tmp_path, ["convolutions"])
    graph = onnx.load(tmp_path / "convolutions.onnx").graph
    kernels = [tuple(each.dims) for each in graph.initializer if len(each.dims) == 4]
    assert kernels == [(32, 3, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3)]
    loops = trees()
    for name in ("with_torch.py", "with_jax.py", "with_tensorflow.py"):
        assert "(3, 32, 64, 64)" in ast.unparse(loops[name])


RUNS = [pytest.param(case, on, id=f"{case.name} {on}") for case in CASES for on in case.contestants]


@pytest.mark.thorough
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("case", "contestant"), RUNS)
def test_every_loop_reports_its_figure(case: Case, contestant: str, tmp_path: Path) -> None:
    if case.needs:
        pytest.importorskip(case.needs, reason=f"`pip install {case.needs}` lets `make trust-agreement` run this")
    write_models(tmp_path)
    write_files(tmp_path, [case.writes] if case.writes else [])
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
