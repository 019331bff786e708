"""Shares, durations and devices as users write them."""

from __future__ import annotations

from typing import Any

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.load import LoadRequest, load_of
from fairlap.request.names import Device
from fairlap.request.units import LargestSlowdown, Seconds, Share, array_sizes_in
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
