"""The value of one metric over an interval, from its readings."""

from __future__ import annotations

import pytest
from fairlap.watch.metrics import SHARE, WATTS, Metric
from fairlap.watch.readings import METRICS
from fairlap.watch.series import NO_ENERGY_COUNTED, Series

POWER = Metric("nvml", "power_instant_w", "gpu_power_watts", "Power.", WATTS, "GPU", "power")
ENERGY = Metric("powercap", "package-0 energy_j", "cpu_energy_joules", "Energy.", WATTS, "Processor", counter=True)
LIMITED = Metric(
    "nvml", "throttle_reasons_bits", "gpu_clock_limited", "Limited.", SHARE, "GPU", bit=0x4, reason="power cap"
)


def metric_named(name: str) -> Metric:
    [found] = [metric for metric in METRICS if metric.name == name]
    return found


def series(metric: Metric, wraps_at: float = 0.0) -> Series:
    return Series(metric, {"source": metric.source}, metric.group, wraps_at)


def test_a_gauge_is_the_mean_of_the_interval() -> None:
    power = series(POWER)
    power.take(1.0, [1, 2, 3], [100.0, 200.0, 300.0])
    assert (power.value, power.shown, power.absent) == (200.0, 200.0, "")


def test_a_peak_is_the_last_reading() -> None:
    peak = series(metric_named("control_group_memory_peak_bytes"))
    peak.take(1.0, [1, 2, 3], [4_000_000_000.0, 4_400_000_000.0, 4_500_000_001.0])
    assert peak.value == 4_500_000_001.0


@pytest.mark.parametrize("name", ["memory_size_bytes", "gpu_memory_size_bytes"])
def test_a_size_that_changes_within_the_interval_is_the_last_one(name: str) -> None:
    size = series(metric_named(name))
    size.take(1.0, [1, 2], [1000.0, 2000.0])
    assert size.value == 2000.0


def test_bytes_are_whole() -> None:
    used = series(metric_named("control_group_memory_bytes"))
    used.take(1.0, [1, 2, 3], [1.0, 2.0, 2.0])
    assert used.value == 2.0


def test_a_counter_has_a_total_and_a_rate() -> None:
    energy = series(ENERGY)
    energy.take(0.0, [0], [10.0])
    assert (energy.value, energy.per_second) == (10.0, None)
    energy.take(2.0, [1_000_000_000, 2_000_000_000], [15.0, 110.0])
    assert (energy.value, energy.per_second) == (110.0, 50.0)


def test_a_counter_that_wraps_keeps_growing() -> None:
    energy = series(ENERGY, wraps_at=1000.0)
    energy.take(0.0, [0], [990.0])
    energy.take(1.0, [1_000_000_000], [10.0])
    assert (energy.value, energy.per_second) == (1010.0, 20.0)


def test_a_restarted_counter_has_no_rate_until_the_next_interval() -> None:
    energy = series(ENERGY)
    energy.take(0.0, [0], [990.0])
    energy.take(1.0, [1_000_000_000], [10.0])
    assert (energy.value, energy.per_second) == (10.0, None)
    energy.take(2.0, [2_000_000_000], [13.0])
    assert energy.per_second == 3.0


def test_energy_is_absent_while_its_counter_does_not_change() -> None:
    energy = series(ENERGY)
    for second in range(2):
        energy.take(float(second), [second * 1_000_000_000], [10.0])
    assert (energy.value, energy.per_second, energy.absent) == (None, None, NO_ENERGY_COUNTED)
    energy.take(2.0, [2_000_000_000], [30.0])
    assert (energy.value, energy.per_second, energy.absent) == (30.0, 10.0, "")


def test_a_reason_that_applied_for_a_part_of_the_interval_counts() -> None:
    limited = series(LIMITED)
    limited.take(1.0, [1, 2], [float(0x5), 1.0])
    assert limited.value == 1.0
    limited.take(2.0, [3], [1.0])
    assert limited.value == 0.0


def test_an_absence_leaves_no_number_and_a_gap_in_the_history() -> None:
    power = series(POWER)
    power.take(1.0, [1], [100.0])
    power.be_absent("gone")
    assert (power.value, power.per_second, power.shown) == (None, None, None)
    assert list(power.history) == [(1.0, 100.0)]


def test_the_history_is_a_minute() -> None:
    power = series(POWER)
    for second in range(100):
        power.take(float(second), [second], [1.0])
    assert power.history[0][0] == 39.0
