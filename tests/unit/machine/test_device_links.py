"""The links of a GPU, against fakes: a link whose bandwidth is known has that bandwidth."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.errors import NotAvailable
from fairlap.machine.hardware import device_links
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.machine.hardware.device_links import (
    BOTH,
    FROM_DEVICE,
    TO_DEVICE,
    link_facts,
    links_between,
    other_devices,
    share_of_pcie,
    trained_pcie,
)
from fairlap.machine.hardware.device_roofs import (
    kept_roofs_of_device,
    measured_on_device,
    peers_to_measure,
    roofs_of_device,
    roofs_with_peers,
)
from fairlap.machine.hardware.gpu import Gpu, Gpus
from fairlap.machine.hardware.gpu_links import PcieLink, joined_by_nvlink
from fairlap.machine.hardware.roofs import Link, Roof, Roofs

_ROUNDED = 1e-5  # the fake rounds to nanoseconds


def machine_of(devices: int = 1, *, to_device: float = 55.6e9, from_device: float = 40e9) -> Machine:
    machine = Machine()
    machine.cuda.fake_cuda_set_link.argtypes = (ctypes.c_double, ctypes.c_double, ctypes.c_int64)
    machine.cuda.fake_cuda_set_peer_link.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_double)
    machine.cuda.fake_cuda_set_device_count(devices)
    machine.cuda.fake_cuda_set_link(to_device, from_device, 0)
    return machine


@contextmanager
def empty_cache() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_CACHE", folder)
        yield


def contains(roof: Roof, planted: float) -> bool:
    return roof.low * (1 - _ROUNDED) <= planted <= roof.high * (1 + _ROUNDED)


@pytest.mark.slow
@on_fakes
def test_a_planted_bandwidth_is_within_the_interval_of_what_is_measured() -> None:
    machine = machine_of()
    found = measured_on_device("cuda:0", seconds=0.02)
    assert found.links.keys() == {TO_DEVICE, FROM_DEVICE, BOTH}
    assert contains(found.links[TO_DEVICE].bytes_per_s, 55.6e9)
    assert contains(found.links[FROM_DEVICE].bytes_per_s, 40e9)
    assert contains(found.links[BOTH].bytes_per_s, 80e9)  # both end when the slower has moved as much
    assert {link.by for link in found.links.values()} == {"PCIe"}
    assert msgspec.json.decode(msgspec.json.encode(found), type=Roofs) == found
    assert machine.outstanding() == 0
    assert machine.cuda.fake_cuda_outstanding(b"host_registrations") == 0


@on_fakes
def test_memory_that_cannot_be_pinned_is_a_reason_and_the_roofs_remain() -> None:
    machine = machine_of()
    machine.fail("cuMemHostRegister_v2", 0, 2)
    found = measured_on_device("cuda:0", seconds=0.01)
    assert not found.links
    assert found.pcie is None
    assert {TO_DEVICE, FROM_DEVICE, BOTH} <= found.absent.keys()
    assert "cuMemHostRegister" in found.absent[TO_DEVICE]
    assert "memory" in found.bytes_per_s


@on_fakes
def test_each_pair_of_devices_has_its_own_rate_each_way_by_what_joins_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_of(3, to_device=50e9, from_device=25e9)
    for source, target, rate in ((0, 1, 370e9), (1, 0, 180e9)):
        machine.cuda.fake_cuda_set_peer_link(source, target, rate)
    monkeypatch.setattr(device_links, "_way_between", lambda one, other: "NVLink")
    links, absent = links_between(0, 0.02)
    assert absent == {}
    assert {way: link.by for way, link in links.items()} == {
        "to 0000:02:00.0": "NVLink",
        "from 0000:02:00.0": "NVLink",
        "to 0000:03:00.0": "host memory",
        "from 0000:03:00.0": "host memory",
    }
    assert contains(links["to 0000:02:00.0"].bytes_per_s, 370e9)
    assert contains(links["from 0000:02:00.0"].bytes_per_s, 180e9)
    assert contains(links["to 0000:03:00.0"].bytes_per_s, 1 / (1 / 50e9 + 1 / 25e9))
    assert links["to 0000:03:00.0"].peer == "fairlap fake device 2"
    assert machine.outstanding() == 0
    assert machine.cuda.fake_cuda_outstanding(b"peer_accesses") == 0


@on_fakes
def test_a_pair_that_fails_is_a_reason_and_the_others_remain() -> None:
    machine = machine_of(3)
    machine.fail("cuMemcpyPeerAsync", 1, 2)
    links, absent = links_between(0, 0.01)
    assert absent.keys() == {"to 0000:02:00.0", "from 0000:02:00.0"}
    assert links.keys() == {"to 0000:03:00.0", "from 0000:03:00.0"}


@on_fakes
def test_pairs_are_measured_only_when_asked_for_once_in_a_separate_process_and_kept_with_the_roofs() -> None:
    machine = machine_of()
    with empty_cache():
        alone = roofs_with_peers("cuda:0")
        assert alone.links.keys() == {TO_DEVICE, FROM_DEVICE, BOTH}
        assert machine.cuda.fake_cuda_call_count(b"cuMemcpyHtoDAsync_v2") == 0
        assert peers_to_measure("cuda:0", alone) == []
        machine.cuda.fake_cuda_set_device_count(3)
        assert other_devices(1) == {0: "0000:01:00.0", 2: "0000:03:00.0"}
        assert peers_to_measure("cuda:0", alone) == [1, 2]
        assert roofs_of_device("cuda:0") == alone
        known = {
            f"{word}0000:0{number}:00.0": Link(Roof(1, 1, 1), "NVLink")
            for word in ("to ", "from ")
            for number in (2, 3)
        }
        assert peers_to_measure("cuda:0", msgspec.structs.replace(alone, links=alone.links | known)) == []
        assert kept_roofs_of_device("cuda:0") == alone


_WITH_TWO_DEVICES = """#!{python}
import ctypes, os, runpy, sys
cuda = ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"])
cuda.fake_cuda_set_peer_link.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_double)
cuda.fake_cuda_set_device_count(2)
cuda.fake_cuda_set_peer_link(0, 1, 300e9)
cuda.fake_cuda_set_peer_link(1, 0, 300e9)
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
del sys.argv[:2]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@on_fakes
def test_pairs_that_a_separate_process_measured_are_kept_with_the_roofs_until_they_are_measured_again() -> None:
    machine_of(2)
    with empty_cache(), tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        python = Path(folder) / "python"
        python.write_text(_WITH_TWO_DEVICES.format(python=sys.executable))
        python.chmod(0o755)
        patch.setattr(sys, "executable", str(python))
        patch.setattr("fairlap.machine.hardware.device_roofs.board_of", lambda _: "it is not asked for here")
        found = roofs_with_peers("cuda:0")
        assert found.links.keys() == {TO_DEVICE, FROM_DEVICE, BOTH, "to 0000:02:00.0", "from 0000:02:00.0"}
        assert found.links["to 0000:02:00.0"].bytes_per_s.value == pytest.approx(300e9, rel=0.02)
        assert peers_to_measure("cuda:0", found) == []
        patch.setattr(sys, "executable", "/bin/false")
        assert roofs_with_peers("cuda:0") == roofs_of_device("cuda:0") == found


@pytest.mark.parametrize(
    ("generation", "width", "bytes_per_s"),
    [
        (1, 16, 4e9),
        (2, 8, 4e9),
        (3, 16, 15.754e9),
        (4, 16, 31.508e9),
        (5, 16, 63.015e9),
        (6, 16, 121e9),
        (5, 8, 31.508e9),
    ],
)
def test_what_a_link_allows_follows_from_its_generation_and_its_lanes(
    generation: int, width: int, bytes_per_s: float
) -> None:
    """Rates and codings of the PCI Express Base Specification; 15.754 GB/s for 3.0 x16 is the figure in common use."""
    assert PcieLink(generation, width).bytes_per_s == pytest.approx(bytes_per_s, rel=1e-3)
    assert PcieLink(9, 16).bytes_per_s is None


def test_a_link_that_was_trained_to_less_says_of_what() -> None:
    assert str(PcieLink(5, 16, 5, 16)) == str(PcieLink(5, 16)) == "PCIe 5.0 x16"
    assert str(PcieLink(5, 8, 5, 16)) == "PCIe 5.0 x8 of 5.0 x16"
    assert str(PcieLink(3, 16, 5, 16)) == "PCIe 3.0 x16 of 5.0 x16"
    assert PcieLink(3, 8, 5, 16).most_bytes_per_s == pytest.approx(63.015e9, rel=1e-3)


def _roofs(pcie: PcieLink | None) -> Roofs:
    links = {TO_DEVICE: 14e9, BOTH: 24e9, "to 0000:c1:00.0": 366e9}
    return Roofs(
        None,
        {},
        {},
        {},
        {},
        "",
        device="cuda:0",
        links={way: Link(Roof(rate, rate, rate), "NVLink" if rate > 1e11 else "PCIe") for way, rate in links.items()},
        pcie=pcie,
    )


def test_rates_are_facts_beside_the_share_of_what_the_link_allows() -> None:
    roofs = _roofs(PcieLink(4, 8, 4, 16))
    assert share_of_pcie(roofs, TO_DEVICE) == pytest.approx(14 / 15.754, rel=1e-3)
    assert share_of_pcie(roofs, BOTH) == pytest.approx(24 / 31.508, rel=1e-3)
    assert share_of_pcie(roofs, "to 0000:c1:00.0") is None
    assert share_of_pcie(_roofs(None), TO_DEVICE) is None
    facts = link_facts(roofs)
    assert facts.keys() == {f"cuda:0 {name}" for name in (TO_DEVICE, BOTH, "to 0000:c1:00.0", "link")}
    assert {"14.0", "89", "x8"} <= set(facts[f"cuda:0 {TO_DEVICE}"].replace(",", "").split())
    assert {"366.0", "NVLink"} <= set(facts["cuda:0 to 0000:c1:00.0"].split())
    assert link_facts(None) == link_facts(msgspec.structs.replace(roofs, links={})) == {}


@pytest.mark.parametrize(("status", "joined"), [(0, True), (5, False), (2, False)])
def test_nvml_says_whether_two_devices_are_joined_by_nvlink(
    monkeypatch: pytest.MonkeyPatch, status: int, joined: bool
) -> None:
    """NVML API reference: nvmlDeviceGetP2PStatus gives NVML_P2P_STATUS_OK (0) for NVML_P2P_CAPS_INDEX_NVLINK (2)."""
    import pynvml

    asked: list[int] = []

    def answer(_one: Any, _other: Any, capability: int, found: Any) -> int:
        asked.append(capability)
        found._obj.value = status
        return 0

    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", lambda name: answer)
    assert joined_by_nvlink(pynvml, None, None) is joined
    assert asked == [2]


def test_where_nvml_does_not_say_it_nvlink_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    not_supported = 3
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", lambda name: lambda *_: not_supported)
    assert joined_by_nvlink(pynvml, None, None) is None


def test_the_link_is_that_of_the_device_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Gpu(0, "H100", pcie_generation=5, most_pcie_generation=5, pcie_width=8, most_pcie_width=16)
    monkeypatch.setattr(device_links, "gpus", lambda: Gpus((one,)))
    monkeypatch.setattr(device_links, "board_of", lambda device: Board(0))
    assert trained_pcie("cuda:0") == PcieLink(5, 8, 5, 16)
    monkeypatch.setattr(device_links, "board_of", lambda device: Board(1))
    assert trained_pcie("cuda:0") is None
    monkeypatch.setattr(device_links, "board_of", lambda device: "NVML is not there")
    assert trained_pcie("cuda:0") is None


def test_without_cuda_there_are_no_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.engine._native.cuda_absent_because", lambda: "there is no driver")
    with pytest.raises(NotAvailable):
        other_devices(0)
