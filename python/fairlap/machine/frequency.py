"""What sets the processor's clock: the governor, turbo, and the limits between which it may move."""

from __future__ import annotations

from fairlap.machine.root import Root

_FIRST = "sys/devices/system/cpu/cpu0/cpufreq"
_NO_TURBO = "sys/devices/system/cpu/intel_pstate/no_turbo"
_BOOST = "sys/devices/system/cpu/cpufreq/boost"


def frequency_facts(root: Root) -> dict[str, str]:
    return {
        "governor": ", ".join(governors(root)),
        "frequency driver": root.text(f"{_FIRST}/scaling_driver"),
        "energy preference": root.text(f"{_FIRST}/energy_performance_preference"),
        "turbo": turbo(root),
        "base frequency": _mhz(root.number(f"{_FIRST}/base_frequency")),
        "maximum frequency": _mhz(root.number(f"{_FIRST}/cpuinfo_max_freq")),
        "frequency limit": _limit(root),
    }


def governors(root: Root) -> list[str]:
    """Of every core that tells, each once: one core with another governor is enough to disturb."""
    policies = [name for name in root.names("sys/devices/system/cpu/cpufreq") if name.startswith("policy")]
    told = {root.text(f"sys/devices/system/cpu/cpufreq/{name}/scaling_governor") for name in policies}
    return sorted(told - {""}) or list(filter(None, [root.text(f"{_FIRST}/scaling_governor")]))


def turbo(root: Root) -> str:
    """``on`` or ``off``; empty where nothing tells, as in most virtual machines."""
    no_turbo, boost = root.text(_NO_TURBO), root.text(_BOOST)
    if no_turbo in ("0", "1"):
        return "off" if no_turbo == "1" else "on"
    return {"0": "off", "1": "on"}.get(boost, "")


def turbo_switch(root: Root) -> str:
    """The command that turns it off here."""
    if root.text(_NO_TURBO):
        return f"echo 1 | sudo tee /{_NO_TURBO}"
    return f"echo 0 | sudo tee /{_BOOST}"


def turbo_gain(root: Root) -> float | None:
    """How many times the base clock the highest one is; None where either is not told."""
    base, most = root.number(f"{_FIRST}/base_frequency"), root.number(f"{_FIRST}/cpuinfo_max_freq")
    return most / base if base and most and most > base else None


def _limit(root: Root) -> str:
    """Only where it lies below what the processor can do."""
    limit, most = root.number(f"{_FIRST}/scaling_max_freq"), root.number(f"{_FIRST}/cpuinfo_max_freq")
    return _mhz(limit) if limit and most and limit < most else ""


def _mhz(khz: int | None) -> str:
    return f"{khz / 1000:g} MHz" if khz else ""
