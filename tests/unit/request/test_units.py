"""Shares, durations, devices, shapes, optimizers and schedules as users write them."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.load import LoadRequest, load_of
from fairlap.request.fields.source import Source, answer_in, dims_in, range_in, shapes_in
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training, optimizer_in, schedule_in
from fairlap.request.names import Device, Devices
from fairlap.request.units import LargestSlowdown, Seconds, Share, array_sizes_in
from hypothesis import given
from hypothesis import strategies as st
from runs_of_precisions import planned


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.02", 0.02), ("0.5%", 0.005), (0.02, 0.02)])
def test_a_share_may_be_written_in_per_cent(text: str | float, share: float) -> None:
    assert Share(text) == pytest.approx(share)


@pytest.mark.parametrize(("text", "share"), [("3%", 0.03), (0.03, 0.03), ("100%", 1.0), ("150 %", 1.5)])
def test_a_largest_slowdown_may_be_more_than_a_whole(text: str | float, share: float) -> None:
    assert LargestSlowdown(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), (90, 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("500 ms", 0.5), ("50us", 5e-5), ("50µs", 5e-5)],
)
def test_a_duration_may_have_a_unit(text: str | float, seconds: float) -> None:
    assert Seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("option", ["p99", "first_token", "trial"])
def test_more_than_a_day_in_one_process_of_load_is_refused(option: str) -> None:
    given: dict[str, Any] = {"p99": Seconds(1)} | {option: Seconds("25h")}
    with pytest.raises(InvalidRequest, match=f"--{option.replace('_', '-')} ") as refused:
        load_of(LoadRequest(**given))
    assert refused.value.code == "E_REQUEST"


def test_more_than_a_day_measured_in_one_process_is_refused_and_a_budget_of_days_is_not() -> None:
    with pytest.raises(InvalidRequest, match="--seconds "):
        planned(seconds=Seconds(1e9))
    assert planned(seconds=Seconds("24h")).measuring.seconds == 86_400
    planned(blocks=None, budget=Seconds("72h"))


@pytest.mark.parametrize(("text", "device"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:3", "cuda:3")])
def test_a_device_has_a_number(text: str, device: str) -> None:
    assert Device(text) == device


@pytest.mark.parametrize(
    ("text", "written", "for_two"),
    [
        ("cpu", "cpu", ("cpu",)),
        ("cuda", "cuda", ("cuda:0", "cuda:1")),
        ("cuda:3", "cuda:3", ("cuda:3",)),
        ("cuda:3,cuda:0", "cuda:3,cuda:0", ("cuda:3", "cuda:0")),
        ("cuda:03,cuda", "cuda:3,cuda:0", ("cuda:3", "cuda:0")),
    ],
)
def test_devices_are_those_that_are_named_or_the_first_ones(text: str, written: str, for_two: tuple[str, ...]) -> None:
    found = Devices(text)
    assert (found, found.for_processes(2)) == (written, for_two)


@pytest.mark.parametrize("text", ["cuda:0,cuda:0", "cuda,cuda:0", "cpu,cuda:0", "cuda:0,1", "cuda:0-1", "cuda:0,"])
def test_devices_are_different_gpus(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Devices(text)
    assert (refused.value.code, len(str(refused.value).splitlines())) == ("E_REQUEST", 1)


@pytest.mark.parametrize("text", ["cuda:0,cuda:1", "cuda:0,1", "cuda:0-3", "cuda:0+1", "cuda,cuda:1"])
def test_several_gpus_are_refused_in_one_line_that_says_so(text: str) -> None:
    with pytest.raises(InvalidRequest, match="several GPUs") as refused:
        Device(text)
    assert (refused.value.code, len(str(refused.value).splitlines())) == ("E_REQUEST", 1)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(Device, text) for text in ("", "gpu", "cuda:", "cuda:x", "tpu:0")]
    + [(Share, text) for text in ("", "0", "2", "-1%", "nan", "much")]
    + [(LargestSlowdown, text) for text in ("", "0", "2", "1e9%", "nan%", "-100%")]  # 2 % is meant as often as 200 %
    + [(Seconds, text) for text in ("", "0s", "-1m", "inf", "nan", "soon")],
)
def test_other_text_is_refused(kind: type, text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a"):
        kind(text)


def test_sizes_of_arrays_are_sorted_and_each_is_once() -> None:
    assert array_sizes_in("1MiB, 4KB,4000,16 MB") == (4000, 2**20, 16_000_000)
    assert array_sizes_in("deepbench")[::3] == (400_000, 26_214_400, 258_000_000)


@pytest.mark.parametrize("text", ["", "0", "2", "6", "1e3B", "4TB", "-4KB", "9GB", "1.5B", "4kb", "nan"])
def test_what_is_no_size_of_an_array_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        array_sizes_in(text)


@pytest.mark.parametrize(
    ("option", "twice"),
    [("threads", (1, 1)), ("batch", (8, 4, 8)), ("mode", ("infer", "infer")), ("precision", ("fp32", "fp32"))],
)
def test_what_is_given_twice_is_refused(option: str, twice: tuple[object, ...]) -> None:
    with pytest.raises(InvalidRequest, match=f"--{option}") as refused:
        planned(**{option: twice})
    assert refused.value.code == "E_REQUEST"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ids:8x128,mask:[8,128]", (("ids", (8, 128)), ("mask", (8, 128)))),
        ("data[1,3,224,224]", (("data", (1, 3, 224, 224)),)),
        ("x=3", (("x", (3,)),)),
        ("scalar:[]", (("scalar", ()),)),
        ("serving_default_x:0:1x2", (("serving_default_x:0", (1, 2)),)),
        ("", ()),
    ],
)
def test_shapes(text: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    assert shapes_in(text) == shapes


def test_dims_and_ranges() -> None:
    assert dims_in("batch=8, sequence:128") == (("batch", 8), ("sequence", 128))
    assert dims_in("n=1=8,past:n:4") == (("n=1", 8), ("past:n", 4))
    assert range_in("ids:0..30521") == ("ids", 0, 30521)
    assert range_in("offset=-3..4") == ("offset", -3, 4)
    assert range_in("pixels:-0.5..2e2") == ("pixels", -0.5, 200.0)


@pytest.mark.parametrize("text", ["ids", "ids:", "ids:8x", "ids:0x3", "ids:8x128,ids:8x128", "x:99999999999", "a:-1"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        shapes_in(text)
    assert refused.value.code == "E_SHAPES"


@pytest.mark.parametrize("text", ["batch", "batch=", "=8", "batch=0", "batch=-1", "batch=8,batch=9", "batch=1.5"])
def test_what_is_no_dimension_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        dims_in(text)
    assert refused.value.code == "E_SHAPES"


def test_answers() -> None:
    assert answer_in("128:32") == ((128, 32), 0)
    assert answer_in(" 1:2 ") == ((1, 2), 0)
    assert answer_in("96+32:8") == ((128, 8), 96)
    source = Source("m", "/m", generate=(128, 8), shared=96)
    assert answer_in(source.answer_text) == ((128, 8), 96)
    assert source.identity != Source("m", "/m", generate=(128, 8)).identity


@pytest.mark.parametrize(
    "text", ["", "128", "128:", ":32", "0:4", "4:1", "4:0", "-1:4", "4:2:1", "9999999999999:2", "0+4:2", "4+:2", "+4:2"]
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        answer_in(text)
    assert refused.value.code == "E_SHAPES"


@pytest.mark.parametrize("text", ["ids", "ids:5", "ids:5..3", "ids:a..b", ":0..3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        range_in(text)
    assert refused.value.code == "E_SHAPES"


def test_works_of_one_file_have_names_of_their_own() -> None:
    plain = Source("m.onnx", "/m.onnx")
    bound = [
        Source("m.onnx", "/m.onnx", shapes=shapes_in("x:2x3")),
        Source("m.onnx", "/m.onnx", shapes=shapes_in("x:4x3")),
        Source("m.onnx", "/m.onnx", dims=dims_in("n=2")),
        Source("m.onnx", "/m.onnx", generate=(8, 4)),
        Source("m.onnx", "/m.onnx", batch=2),
    ]
    assert plain.name == "m.onnx"
    assert len({each.name for each in (plain, *bound)}) == 6


def test_what_is_left_out_has_its_usual_value() -> None:
    assert optimizer_in("sgd:lr=0.1,momentum=0.9") == Sgd(0.1, 0.9, 0.0)
    assert optimizer_in("adamw") == AdamW(0.001, 0.9, 0.999, 1e-8, 0.01)
    assert schedule_in("cosine:steps=100,warmup=10") == Schedule("cosine", 10, 100)
    assert schedule_in("constant:warmup=5") == Schedule("constant", 5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "adam",
        "sgd:lr",
        "sgd:lr=fast",
        "sgd:beta1=0.9",
        "sgd:lr=0",
        "sgd:momentum=1",
        "adamw:epsilon=0",
        "sgd:lr=nan",
        "sgd:lr=1e39",
        "sgd:lr=0.1,lr=0.2",
    ],
)
def test_what_is_no_optimizer_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        optimizer_in(text)


@pytest.mark.parametrize(
    "text",
    ["steps", "cosine", "cosine:steps=10,warmup=10", "linear:steps=5,floor=2", "cosine:steps=1.5", "cosine:steps=1e30"],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        schedule_in(text)


def test_a_schedule_warms_up_and_falls_to_its_floor() -> None:
    cosine = Schedule("cosine", warmup=2, steps=6, floor=0.1)
    assert [cosine.at(step) for step in (0, 1, 2, 4, 6, 100)] == pytest.approx([0.5, 1.0, 1.0, 0.55, 0.1, 0.1])
    linear = Schedule("linear", steps=4)
    assert [linear.at(step) for step in (0, 1, 4)] == pytest.approx([1.0, 0.75, 0.0])
    assert Schedule().at(12345) == 1.0


@pytest.mark.parametrize(
    "schedule", [Schedule(), Schedule("constant", 3), Schedule("cosine", 2, 6, 0.1), Schedule("linear", 0, 4)]
)
def test_a_traced_schedule_is_the_same(schedule: Schedule) -> None:
    traced = [float(schedule.at_traced(np.float64(step), np)) for step in range(8)]
    assert traced == pytest.approx([schedule.at(step) for step in range(8)])


@given(
    st.floats(1e-6, 10), st.floats(0, 0.99), st.floats(0, 1), st.sampled_from(["constant", "cosine", "linear"]),
    st.integers(0, 50), st.integers(51, 1000),
)  # fmt: skip
def test_training_survives_json(lr: float, momentum: float, decay: float, kind: str, warmup: int, steps: int) -> None:
    schedule = Schedule(kind, warmup, 0 if kind == "constant" else steps)  # type: ignore[arg-type]
    training = Training(Sgd(lr, momentum, decay), schedule)
    assert msgspec.json.decode(msgspec.json.encode(training), type=Training) == training
    assert training.text.startswith("sgd:lr=")
