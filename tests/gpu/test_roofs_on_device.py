"""The roofs of the device, and the records of single calls, where a device has them."""

from __future__ import annotations

from typing import Any

import pytest
from fairlap.engine.cuda.call_records import recorded_calls
from fairlap.errors import NotAvailable
from fairlap.machine.hardware.device_links import BOTH, FROM_DEVICE, TO_DEVICE, share_of_pcie
from fairlap.machine.hardware.device_roofs import measured_on_device

# Far beyond any device: a loop that was optimised away would be faster still.
MOST_OPERATIONS_PER_S, MOST_BYTES_PER_S, MOST_LINK_BYTES_PER_S = 1e17, 1e15, 1e12
SPINS_NS = (20_000, 100_000)
LARGEST_RECORD_BIAS_NS = 10_000


def test_every_roof_of_the_device_is_a_speed_that_a_device_can_have() -> None:
    found = measured_on_device("cuda:0", seconds=0.05)
    assert {"fp32", "fp64"} <= found.operations_per_s.keys()
    assert all(1e9 < roof.value < MOST_OPERATIONS_PER_S for roof in found.operations_per_s.values())
    assert all(1e9 < roof.value < MOST_BYTES_PER_S for roof in found.bytes_per_s.values())


def test_every_kernel_finds_the_sums_that_it_should() -> None:
    assert not [why for why in measured_on_device("cuda:0", seconds=0.05).absent.values() if "wrong" in why]


def test_matrix_units_are_faster_than_lanes_and_the_cache_than_the_memory() -> None:
    found = measured_on_device("cuda:0", seconds=0.05)
    peaks = {name: roof.value for name, roof in found.operations_per_s.items()}
    assert all(peaks[name] > peaks["fp32"] for name in ("fp16", "bf16", "int8") if name in peaks)
    if {"L2", "memory"} <= found.bytes_per_s.keys():
        assert found.bytes_per_s["L2"].value > found.bytes_per_s["memory"].value


def test_every_link_has_a_speed_that_a_link_can_have_and_none_that_pcie_does_not_allow() -> None:
    found = measured_on_device("cuda:0", seconds=0.05)
    assert found.links.keys() == {TO_DEVICE, FROM_DEVICE, BOTH}
    assert all(1e8 < link.bytes_per_s.value < MOST_LINK_BYTES_PER_S for link in found.links.values())
    one_way = max(found.links[way].bytes_per_s.value for way in (TO_DEVICE, FROM_DEVICE))
    assert found.links[BOTH].bytes_per_s.value > 0.9 * one_way
    shares = [share_of_pcie(found, way) for way in found.links]
    assert all(share < 1.01 for share in shares if share is not None)


def test_the_records_of_a_call_are_its_kernels_and_no_others(context: Any, spinner: Any, own_stream: Any) -> None:
    def call() -> None:
        for length_ns in SPINS_NS:
            spinner.spin_ns(own_stream.cuda_stream, length_ns)
        own_stream.synchronize()

    call()
    try:
        found = recorded_calls(call, 20, 0)
    except NotAvailable as absent:
        pytest.skip(f"{absent}; `make gpu-proof` runs this on a GPU")
    for each in (each for each in found if each.is_complete):
        assert [name for name, *_ in each.activities] == ["fairlap_spin_ns"] * len(SPINS_NS)
        for (*_, length_ns), spun_ns in zip(each.activities, SPINS_NS, strict=True):
            assert -2_100 < length_ns - spun_ns < LARGEST_RECORD_BIAS_NS
    assert any(each.is_complete for each in found)
