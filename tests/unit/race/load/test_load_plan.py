"""What can be asked of a race of load, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_file import load_plan, save_plan
from fairlap.render.plan_command import command_of
from fairlap.request.fields.load import Load, LoadRequest, duration_text, load_of
from fairlap.request.names import Contestants, Device
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds
from runs_of_precisions import planned

P99 = LoadRequest(p99=Seconds("20ms"))


def test_a_request_for_load_is_about_single_items_unless_a_batch_is_given() -> None:
    [work] = planned(load=P99).works
    assert (work.batch, work.load) == (1, Load(0.99, 0.02))
    assert planned(load=P99, batch=4).works[0].batch == 4


def test_the_name_of_a_work_under_load_says_the_bound_and_how_it_is_served() -> None:
    load = LoadRequest(p90=Seconds("5ms"), workers=3, largest_batch=8, longest_wait=Seconds(0.0005))
    [work] = planned(load=load).works
    assert work.label.endswith(" · load p90 within 5 ms, 3 workers, batches up to 8 after 0.5 ms")


@pytest.mark.parametrize(
    "options",
    [
        {"load": LoadRequest()},
        {"load": LoadRequest(p99=Seconds(1), p90=Seconds(1))},
        {"load": LoadRequest(p99=Seconds(1), longest_wait=Seconds(1))},
        {"load": P99, "mode": "grad"},
        {"load": P99, "data": "synthetic"},
        {"load": LoadRequest(p99=Seconds(1), largest_batch=4), "batch": 2},
        {"load": P99, "models": ("callable",)},
        {"load": LoadRequest(scenario="offline", p99=Seconds(1))},
        {"load": LoadRequest(scenario="server")},
        {"load": LoadRequest(p99=Seconds(1), logs=Path("/dev/null"))},
        {"load": LoadRequest(scenario="server", first_token=Seconds(1)), "models": ("characters_generate",)},
        {"load": LoadRequest(scenario="offline", first_token=Seconds(1)), "models": ("characters_generate",)},
        {"load": LoadRequest(first_token=Seconds(1))},
        {"load": LoadRequest(p99=Seconds(1), first_token=Seconds(1))},
    ],
)
def test_what_cannot_be_served_is_refused_with_a_code(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        planned(**options)
    assert refused.value.code == "E_LOAD"


def test_a_saved_plan_of_load_is_the_same_when_it_is_read(tmp_path: Any) -> None:
    plan = planned(load=LoadRequest(p50=Seconds("1ms"), workers=2, trial=Seconds(1)))
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    assert plan.works[0].load == Load(0.5, 0.001, workers=2, trial_s=1.0)


@pytest.mark.parametrize(
    ("request_of_load", "expected", "text"),
    [
        (
            LoadRequest(first_token=Seconds("50ms")),
            Load(0.99, None, first_token_s=0.05),
            "first token p99 within 50 ms",
        ),
        (
            LoadRequest(p90=Seconds(3), first_token=Seconds("50ms")),
            Load(0.9, 3.0, first_token_s=0.05),
            "p90 within 3 s, first token p90 within 50 ms",
        ),
    ],
)
def test_the_first_token_has_the_percentile_of_the_other_bound_and_p99_alone(
    request_of_load: LoadRequest, expected: Load, text: str, tmp_path: Any
) -> None:
    plan = planned(load=request_of_load, models=("characters_generate",))
    assert plan.works[0].load == expected
    assert plan.works[0].label.endswith(f" · load {text}")
    assert "--first-token 0.05s" in command_of(plan)
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan


def test_load_is_served_on_a_gpu_too(tmp_path: Path) -> None:
    plan = planned(
        contestants=Contestants("torch,onnxruntime"), load=LoadRequest(p99=Seconds(1)), device=Device("cuda:1")
    )
    assert (plan.device, plan.works[0].load) == ("cuda:1", Load(0.99, 1.0))
    assert "--device cuda:1" in command_of(plan)
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan


def test_a_plan_of_before_there_was_load_can_be_read() -> None:
    old = msgspec.to_builtins(planned())
    for work in old["works"]:
        del work["load"]
    assert msgspec.convert(old, Plan).works[0].load is None


def test_a_request_file_holds_load_as_a_table() -> None:
    text = b'models = ["mlp"]\ncontestants = ["torch"]\n[load]\np99 = "20ms"\nworkers = 2\n'
    request = msgspec.toml.decode(text, type=RaceRequest, dec_hook=lambda kind, value: kind(value))
    assert request.load is not None
    assert load_of(request.load) == Load(0.99, 0.02, workers=2)


@pytest.mark.parametrize(
    ("seconds", "text"), [(2, "2 s"), (0.02, "20 ms"), (5e-4, "0.5 ms"), (1e-6, "1 µs"), (0, "0 ms")]
)
def test_a_bound_is_written_in_its_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
