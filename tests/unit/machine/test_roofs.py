"""The roofs of a machine: which arrays are measured, on how many threads, and what is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np  # noqa: F401  (loads the library)
import pytest
from fairlap.errors import InvalidRequest
from fairlap.machine.hardware import arithmetic_peak, processor, roofs
from fairlap.machine.hardware.matrix_threads import one_thread_for_matrices
from fairlap.machine.hardware.processor import DataCache
from fairlap.machine.hardware.roofs import Roof, Roofs, cache_working_sets, kept_roofs, roofs_of
from fairlap.machine.root import Root

from .machines import BARE_METAL, built

_KIB, _MIB = 2**10, 2**20
_MEASURED = Roofs(
    threads=1,
    operations_per_s={"fp32": Roof(200e9, 199e9, 201e9)},
    bytes_per_s={"memory": Roof(20e9, 19e9, 21e9)},
    cache_bytes={"L1": 48 * _KIB},
    instructions={"fp32": "avx512f"},
    measured_at="2026-11-23T05:00:00+00:00",
)


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Empty the cache, and collect the thread counts that are measured."""
    made: list[int] = []

    def measured(threads: int, cores: list[int]) -> Roofs:
        made.append(threads)
        return msgspec.structs.replace(_MEASURED, threads=threads)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FAIRLAP_CACHE", raising=False)
    monkeypatch.setattr(roofs, "measured", measured)
    monkeypatch.setattr(roofs, "usable_cores", lambda: [0, 1, 2, 3])
    return made


def test_each_number_of_threads_is_measured_once_and_then_read(measurements: list[int]) -> None:
    assert kept_roofs(1) is None
    first = roofs_of(1)
    assert roofs_of(1) == first == kept_roofs(1)
    assert roofs_of(4).threads == 4
    assert measurements == [1, 4]


def test_they_are_kept_in_the_chosen_cache_and_read_from_the_users_too(
    measurements: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roofs_of(1)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "chosen"))
    roofs_of(1)
    assert measurements == [1]
    roofs_of(2)
    assert [file.name.rpartition("-")[2] for file in (tmp_path / "chosen" / "roofs").iterdir()] == ["2.json"]
    monkeypatch.delenv("FAIRLAP_CACHE")
    assert kept_roofs(2) is None


def test_again_measures_again_and_keeps_it(measurements: list[int]) -> None:
    roofs_of(2)
    roofs_of(2, again=True)
    roofs_of(2)
    assert measurements == [2, 2]


def test_other_cores_have_other_roofs(measurements: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    roofs_of(1)
    monkeypatch.setattr(roofs, "usable_cores", lambda: [0, 1])
    roofs_of(1)
    assert measurements == [1, 1]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"threads": "one"}', b"\xff\x00"])
def test_a_damaged_cache_is_measured_again(measurements: list[int], tmp_path: Path, content: bytes) -> None:
    roofs_of(1)
    [file] = (tmp_path / "cache").rglob("*.json")
    file.write_bytes(content)
    assert roofs_of(1) == msgspec.structs.replace(_MEASURED, threads=1)
    assert measurements == [1, 1]


def test_a_cache_that_cannot_be_written_loses_nothing(measurements: list[int], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in place of the folder")
    assert roofs_of(1).operations_per_s == _MEASURED.operations_per_s


@pytest.mark.parametrize("threads", [0, -1, 5])
def test_more_threads_than_cores_or_none_are_refused(measurements: list[int], threads: int) -> None:
    with pytest.raises(InvalidRequest) as found:
        roofs_of(threads)
    assert found.value.code == "E_REQUEST"
    assert not measurements


def test_the_ridge_is_operations_divided_by_bytes_and_absent_without_either() -> None:
    assert _MEASURED.ridge("fp32") == 10.0
    assert _MEASURED.ridge("int8") is None
    assert _MEASURED.ridge("fp32", "L1") is None


def test_the_arrays_of_a_level_do_not_fit_into_the_one_inside_it() -> None:
    caches = [
        DataCache("L1", 48 * _KIB, (0,), 4),
        DataCache("L2", 2 * _MIB, (0,), 4),
        DataCache("L3", 32 * _MIB, (0, 1, 2, 3), 1),
    ]
    assert cache_working_sets(caches, 1, 4) == {"L1": 24 * _KIB, "L2": 192 * _KIB, "L3": 8 * _MIB}
    # Four threads share the last level.
    assert cache_working_sets(caches, 4, 4)["L3"] == 6 * _MIB


def test_a_level_that_cannot_be_distinguished_from_the_one_inside_it_is_absent() -> None:
    caches = [DataCache("L1", 32 * _KIB, (0,), 2), DataCache("L2", _MIB, (0,), 2), DataCache("L3", 2 * _MIB, (0, 1), 1)]
    assert isinstance(cache_working_sets(caches, 2, 2)["L3"], str)


def test_two_hardware_threads_halve_the_caches_of_their_core() -> None:
    caches = [DataCache("L1", 32 * _KIB, (0, 1), 1)]
    assert cache_working_sets(caches, 2, 2) == {"L1": 8 * _KIB}
    assert cache_working_sets(caches, 1, 2) == {"L1": 16 * _KIB}


def test_a_processor_with_matrix_units_has_no_roof_that_ignores_them(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = frozenset({"amx_bf16", "amx_int8", "amx_fp16"})
    given = {"bf16": ["avx512_bf16", "amx_bf16"], "int8": ["avx512_vnni"]}
    monkeypatch.setattr(roofs, "instructions_for", lambda name: given.get(name, ["avx512f"]))
    assert roofs._absent_number_types(flags).keys() == {"int8", "fp16"}
    assert not roofs._absent_number_types(frozenset())


def test_number_types_without_instructions_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "instructions_for", lambda name: ["sse2"] if name in ("fp32", "fp64") else [])
    assert roofs._absent_number_types(frozenset()).keys() == {"fp16", "bf16", "int8"}


def test_data_caches_come_from_the_kernels_files(tmp_path: Path) -> None:
    root = built(tmp_path, BARE_METAL)
    assert processor.data_caches(root, [0, 1, 4]) == [
        DataCache("L1", 32 * _KIB, (0, 4), 1),
        DataCache("L3", 28160 * _KIB, (0, 1, 4), 1),
    ]
    assert processor.data_caches(Root(tmp_path / "none"), [0]) == []


def test_arrays_that_memory_has_no_room_for_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "available_memory_bytes", lambda: 64 * _MIB)
    found = roofs.measured(1, roofs.usable_cores(), seconds=0.02)
    assert "memory" not in found.bytes_per_s
    assert "memory" in found.absent
    assert found.operations_per_s.keys() == found.instructions.keys() >= {"fp32", "fp64"}
    assert found.bytes_per_s.keys() == found.triad_instructions.keys()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Roofs) == found
    for roof in (*found.operations_per_s.values(), *found.bytes_per_s.values()):
        assert 0 < roof.low <= roof.value <= roof.high


@pytest.mark.parametrize(("product", "native"), [(3e11, 2e11), (2e11, 3e11)])
def test_the_higher_of_both_measurements_counts(monkeypatch: pytest.MonkeyPatch, product: float, native: float) -> None:
    monkeypatch.setattr(arithmetic_peak, "_measured", 0.0)
    monkeypatch.setattr(arithmetic_peak, "_product", lambda: product)
    monkeypatch.setattr(arithmetic_peak, "_native", lambda: native)
    assert arithmetic_peak.operations_per_second() == 3e11


def test_measuring_again_never_lowers_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic_peak, "_measured", 0.0)
    figures = iter([3e11, 1e11])
    monkeypatch.setattr(arithmetic_peak, "_product", lambda: next(figures))
    monkeypatch.setattr(arithmetic_peak, "_native", lambda: 0.5e11)
    assert arithmetic_peak.operations_per_second() == 3e11
    assert arithmetic_peak.operations_per_second(again=True) == 3e11


def test_matrices_have_one_thread_and_then_as_many_as_before() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="it comes with scikit-learn")

    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        with one_thread_for_matrices():
            assert set(threads()) <= {1}
        assert threads() == before
