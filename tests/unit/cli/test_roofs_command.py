"""``fairlap roofs`` shows what the machine room measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from command_line import invoke, output, refusal
from fairlap.machine.hardware import device_roofs, roofs
from fairlap.machine.hardware.device_links import BOTH, TO_DEVICE
from fairlap.machine.hardware.gpu_links import PcieLink
from fairlap.machine.hardware.roofs import Link, Roof, Roofs

_KEPT = Roofs(
    threads=1,
    operations_per_s={"fp32": Roof(200e9, 199e9, 201e9)},
    bytes_per_s={"L1": Roof(500e9, 499e9, 501e9), "memory": Roof(20e9, 19e9, 21e9)},
    cache_bytes={"L1": 49152},
    instructions={"fp32": "avx512f"},
    measured_at="2026-11-23T05:00:00+00:00",
    processor_has={"fp32": ("AVX-512", "AVX2", "FMA")},
    absent={"int8": "no instructions of the processor for it are measured"},
)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "kept_roofs", lambda threads: _KEPT)


def test_json_has_the_roofs_and_the_ridges_and_goes_to_files_too(tmp_path: Path) -> None:
    file = tmp_path / "roofs.json"
    printed = json.loads(output("roofs", "--threads", "1", "--json", "-o", file))
    assert printed == json.loads(file.read_text())
    [found] = printed["roofs"]
    assert found["operations_per_s"]["fp32"] == {"value": 200e9, "low": 199e9, "high": 201e9}
    assert found["ridge_operations_per_byte"] == {"fp32": 10.0}
    assert found["instructions"] == {"fp32": "avx512f"}
    assert found["processor_has"] == {"fp32": ["AVX-512", "AVX2", "FMA"]}


def test_the_table_has_a_line_for_every_roof_and_for_what_is_absent() -> None:
    lines = output("roofs", "--threads", "1").splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["fp32", "L1", "memory", "int8"]
    assert "200.0 Gop/s" in lines[1]
    assert "AVX-512 (also AVX2, FMA)" in lines[1]
    assert "10" in lines[1].split()
    assert "20.0 GB/s" in lines[3]


def test_columns_hold_for_figures_of_five_digits_and_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "tcgen05.mma kind::mxf4nvf4.block_scale.scale_vec::4X"[:50]
    wide = msgspec.structs.replace(
        _KEPT,
        operations_per_s={
            "fp32": Roof(70e12, 69e12, 71e12),
            "fp8": Roof(9_123.4e12, 9_000e12, 9_200e12),
            "fp4-blocks": Roof(99_999e12, 99_998e12, 99_999e12),
        },
        bytes_per_s={"L1": Roof(99_999e9, 99_998e9, 99_999e9), "memory": Roof(8e12, 7e12, 9e12)},
        instructions={"fp32": "avx512f", "fp8": long, "fp4-blocks": long},
    )
    monkeypatch.setattr(roofs, "kept_roofs", lambda threads: wide)
    lines = output("roofs", "--threads", "1").splitlines()[1:6]
    assert len({line.index(unit) for line in lines for unit in (" Top/s", " GB/s") if unit in line}) == 1
    assert len({line.index("[") for line in lines}) == 1
    assert "99,999.00 Top/s" in lines[2]
    by = {line.index(long) for line in lines if long in line}
    assert by == {lines[0].index("AVX-512")}
    assert all(line.split("]")[1].startswith("  ") for line in lines[:4])


def test_one_thread_and_all_cores_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "usable_cores", lambda: [0, 1, 2])
    asked: list[int] = []

    def roofs_asked(threads: int, again: bool) -> Roofs:
        asked.append(threads)
        return _KEPT

    monkeypatch.setattr(roofs, "roofs_of", roofs_asked)
    assert invoke("roofs").exit_code == 0
    assert asked == [1, 3]


def test_one_unit_is_used_for_all_numbers_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    on_all = msgspec.structs.replace(_KEPT, threads=96, operations_per_s={"fp32": Roof(19e12, 18e12, 20e12)})
    monkeypatch.setattr(roofs, "usable_cores", lambda: list(range(96)))
    monkeypatch.setattr(roofs, "roofs_of", lambda threads, again: _KEPT if threads == 1 else on_all)
    shown = output("roofs")
    assert shown.count("0.20 Top/s") == shown.count("19.00 Top/s") == 1
    assert "Gop/s" not in shown


_ON_A_GPU = msgspec.structs.replace(
    _KEPT, threads=None, device="cuda:0", device_name="NVIDIA H100", bytes_per_s={"memory": Roof(3e12, 3e12, 3e12)}
)


def test_a_gpu_has_the_same_document_and_a_table_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_roofs, "kept_roofs_of_device", lambda device: _ON_A_GPU)
    monkeypatch.setattr(device_roofs, "peers_to_measure", lambda device, roofs: [])
    monkeypatch.setattr(device_roofs, "roofs_with_peers", lambda device: _ON_A_GPU)
    [found] = json.loads(output("roofs", "--device", "cuda:0", "--json"))["roofs"]
    [of_cpu] = json.loads(output("roofs", "--threads", "1", "--json"))["roofs"]
    assert found.keys() == of_cpu.keys()
    assert (found["device"], found["device_name"], found["threads"]) == ("cuda:0", "NVIDIA H100", None)
    lines = output("roofs", "--device", "cuda:0").splitlines()
    assert "NVIDIA H100" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["fp32", "memory", "int8"]


_LINKS = msgspec.structs.replace(
    _ON_A_GPU,
    links={
        TO_DEVICE: Link(Roof(14.2e9, 14.1e9, 14.3e9), "PCIe"),
        BOTH: Link(Roof(25e9, 24e9, 26e9), "PCIe"),
        "to 0000:c1:00.0": Link(Roof(366e9, 365e9, 367e9), "NVLink", "NVIDIA H100"),
    },
    pcie=PcieLink(4, 8, 5, 16),
)


def test_links_are_shown_beside_what_pcie_allows_and_what_it_was_trained_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_roofs, "kept_roofs_of_device", lambda device: _LINKS)
    monkeypatch.setattr(device_roofs, "peers_to_measure", lambda device, roofs: [])
    monkeypatch.setattr(device_roofs, "roofs_with_peers", lambda device: _LINKS)
    lines = {line[:17].strip(): line for line in output("roofs", "--device", "cuda:0").splitlines()}
    assert {"x8", "x16:", "15.8", "63.0"} <= set(next(lines[key] for key in lines if "link" in key).split())
    assert {"14.2", "PCIe,", "90"} <= set(lines[TO_DEVICE].split())
    assert {"25.0", "79"} <= set(lines[BOTH].split())
    assert {"366.0", "NVLink", "H100)"} <= set(lines["to 0000:c1:00.0"].split())
    [found] = json.loads(output("roofs", "--device", "cuda:0", "--json"))["roofs"]
    assert found["links"][TO_DEVICE] == {
        "bytes_per_s": {"value": 14.2e9, "low": 14.1e9, "high": 14.3e9},
        "by": "PCIe",
        "peer": "",
    }
    assert found["pcie"] == {"generation": 4, "width": 8, "most_generation": 5, "most_width": 16}


def test_races_on_any_of_the_devices_are_waited_for_while_links_between_them_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[str] = []

    @contextmanager
    def one_race(device: str) -> Iterator[None]:
        held.append(device)
        yield

    def measured(device: str, again: bool) -> Roofs:
        assert held == ["cuda:0", "cuda:1", "cuda:3"]
        return _LINKS

    monkeypatch.setattr("fairlap.cli.commands.machine.roofs.one_race", one_race)
    monkeypatch.setattr(device_roofs, "kept_roofs_of_device", lambda device: _ON_A_GPU)
    monkeypatch.setattr(device_roofs, "peers_to_measure", lambda device, roofs: [0, 3])
    monkeypatch.setattr(device_roofs, "roofs_with_peers", measured)
    assert invoke("roofs", "--device", "cuda:1").exit_code == 0


def test_threads_are_not_for_a_gpu() -> None:
    assert refusal("roofs", "--device", "cuda", "--threads", "2").code == "E_REQUEST"


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.engine._native.cuda_absent_because", lambda: "there is no driver")
    assert refusal("roofs", "--device", "cuda").code == "E_NOT_AVAILABLE"


def test_a_file_of_another_kind_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    assert refusal("roofs", "-o", tmp_path / "roofs.csv").code
    assert not list(tmp_path.iterdir())
