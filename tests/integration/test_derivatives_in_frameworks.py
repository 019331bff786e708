"""Derivatives race in frameworks, compiled and not, and a framework that lacks a direction says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairlap
import pytest
from command_line import output

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TORCH, JAX = ("torch", "torch:compile"), ("jax", "jax:jit=off")
TENSORFLOW = ("tensorflow", "tensorflow:graph", "tensorflow:xla")
LIBRARIES = {"torch": TORCH, "jax": JAX, "tensorflow": TENSORFLOW}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def raced(model: str, on: tuple[str, ...], mode: Any, **options: Any) -> Any:
    return fairlap.compare(model, on=list(on), mode=mode, blocks=1, seconds=0.05, threads=1, **options)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_derivative_of_a_loss_is_the_reference_s(library: str) -> None:
    pytest.importorskip(library, reason="`make test-slow` installs it and runs this")
    modes = ("jvp", "vjp", "jacobian", "hvp", "hessian")
    rows = raced("mlp_loss", LIBRARIES[library], modes).rows
    # Dynamo does not trace three gradients, and XLA compiles nested forward accumulators anew for each input.
    lacking = {"torch:compile": None, "tensorflow:xla": "tensorflow:xla:direction=reverse"}
    traced = tuple(name for each in LIBRARIES[library] if (name := lacking.get(each, each)) is not None)
    rows += raced("mlp_loss", traced, "third").rows
    assert len(rows) == len(modes) * len(LIBRARIES[library]) + len(traced)
    assert {(row.outcome, row.message) for row in rows} == {("finished", "")}
    assert all(row.judged.value > 0 for row in rows)


@pytest.mark.parametrize("library", LIBRARIES)
def test_forward_and_reverse_are_raced_as_such(library: str) -> None:
    pytest.importorskip(library, reason="`make test-slow` installs it and runs this")
    on = tuple(f"{library}:direction={each}" for each in ("forward", "reverse"))
    rows = {row.contestant: row for row in raced("map_4_to_256", on, "jacobian").rows}
    forward, reverse = (rows[name] for name in on)
    assert (reverse.outcome, reverse.settings["direction"]) == ("finished", "reverse")
    if library == "tensorflow":
        assert forward.outcome == "unsupported"
    else:
        assert (forward.outcome, forward.settings["direction"]) == ("finished", "forward")
        assert "direction" not in forward.absent.get("overhead_ns", "")


def test_batches_of_points_are_differentiated_together() -> None:
    on = [each for library in LIBRARIES.values() for each in library[:1]]
    rows = raced("map_32_to_32", tuple(on), ("jacobian", "jvp"), batch=4).rows
    assert {(row.outcome, row.message) for row in rows} == {("finished", "")}


@pytest.mark.parametrize("library", LIBRARIES)
def test_samples_and_fixed_points_are_the_reference_s_too(library: str) -> None:
    pytest.importorskip(library, reason="`make test-slow` installs it and runs this")
    rows = raced("map_32_to_32", LIBRARIES[library], "per-sample", batch=4).rows
    for batch in (1, 3):
        rows += raced("fixed_point", LIBRARIES[library], ("vjp", "jvp", "jacobian"), batch=batch).rows
    rows += raced("fixed_point_unrolled", LIBRARIES[library], "vjp").rows
    assert {(row.outcome, row.message) for row in rows} == {("finished", "")}


def test_a_function_of_a_user_races_in_all_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_derivatives.py").write_text(
        "def bowl(x, np):\n    return np.sum(x**4) + np.log(np.sum(np.exp(x)))\n"
    )
    monkeypatch.chdir(tmp_path)
    for mode in ("hvp", "hessian", "third"):
        rows = raced("own_derivatives:bowl", ("torch", "jax", "tensorflow:graph"), mode, shapes=("point:5",)).rows
        assert {(row.outcome, row.message) for row in rows} == {("finished", "")}


def test_the_page_s_picture_has_a_mark_for_each_contestant_and_function(tmp_path: Path) -> None:
    words = (
        "map_4_to_256",
        "map_256_to_4",
        "--on",
        "jax:direction=forward,jax:direction=reverse",
        "--mode",
        "jacobian",
    )
    output("compare", *words, "--blocks", "1", "--seconds", "0.05", "-o", tmp_path / "jacobians.json")
    output("report", tmp_path / "jacobians.json", "--charts", tmp_path / "pictures")
    [picture] = (tmp_path / "pictures").glob("*scenario-derivatives.svg")
    assert picture.read_text().count('aria-roledescription="point"') == 4
    [by_shape] = (tmp_path / "pictures").glob("*scenario-jacobians.svg")
    assert by_shape.read_text().count('aria-roledescription="line mark"') == 2
