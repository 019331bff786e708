"""The metrics of a GPU."""

from __future__ import annotations

from functools import partial

from fairlap.watch.metrics import BYTES, CELSIUS, MEGAHERTZ, SHARE, WATTS, Metric

EVERY_GPU = "nvml"  # the sampler has one source per device: nvml:0, nvml:1, ...

_THROTTLED = {
    "throttled_by_power_ns": "power",
    "throttled_by_heat_ns": "thermal",
    "throttled_by_sync_boost_ns": "sync_boost",
    "slowed_by_heat_in_software_ns": "sw_thermal",
    "slowed_by_heat_in_hardware_ns": "hw_thermal",
    "slowed_by_power_brake_ns": "power_brake",
}
_CLOCK_REASONS = {
    0x001: "idle",
    0x002: "clocks_setting",
    0x004: "power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal",
    0x040: "hw_thermal",
    0x080: "power_brake",
    0x100: "display_clocks",
}
_gpu = partial(Metric, EVERY_GPU, group="GPU")

GPU_METRICS = (
    _gpu(
        "power_instant_w",
        "gpu_power_watts",
        "Power draw of the board, read from its instantaneous sensor.",
        WATTS,
        row="power",
        essential=True,
    ),
    _gpu(
        "power_average_w",
        "gpu_power_average_watts",
        "Power draw of the board, averaged by the driver.",
        WATTS,
        row="average power",
    ),
    _gpu("energy_j", "gpu_energy_joules", "Energy used by the board, from its own counter.", WATTS, counter=True),
    _gpu("sm_clock_mhz", "gpu_sm_clock_hertz", "Clock of the streaming multiprocessors.", MEGAHERTZ, row="SM clock"),
    _gpu("memory_clock_mhz", "gpu_memory_clock_hertz", "Clock of the device memory.", MEGAHERTZ, row="memory clock"),
    _gpu(
        "memory_used_bytes",
        "gpu_memory_used_bytes",
        "Device memory in use by all processes.",
        BYTES,
        row="memory",
        whole="gpu_memory_size_bytes",
        essential=True,
    ),
    _gpu("memory_total_bytes", "gpu_memory_size_bytes", "Size of the device memory.", BYTES, latest=True),
    _gpu("temperature_c", "gpu_temperature_celsius", "Temperature of the GPU.", CELSIUS, row="temperature"),
    _gpu(
        "memory_temperature_c",
        "gpu_memory_temperature_celsius",
        "Temperature of the device memory.",
        CELSIUS,
        row="memory temp.",
    ),
    _gpu("utilisation_percent", "gpu_busy_ratio", "Share of time with at least one kernel running.", SHARE, row="busy"),
    _gpu(
        "memory_utilisation_percent",
        "gpu_memory_busy_ratio",
        "Share of time in which device memory was read or written.",
        SHARE,
    ),
    *(
        _gpu(
            field_name,
            "gpu_throttled_seconds",
            "Time for which the clock was throttled, by reason; reasons may overlap.",
            SHARE,
            row="throttled",
            counter=True,
            labels={"reason": reason},
            reason=reason.replace("_", " "),
            essential=True,
        )
        for field_name, reason in _THROTTLED.items()
    ),
    *(
        _gpu(
            "throttle_reasons_bits",
            "gpu_clock_limited",
            "1 while this reason keeps the clock below its maximum.",
            SHARE,
            row="clock limited by",
            labels={"reason": reason},
            bit=bit,
            reason=reason.replace("_", " "),
        )
        for bit, reason in _CLOCK_REASONS.items()
    ),
)
