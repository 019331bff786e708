"""The power of the idle machine that a process is compared with is that of the sensors which it read."""

from __future__ import annotations

from fairlap.meters.energy import EnergyOfBlock, EnergyRead, IdlePower, Sensed
from fairlap.race.processes.recorded_turns import record_energy
from fairlap.scenarios.process_result import ProcessResult

IDLE = tuple(IdlePower(sensor, 70.0, 69.0, 71.0) for sensor in ("nvml:0", "nvml:1"))


def idle_beside(*sensors: str) -> list[str]:
    result = ProcessResult(0, 0, "torch", "work", "controlled")
    if sensors:
        result.energy = EnergyOfBlock(1.0, 1, [EnergyRead(sensor, 100.0, 99.0, 101.0) for sensor in sensors])
    record_energy(result, Sensed(IDLE))
    return [each.sensor for each in result.idle_power]


def test_one_rank_of_a_race_on_two_gpus_is_compared_with_its_own_gpu() -> None:
    assert idle_beside("nvml:0") == ["nvml:0"]
    assert idle_beside("nvml:1", "nvml:0") == ["nvml:0", "nvml:1"]
    assert idle_beside() == ["nvml:0", "nvml:1"]
