"""What is watched of a GPU."""

from __future__ import annotations

from fairlap.watch.metrics import Metric
from fairlap.watch.units import BYTES, CELSIUS, MEGAHERTZ, SHARE, WATTS, Unit

EVERY_GPU = "nvml"  # a source of the sampler for each device: nvml:0, nvml:1, ...
_PER_NANOSECOND = 1e-9
_PER_CENT = 1e-2
_HERTZ_PER_MEGAHERTZ = 1e6

_THROTTLED = {
    "throttled_by_power_ns": "power",
    "throttled_by_heat_ns": "heat",
    "throttled_by_sync_boost_ns": "sync_boost",
    "slowed_by_heat_in_software_ns": "software_heat",
    "slowed_by_heat_in_hardware_ns": "hardware_heat",
    "slowed_by_power_brake_ns": "power_brake",
}
_CLOCK_REASONS = {
    0x001: "idle",
    0x002: "clocks_setting",
    0x004: "power_cap",
    0x008: "hardware_slowdown",
    0x010: "sync_boost",
    0x020: "software_heat",
    0x040: "hardware_heat",
    0x080: "power_brake",
    0x100: "display_clocks",
}


def _gpu(field_name: str, name: str, help_text: str, unit: Unit, row: str = "", scale: float = 1.0) -> Metric:
    return Metric(EVERY_GPU, field_name, name, help_text, unit, "GPU", row, scale=scale)


GPU_METRICS = (
    Metric(
        EVERY_GPU,
        "power_instant_w",
        "gpu_power_watts",
        "Power of the board, by its instant sensor.",
        WATTS,
        "GPU",
        "power",
        essential=True,
    ),
    _gpu(
        "power_average_w",
        "gpu_power_average_watts",
        "Power of the board, averaged by the driver.",
        WATTS,
        "average power",
    ),
    Metric(
        EVERY_GPU,
        "energy_j",
        "gpu_energy_joules",
        "Energy that the board has used, by its own counter.",
        WATTS,
        "GPU",
        counter=True,
    ),
    _gpu("sm_clock_mhz", "gpu_sm_clock_hertz", "Clock of the processors.", MEGAHERTZ, "SM clock", _HERTZ_PER_MEGAHERTZ),
    _gpu(
        "memory_clock_mhz",
        "gpu_memory_clock_hertz",
        "Clock of the memory.",
        MEGAHERTZ,
        "memory clock",
        _HERTZ_PER_MEGAHERTZ,
    ),
    Metric(
        EVERY_GPU,
        "memory_used_bytes",
        "gpu_memory_used_bytes",
        "Memory of the device in use, by anybody.",
        BYTES,
        "GPU",
        "memory",
        whole="gpu_memory_size_bytes",
        essential=True,
    ),
    Metric(
        EVERY_GPU,
        "memory_total_bytes",
        "gpu_memory_size_bytes",
        "Memory that the device has.",
        BYTES,
        "GPU",
        latest=True,
    ),
    _gpu("temperature_c", "gpu_temperature_celsius", "Temperature of the chip.", CELSIUS, "temperature"),
    _gpu(
        "memory_temperature_c", "gpu_memory_temperature_celsius", "Temperature of the memory.", CELSIUS, "memory temp."
    ),
    _gpu("utilisation_percent", "gpu_busy_ratio", "Share of time in which a kernel ran.", SHARE, "busy", _PER_CENT),
    _gpu(
        "memory_utilisation_percent",
        "gpu_memory_busy_ratio",
        "Share of time in which the memory was read or written.",
        SHARE,
        scale=_PER_CENT,
    ),
    *(
        Metric(
            EVERY_GPU,
            field_name,
            "gpu_throttled_seconds",
            "Time for which the device was held back, by reason; reasons may overlap.",
            SHARE,
            "GPU",
            "throttled",
            counter=True,
            scale=_PER_NANOSECOND,
            labels={"reason": reason},
            reason=reason.replace("_", " "),
            essential=True,
        )
        for field_name, reason in _THROTTLED.items()
    ),
    *(
        Metric(
            EVERY_GPU,
            "throttle_reasons_bits",
            "gpu_clock_held",
            "1 while the clock is held below its highest for this reason.",
            SHARE,
            "GPU",
            "clock held by",
            labels={"reason": reason},
            bit=bit,
            reason=reason.replace("_", " "),
        )
        for bit, reason in _CLOCK_REASONS.items()
    ),
)
