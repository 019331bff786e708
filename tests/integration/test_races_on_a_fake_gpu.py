"""Whole races of workers that see a fake GPU: under conditions of the GPU, and up to the end of its memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_memory_framework import ITEM_BYTES
from example_installed import install_example
from fairlap.meters import energy
from fairlap.race.equal_work import answers
from fairlap.request.fields.device_conditions import DeviceConditions
from fairlap.request.work import Work
from fairlap.results.results import results_of
from gpu_in_workers import put_gpu_into_workers
from installed_package import install_frameworks
from machine_marks import needs_proc
from one_block import run_of_one_block
from watched_machine import fresh_fake_nvml

pytestmark = needs_proc

BOTH = DeviceConditions(cache="cold", regime="burst")
FLUSHED = "flushed before each sample with 100 MiB, 2.0 times the L2 cache"
DEVICE_BYTES = 16 * 2**30  # of the fake


@pytest.fixture(autouse=True)
def _gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_SENSOR_ROOT", str(tmp_path))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(energy, "_IDLE_S", 0.1)
    install_example(tmp_path / "installed", monkeypatch)
    put_gpu_into_workers(tmp_path, monkeypatch)
    fresh_fake_nvml()


def test_a_race_under_conditions_of_the_gpu_has_them_in_its_row_and_no_energy_of_calls() -> None:
    run = run_of_one_block("example", Work("mlp", 4, on_device=BOTH), seconds=0.05, device="cuda:0")
    [process], [row] = run.processes, results_of(run, "r").rows
    assert process.outcome == "finished", process.message
    assert row.device_cache == FLUSHED
    assert row.device_regime is not None
    assert row.device_regime.startswith("burst, after 500.0 ms of rest")
    assert row.latency_p50_ns is not None
    assert row.energy_per_item_j is None
    assert "flushed between calls" in row.absent["energy_per_item_j"]
    assert run.plan.works[0].label.endswith(" · cold L2 cache, burst")
    warm = run_of_one_block("example", Work("mlp", 4), seconds=0.15, device="cuda:0")
    [usual] = results_of(warm, "r").rows
    assert (usual.device_cache, usual.device_regime) == ("warm", None)
    assert usual.energy_per_item_j is not None


@pytest.mark.slow
def test_a_worker_that_does_not_know_the_conditions_is_disqualified(monkeypatch: pytest.MonkeyPatch) -> None:
    require = answers.require_conditions
    monkeypatch.setattr(answers, "require_conditions", lambda wanted, _: require(wanted, {}))
    [process] = run_of_one_block("example", Work("mlp", 4, on_device=BOTH), seconds=0.05, device="cuda:0").processes
    assert (process.outcome, process.code) == ("disqualified", "E_DEVICE_CONDITIONS")


@pytest.mark.slow
def test_the_largest_batch_is_the_last_that_fits_into_the_memory_of_the_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_frameworks(
        tmp_path / "more", monkeypatch, {"takes-device-memory": "device_memory_framework:TakesDeviceMemory"}
    )
    run = run_of_one_block("takes-device-memory", Work("mlp", 2), seconds=0.3, device="cuda:0", max_batch=64)
    [process], [row] = run.processes, results_of(run, "r").rows
    assert process.outcome == "finished", process.message
    found = process.largest_batch
    assert found is not None
    largest = DEVICE_BYTES // ITEM_BYTES
    assert (found.batch, found.ended_by, found.memory) in (
        (largest, "out_of_memory", "of the device"),
        (largest - 2, "out_of_memory", "of the device"),  # where other memory of the GPU is in use
    )
    assert row.absent["largest_batch_memory_limit_bytes"] == "the device's own memory is the limit"
    assert row.memory_by_batch["4"] == 4 * ITEM_BYTES
