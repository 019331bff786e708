"""Races of derivatives: what is planned, refused and drawn, and functions of a user."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.adapter_parts.differentiated import implementation_of
from fairlap.frameworks.contract import Contestant, Framework, Phase, Settings, Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.kinds.python_derivative import PythonDerivative
from fairlap.models.workload import Workload
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.libraries import svg_of
from fairlap.render.charts.parts.static import static_spec
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.results.results import Results, results_of
from fairlap.scenarios.derivatives.scenario import Derivatives
from fairlap.scenarios.untimed.overhead import overhead_of_a_call_ns
from runs_for_rows import a_process


def asked(**options: Any) -> RaceRequest:
    usual: dict[str, Any] = {
        "models": ("rosenbrock",),
        "contestants": Contestants("torch,jax"),
        "mode": "hvp",
        "blocks": 2,
        "seed": 1,
        "threads": 1,
    }
    return RaceRequest(**{**usual, **options})


def test_a_race_has_a_work_for_each_derivative() -> None:
    plan = plan_of(asked(mode=("jvp", "hvp", "infer")))
    assert [work.mode for work in plan.works] == ["jvp", "hvp", "infer"]
    assert len({work.id for work in plan.works}) == 3
    assert [isinstance(each, Derivatives) for each in plan.scenarios] == [True, False]


@pytest.mark.parametrize(
    "options",
    [
        {"models": ("map_32_to_32",), "mode": "hessian"},
        {"models": ("mlp",)},
        {"precision": "bf16"},
        {"data": "synthetic"},
        {"loss": "mse"},
        {"shapes": ("point:3",)},
        {"models": ("model.onnx",)},
        {"models": ("mypkg:fn",), "mode": ("jvp", "vjp")},
    ],
)
def test_what_has_no_such_derivative_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        plan_of(asked(**options))


def test_inputs_and_outputs_are_those_of_the_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))
    of_mode = {mode: materials_for(Work("map_4_to_256", 1, mode), 0) for mode in ("infer", "jvp", "vjp")}
    inputs = {mode: set(each.workload("inputs").inputs) for mode, each in of_mode.items()}
    assert inputs == {"infer": {"point"}, "jvp": {"point", "along"}, "vjp": {"point", "along"}}
    assert of_mode["vjp"].reference("inputs")["vjp"].shape == (1, 4)
    assert len({each.folder for each in of_mode.values()}) == 3


def workload(mode: Any) -> Workload:
    package = "fairlap.bench_models.map_32_to_32"
    return Workload(None, package, 1, mode, "fp32", {}, {})  # type: ignore[arg-type]


def test_a_direction_is_the_usual_one_or_the_one_asked_for() -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")

    def found(mode: Any, **options: str) -> str:
        model = implementation_of(workload(mode), Settings(1, options=options), "jax")
        return f"{model.mode} {model.direction}"

    assert found("jacobian") == "jacobian reverse"
    assert found("jacobian", direction="forward") == "jacobian forward"
    with pytest.raises(Unsupported):
        found("jvp", direction="reverse")
    with pytest.raises(Unsupported):
        found("infer", direction="forward")


class OfOneDirection(Framework):
    """Look for the model as the adapters of libraries do, and add one to its inputs."""

    name = "of-one-direction"
    packages = ("of-one-direction",)
    module = "jax"

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        implementation_of(work, wanted, "jax")
        assert dict(wanted.options)["jit"] == "off"  # which is of every call

        def bind(inputs: Arrays) -> Callable[[], Any]:
            [numbers] = inputs.values()
            return lambda: numbers + 1

        return Contestant(bind, None, lambda result: {"more": result}, dict, {})


def test_the_overhead_of_a_call_is_measured_whatever_the_direction() -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    settings = Settings(1, options={"direction": "forward", "jit": "off"})
    assert overhead_of_a_call_ns(OfOneDirection(), settings, "fp32") > 0


def jacobians(contestants: str) -> Results:
    models = ("map_256_to_4", "map_4_to_256")
    plan = plan_of(asked(models=models, mode="jacobian", contestants=Contestants(contestants)))
    processes = []
    for block in plan.blocks:
        for name in plan.contestants:
            process = a_process(block.number, name.text, 1e6, plan.works[block.work])
            ratio = "64" if plan.works[block.work].model == "map_256_to_4" else "0.015625"
            direction = dict(name.options).get("direction", "reverse")
            process.in_force = {**process.in_force, "direction": direction, "inputs_per_output": ratio}
            processes.append(process)
    return results_of(Run(plan, processes, {}, {}), "r")


def drawn(results: Results, key: str) -> dict[str, Any]:
    tables = chart_tables(results)
    [chart] = [each for each in charts_of(results, tables) if each.key == key]
    spec = static_spec(chart, results, results.work_results[0], tables)
    assert spec is not None
    return spec


def test_the_picture_has_the_time_and_the_direction_of_every_process_of_all_works() -> None:
    results = jacobians("torch,jax")
    tables = chart_tables(results)
    assert len(tables["scenario derivatives"]) == len(results.run.processes)
    assert {each["ratio"] for each in tables["scenario jacobians"]} == {64.0, 1 / 64}
    points = drawn(results, "scenario-derivatives")["datasets"]["scenario derivatives"]
    assert {each["work"].partition(" ")[0] for each in points} == {"map_256_to_4", "map_4_to_256"}
    assert {each["direction"] for each in points} == {"reverse"}


def test_the_legend_of_jacobians_shows_a_line_of_each_direction() -> None:
    picture = svg_of(drawn(jacobians("jax:direction=forward,jax:direction=reverse"), "scenario-jacobians"))
    samples = re.findall(r'role-legend-symbol"[^>]*><path ([^>]*)', picture)
    dashed = [each for each in samples if "stroke-dasharray" in each]
    assert len(dashed) == 2
    assert all(" stroke=" in each for each in dashed)


def test_long_names_of_contestants_beside_long_names_of_works_are_within_the_picture() -> None:
    four = ",".join(f"{each}:direction={way}" for each in ("jax", "torch") for way in ("forward", "reverse"))
    legends = {
        key: drawn(jacobians(four), key)["encoding"]["color"]["legend"]
        for key in ("scenario-derivatives", "scenario-jacobians")
    }
    assert {key: each["columns"] for key, each in legends.items()} == {
        "scenario-derivatives": 2,
        "scenario-jacobians": 4,
    }


@pytest.fixture
def own_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_derivatives.py").write_text(
        "def bowl(x, np):\n    return np.sum(x**4) + x[0] * x[1]\n"
        "def pair(x, np):\n    return np.stack([x[0] * x[1], np.tanh(x[2])])\n"
        "def sizes(x, np):\n    return np.sum(np.abs(x))\n"
        "def logarithm(x, np):\n    return np.sum(np.log(x))\n"
        "def raises(x, np):\n    return np.no_such(x)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def source(folder: Path, function: str, mode: str, numbers: int = 3) -> Source:
    name = f"own_derivatives:{function}"
    shapes = (("point", (numbers,)),) if numbers else ()
    return Source(name, f"derivative:{mode}:{name}", str(folder), shapes=shapes)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_function_that_is_not_a_number_at_a_drawn_point_is_told_of_the_range(own_functions: Path) -> None:
    asked = source(own_functions, "logarithm", "jvp")
    with pytest.raises(SourceError, match="--range point") as refused:
        PythonDerivative.open(asked, own_functions)
    assert refused.value.code == "E_SOURCE_INPUTS"
    opened = PythonDerivative.open(msgspec.structs.replace(asked, ranges=(("point", 0.5, 2.0),)), own_functions)
    assert opened.modes == ("jvp",)


def test_a_function_of_a_user_is_opened_as_its_derivative(own_functions: Path) -> None:
    opened = PythonDerivative.open(source(own_functions, "bowl", "hessian"), own_functions)
    assert [(each.name, each.shape) for each in opened.inputs] == [("point", (1, 3))]
    assert (opened.modes, opened.outputs) == (("hessian",), ("hessian",))
    point = np.array((0.5, -1.0, 2.0))
    exact = np.diag(12 * point**2)
    exact[0, 1] = exact[1, 0] = 1
    np.testing.assert_allclose(opened.forward({}, {"point": point[None]})["hessian"][0], exact, atol=1e-8)
    of_row = PythonDerivative.open(source(own_functions, "pair", "jacobian"), own_functions)
    exact = np.array(((-1.0, 0.5, 0.0), (0.0, 0.0, 1 - np.tanh(2.0) ** 2)))
    np.testing.assert_allclose(of_row.forward({}, {"point": point[None]})["jacobian"][0], exact, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "mode", "numbers"),
    [
        ("sizes", "jvp", 3),
        ("raises", "jvp", 3),
        ("pair", "hessian", 3),
        ("bowl", "jvp", 0),
        ("missing", "jvp", 3),
        ("bowl", "per-sample", 3),
    ],
)
def test_a_function_whose_derivative_cannot_be_proven_is_refused(
    own_functions: Path, function: str, mode: str, numbers: int
) -> None:
    with pytest.raises(SourceError):
        PythonDerivative.open(source(own_functions, function, mode, numbers), own_functions)


def test_a_function_of_a_user_has_the_same_derivative_in_jax(own_functions: Path) -> None:
    jax = pytest.importorskip("jax", reason="`make test` installs it and runs this")
    from types import SimpleNamespace

    bundle: Any = SimpleNamespace(source=source(own_functions, "bowl", "hvp"))
    model = PythonDerivative.implementation(bundle, own_functions, "jax")
    model.differentiate("hvp")
    point, along = np.array(((0.5, -1.0, 2.0),), np.float32), np.array(((1.0, 2.0, -1.0),), np.float32)
    [found] = jax.jit(model.forward)({}, {"point": point, "along": along})
    np.testing.assert_allclose(found[0], 12 * point[0] ** 2 * along[0] + (2.0, 1.0, 0.0), rtol=1e-6)
