"""Ranks of one machine have a GPU each: what they see, what is read of each GPU, and what a slow one means for all.

The GPUs are those of the fakes, on which nothing is exchanged: the ranks' gradients meet over sockets.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.machine.hardware import cuda_devices
from fairlap.meters import energy
from fairlap.meters.device_slowdown import SLOWED
from fairlap.race.processes import repeated_processes
from fairlap.race.run import Run
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.training import Sgd, Training
from fairlap.request.work import Work
from fairlap.results.results import results_of
from gpu_in_workers import put_gpu_into_workers
from installed_package import install_frameworks
from machine_marks import needs_proc
from one_block import run_of_one_block
from visible_gpus import AT_START, GPUS, SHOWS_ALL, uuid_of
from watched_machine import fresh_fake_nvml

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.timeout(600)]

NAME = "ranks-on-gpus"
TRAINING = Training(Sgd(lr=0.05))


@pytest.fixture(autouse=True)
def _gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_SENSOR_ROOT", str(tmp_path))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(energy, "_IDLE_S", 0.1)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    install_frameworks(tmp_path / "installed", monkeypatch, {NAME: "ranks_on_gpus:RanksOnGpus"})
    put_gpu_into_workers(tmp_path, monkeypatch, AT_START)
    monkeypatch.syspath_prepend(str(tmp_path / "at_start"))  # for the process that asks the driver which GPUs there are
    cuda_devices._seen_by_cuda.cache_clear()
    fresh_fake_nvml().fake_nvml_set_device_count(GPUS)


def run_on(*devices: str, hosts: tuple[str, ...] = (), seconds: float = 0.3) -> Run:
    work = Work("digits", 8, "train", training=TRAINING, scale=Scale(1, len(devices), hosts=hosts))
    return run_of_one_block(NAME, work, seconds=seconds, device=devices[0], devices=devices)


def test_each_rank_sees_the_gpu_that_it_was_given_and_no_other() -> None:
    """In the order that was asked for, on four GPUs of one host."""
    [process] = run_on("cuda:3", "cuda:0", "cuda:2", "cuda:1", hosts=("localhost",)).processes
    assert (process.outcome, process.message) == ("finished", ""), process.details
    dealt = [uuid_of(gpu) for gpu in (3, 0, 2, 1)]
    assert process.in_force["gpu"] == "; ".join(f"rank {rank}: {uuid}" for rank, uuid in enumerate(dealt))
    assert process.in_force["shown"] == "; ".join(f"rank {rank}: GPU-{uuid}" for rank, uuid in enumerate(dealt))
    assert process.in_force["device"] == "cuda:0"  # by which every rank knows its own
    assert "4 ranks" in process.in_force["ranks"]


def test_a_row_has_the_state_the_memory_and_the_energy_of_every_gpu() -> None:
    nvml = fresh_fake_nvml()
    nvml.fake_nvml_set_device_count(GPUS)
    for board, mhz, temperature_c, used_gib in ((1, 1410, 71, 3), (2, 1755, 55, 5)):
        nvml.fake_nvml_set_reading(board, b"sm_mhz", mhz)
        nvml.fake_nvml_set_reading(board, b"temperature_c", temperature_c)
        nvml.fake_nvml_set_reading(board, b"memory_used", used_gib * 2**30)
        nvml.fake_nvml_power_constant(board, 100e3 * board)
    run = run_on("cuda:2", "cuda:1", seconds=0.6)
    [process], [row] = run.processes, results_of(run, "r").rows
    assert (process.outcome, process.message) == ("finished", ""), process.details
    assert row.device == "cuda:2,cuda:1"
    around = {f"{gpu} {when}" for gpu in ("cuda:1", "cuda:2") for when in ("start", "end")}
    assert {key: mhz for key, mhz in row.gpu_sm_mhz.items() if key in around} == {
        key: 1410.0 if "cuda:1" in key else 1755.0 for key in around
    }
    assert {key for key in row.gpu_sm_mhz if "measured" in key} == {"cuda:1 measured", "cuda:2 measured"}
    assert row.gpu_temperature_c == {key: 71.0 if "cuda:1" in key else 55.0 for key in around}
    assert row.gpu_power_w == {key: 100.0 if "cuda:1" in key else 200.0 for key in around}
    assert row.gpu_memory_bytes == {key: (3 if "cuda:1" in key else 5) * 2.0**30 for key in around}
    assert set(row.energy_by_sensor_j) == {"nvml:1", "nvml:2"}
    assert row.energy_per_item_j is not None
    assert row.energy_per_item_j.value == pytest.approx(sum(row.energy_by_sensor_j.values()))
    assert process.ranks is not None
    assert [memory.bytes["driver"] for memory in process.ranks.memory] == [0, 0]
    assert row.device_span_ns is None
    assert "equally many steps" in row.absent["device_span_ns"]


def test_one_gpu_that_is_slowed_down_repeats_the_process_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_processes, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(repeated_processes, "MOST_REPEATS", 1)
    nvml = fresh_fake_nvml()
    nvml.fake_nvml_set_device_count(GPUS)
    nvml.fake_nvml_set_reading(1, b"throttle_reasons", 0x40)
    [process] = run_on("cuda:0", "cuda:1").processes
    assert (process.outcome, process.repeats, process.machine[SLOWED]) == ("finished", 1, 1.0)
    [process] = run_on("cuda:0", "cuda:2").processes
    assert (process.outcome, process.repeats, process.machine[SLOWED]) == ("finished", 0, 0.0)


def test_a_rank_that_sees_another_ranks_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHOWS_ALL, "1")
    [process] = run_on("cuda:0", "cuda:1").processes
    assert (process.outcome, process.code) == ("unsupported", "E_UNSUPPORTED")
    assert uuid_of(1) in process.message


def test_a_gpu_that_is_not_there_is_refused_before_a_rank_starts() -> None:
    [process] = run_on("cuda:0", "cuda:7").processes
    assert (process.outcome, process.code) == ("unsupported", "E_UNSUPPORTED")
    assert "cuda:7" in process.message
    assert process.in_force == {}
