"""Facts about this machine that figures depend on. What it does not tell is absent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from fairlap.machine.gpu import Gpus, gpu_facts, gpus
from fairlap.machine.kernel import kernel_facts, memory_facts
from fairlap.machine.processor import frequency_facts, processor_facts
from fairlap.machine.root import THIS_MACHINE, Root
from fairlap.machine.software import revision_facts, software_facts
from fairlap.machine.variables import variable_facts
from fairlap.machine.virtualisation import container_facts, virtualisation_facts


def machine_facts(
    root: Root = THIS_MACHINE,
    environment: Mapping[str, str] | None = None,
    told_by_gpus: Gpus | None = None,
    folder: Path | None = None,
) -> dict[str, str]:
    """By names that the comparison of saved runs knows. The arguments let tests put another machine in place."""
    variables = os.environ if environment is None else environment
    readers: tuple[Callable[[], dict[str, str]], ...] = (
        lambda: processor_facts(root),
        lambda: frequency_facts(root),
        lambda: virtualisation_facts(root),
        lambda: memory_facts(root),
        lambda: kernel_facts(root),
        lambda: container_facts(root, variables),
        lambda: gpu_facts(gpus() if told_by_gpus is None else told_by_gpus),
        software_facts,
        lambda: variable_facts(variables),
        lambda: revision_facts(folder or Path.cwd()),
    )
    found: dict[str, str] = {}
    for read in readers:
        try:
            told = read()
        except (OSError, ValueError):  # such as a working folder that was removed
            continue
        found |= {name: value for name, value in told.items() if value}
    return found
