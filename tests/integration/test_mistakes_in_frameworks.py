"""What is said of planted mistakes is what plain code of each framework prints, as a person has read it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from fairlap.request.names import Contestants
from fairlap.scenarios.mistakes.catalogue import mistakes
from fairlap.scenarios.mistakes.race.mistakes_run import MistakesPlan, run_mistakes
from fairlap.scenarios.mistakes.results.mistakes_result import MistakeRow, Outcome, result_of
from fairlap.scenarios.mistakes.ways import WAYS

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(900)]

SCRIPTS = Path(__file__).parents[1] / "support/mistakes_by_hand"


@dataclass(frozen=True)
class Read:
    """What a person read in the output of the script: ``has`` are texts in it, and ``lacks`` are not in its message."""

    outcome: Outcome
    raised: str = ""
    line: bool | None = None
    sides: int | None = None
    operator: bool | None = None
    part: bool | None = None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


BY_HAND = {
    "numpy__matrix_product": Read("error", "ValueError", True, 0, True, None, ("matmul",), ("(4, 17)", "(13, 6)")),
    "numpy__nan_loss": Read("warning", "", True, 1, True, None, ("in log", "nan")),
    "torch__matrix_product": Read("error", "RuntimeError", True, 2, True, None, ("(4x17 and 13x6)", "multiplied")),
    "torch__layer_of_sequence": Read("error", "RuntimeError", False, 2, True, False, ("4x19 and 13x23",), ("second",)),
    "torch__changed_before_gradient": Read("error", "RuntimeError", False, 1, True, None, ("inplace", "of Exp")),
    "torch__broadcast_by_accident": Read("warning", "", False, 2, True, None, ("[17, 1]", "[17])", "tensor(48.)")),
    "jax__matrix_product": Read("error", "TypeError", True, 0, True, None, ("dot_general", "(17,)"), ("(4, 17)",)),
    "jax__index_beyond_table": Read("silent", has=("[[0. 0. 0. 0. 0.]",)),
    "jax__branch_on_value": Read("error", "TracerBoolConversionError", True, 1, None, None, ("boolean conversion",)),
    "onnxruntime__layer_of_chain": Read(
        "error", "Fail", False, 0, True, True, ("Node (second) Op (MatMul)",), ("19,", "13,")
    ),
    "openvino__missing_input": Read("silent", has=("0.",)),
    "torch_compile__mixed_precisions": Read("works", has=("[[17.]]",)),
    "tensorflow__absent_device": Read("silent", has=("[1. 1.]",)),
    "tensorflow_graph__index_beyond_table": Read(
        "error", "InvalidArgumentError", True, 2, True, None, ("= 71 is not in [0, 37)", "GatherV2")
    ),
    "tensorflow_graph__side_effect": Read("silent", has=("1\n",)),
}
THOROUGH = ("torch_compile", "tensorflow", "tensorflow_graph")  # they take long to load or to compile


def _named(script: str) -> tuple[str, str]:
    """Return the contestant and the mistake."""
    contestant, mistake = script.split("__")
    return contestant.replace("_", ":"), mistake


@cache
def rows_of(contestant: str) -> dict[str, MistakeRow]:
    names = tuple(dict.fromkeys(mistake for each, mistake in map(_named, BY_HAND) if each == contestant))
    run = run_mistakes(Contestants(contestant), MistakesPlan(names, 1, 300.0, 1), lambda _: None)
    assert not run.failures
    return {row.mistake: row for row in result_of(run).rows}


def printed_by(script: Path) -> str:
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == ("Traceback (most recent call last)" in done.stderr)
    return done.stdout + done.stderr


def test_every_script_has_been_read() -> None:
    assert {script.stem for script in SCRIPTS.glob("*.py")} == set(BY_HAND)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if name.split("__")[0] in THOROUGH else pytest.mark.slow)
        for name in BY_HAND
    ],
)
def test_a_mistake_is_reported_as_plain_code_reports_it(name: str) -> None:
    contestant, mistake = _named(name)
    pytest.importorskip(WAYS[contestant].package, reason="`make test-slow` installs it and runs this")
    read, script = BY_HAND[name], SCRIPTS / f"{name}.py"
    printed = printed_by(script)
    assert ("Traceback" in printed) == (read.outcome == "error")
    assert all(text in printed for text in (read.raised, *read.has)), printed
    message = printed.rpartition(f"{read.raised}:")[2] if read.raised else printed
    assert not any(text in message for text in read.lacks), printed
    [marked] = [number for number, line in enumerate(script.read_text().splitlines(), 1) if line.endswith("# mistake")]
    if read.outcome == "error":
        assert (f'{script.name}", line {marked}' in printed) == read.line, printed

    row = rows_of(contestant)[mistake]
    assert (row.outcome, row.raised) == (read.outcome, read.raised)
    named = row.named
    found = (named.line if read.outcome == "error" else read.line, named.sides, named.operator, named.part)
    assert found == (read.line, read.sides, read.operator, read.part), row.printed


@pytest.mark.slow
@pytest.mark.parametrize("contestant", ["torch", "jax", "onnxruntime", "numpy"])
def test_mistakes_that_share_a_process_are_reported_as_each_alone(contestant: str) -> None:
    way = WAYS[contestant]
    pytest.importorskip(way.package, reason="`make test-slow` installs it and runs this")
    made = [name for name, each in mistakes().items() if not each.why_absent(contestant, way)]
    together = _reports(contestant, made)
    for name in made[:: len(made) // 3]:
        assert _reports(contestant, [name])[name] == together[name]


def _reports(contestant: str, names: list[str]) -> dict[str, tuple[object, ...]]:
    run = run_mistakes(Contestants(contestant), MistakesPlan(tuple(names), 1, 300.0, 1), lambda _: None)
    return {row.mistake: (row.outcome, row.raised, row.named, row.message) for row in result_of(run).rows}
