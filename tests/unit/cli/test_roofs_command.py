"""``fairlap roofs`` shows what the machine room measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import invoke, output, refusal
from fairlap.machine import roofs
from fairlap.machine.roofs import Roof, Roofs

_KEPT = Roofs(
    threads=1,
    operations_per_s={"fp32": Roof(200e9, 199e9, 201e9)},
    bytes_per_s={"L1": Roof(500e9, 499e9, 501e9), "memory": Roof(20e9, 19e9, 21e9)},
    cache_bytes={"L1": 49152},
    instructions={"fp32": "avx512f"},
    measured_at="2026-11-23T05:00:00+00:00",
    absent={"int8": "no instructions of the processor for it are measured"},
)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "kept_roofs", lambda threads: _KEPT)


def test_json_has_the_roofs_and_the_ridges_and_goes_to_files_too(tmp_path: Path) -> None:
    file = tmp_path / "roofs.json"
    printed = json.loads(output("roofs", "--threads", "1", "--json", "-o", file))
    assert printed == json.loads(file.read_text())
    [found] = printed
    assert found["operations_per_s"]["fp32"] == {"value": 200e9, "low": 199e9, "high": 201e9}
    assert found["ridge_operations_per_byte"] == {"fp32": 10.0}
    assert found["instructions"] == {"fp32": "avx512f"}


def test_the_table_has_a_line_for_every_roof_and_for_what_is_absent() -> None:
    lines = output("roofs", "--threads", "1").splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["fp32", "L1", "memory", "int8"]
    assert "200.0 Gop/s" in lines[1]
    assert "10" in lines[1].split()
    assert "20.0 GB/s" in lines[3]


def test_one_thread_and_all_cores_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "usable_cores", lambda: [0, 1, 2])
    asked: list[int] = []

    def roofs_asked(threads: int, again: bool) -> Roofs:
        asked.append(threads)
        return _KEPT

    monkeypatch.setattr(roofs, "roofs_of", roofs_asked)
    assert invoke("roofs").exit_code == 0
    assert asked == [1, 3]


def test_a_file_of_another_kind_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    assert refusal("roofs", "-o", tmp_path / "roofs.csv").code
    assert not list(tmp_path.iterdir())
