"""Facts about this machine that measurements depend on. What it does not report is absent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from fairlap.machine.git_revision import revision_facts
from fairlap.machine.hardware.gpu import Gpus, gpu_facts, gpus, service_facts
from fairlap.machine.hardware.kernel import kernel_facts, memory_facts
from fairlap.machine.hardware.processor import frequency_facts, processor_facts
from fairlap.machine.hardware.virtualisation import container_facts, virtualisation_facts
from fairlap.machine.root import THIS_MACHINE, Root
from fairlap.machine.software import software_facts
from fairlap.machine.variables import variable_facts
from fairlap.secrets import without_secrets


def machine_facts(
    root: Root = THIS_MACHINE,
    environment: Mapping[str, str] | None = None,
    gpus_found: Gpus | None = None,
    folder: Path | None = None,
) -> dict[str, str]:
    """By the names that comparisons of stored runs know. The arguments replace the machine in tests."""
    variables = os.environ if environment is None else environment
    readers: tuple[Callable[[], dict[str, str]], ...] = (
        lambda: processor_facts(root),
        lambda: frequency_facts(root),
        lambda: virtualisation_facts(root),
        lambda: memory_facts(root),
        lambda: kernel_facts(root),
        lambda: container_facts(root, variables),
        lambda: _of_gpus(gpus() if gpus_found is None else gpus_found, root, variables),
        software_facts,
        lambda: variable_facts(variables),
        lambda: revision_facts(folder or Path.cwd()),
    )
    found: dict[str, str] = {}
    for read in readers:
        try:
            facts = read()
        except (OSError, ValueError):  # such as a working folder that was removed
            continue
        found |= {name: without_secrets(value) for name, value in facts.items() if value}
    return found


def _of_gpus(found: Gpus, root: Root, variables: Mapping[str, str]) -> dict[str, str]:
    return gpu_facts(found, root) | (service_facts(root, variables) if found.devices else {})
