"""A warning about what is computed is printed once with the contestants, and not below each of them."""

from __future__ import annotations

import pytest
from fairlap.engine.measurement import Notice
from fairlap.render.text.contestant_lines import OF_THE_WORK
from fairlap.render.text.terminal import text_of
from fairlap.results.results import results_of
from runs_for_rows import a_run


def text_with(code: str, whose: tuple[str, ...], listed: str = "torch,jax") -> str:
    run = a_run(listed=listed)
    for process in run.processes:
        process.route = "its own converter"
        if process.contestant in whose:
            process.warnings = [Notice(code, "planted")]
    return text_of(results_of(run))


@pytest.mark.parametrize("code", OF_THE_WORK)
@pytest.mark.parametrize("whose", [("torch", "jax"), ("jax",)])
def test_it_is_said_once_and_names_the_contestants(code: str, whose: tuple[str, ...]) -> None:
    text = text_with(code, whose)
    [line] = [line for line in text.splitlines() if "planted" in line]
    assert line.startswith("  ! planted (")
    assert {name.strip() for name in line.partition("(")[2].partition(")")[0].split(",")} == set(whose)
    assert line.endswith(f"[{code}]")


def test_of_a_single_contestant_there_is_no_name_to_say() -> None:
    assert "  ! planted [W_ILL_CONDITIONED]" in text_with("W_ILL_CONDITIONED", ("torch",), "torch").splitlines()


@pytest.mark.parametrize("code", ["W_CHECKPOINT", "W_TRAINING_SUMS"])
def test_what_a_contestant_alone_did_stays_with_it(code: str) -> None:
    text = text_with(code, ("torch", "jax"))
    assert text.count(f"      ! planted [{code}]") == 2
