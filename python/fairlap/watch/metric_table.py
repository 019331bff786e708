"""Everything that is watched, each defined once.

The terminal, the lines, the Prometheus metrics and the Grafana dashboard are made from this table.
"""

from __future__ import annotations

from fairlap.watch.gpu_metrics import EVERY_GPU, GPU_METRICS
from fairlap.watch.machine_metrics import MACHINE_METRICS
from fairlap.watch.metrics import Metric
from fairlap.watch.units import WATTS

METRICS = GPU_METRICS + MACHINE_METRICS

NOT_WATCHED = frozenset({"process_memory"})  # of the process that samples, which here is only the watch itself

_ENERGY = "energy_j"
_GROUPS = tuple(dict.fromkeys(metric.group for metric in METRICS))


def metrics_of(source: str, field_name: str) -> list[Metric]:
    """Of one field of a source of the sampler; none for a field that is not watched."""
    kind = EVERY_GPU if source.startswith(EVERY_GPU) else source
    found = [metric for metric in METRICS if (metric.source, metric.field) == (kind, field_name)]
    if not found and field_name.endswith(_ENERGY):
        found = [_energy_of_processor(source, field_name)]
    return found


def place_of(metric: Metric, device: str) -> tuple[int, int, int]:
    """Where it stands among all: by group, GPU after GPU, in the order of the table. Energy comes first."""
    gpu = int(device) if metric.source == EVERY_GPU else 0
    return _GROUPS.index(metric.group), gpu, METRICS.index(metric) if metric in METRICS else -1


def device_of(source: str, field_name: str) -> str:
    """``0`` of ``nvml:0``, ``intel-rapl:0 package-0`` of its energy; empty for what has no devices."""
    if source.startswith(EVERY_GPU):
        return source.partition(":")[2]
    return field_name.removesuffix(_ENERGY).strip() if field_name.endswith(_ENERGY) else ""


def _energy_of_processor(source: str, field_name: str) -> Metric:
    """Zones differ from machine to machine: packages, cores, memory, the whole platform."""
    part = device_of(source, field_name).rpartition(" ")[2]
    return Metric(
        source,
        field_name,
        "cpu_energy_joules",
        "Energy that a part of the processor has used; parts may contain each other.",
        WATTS,
        "Processor",
        f"power {part}".strip(),
        counter=True,
        essential=True,
    )
