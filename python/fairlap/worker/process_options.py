"""Options of a contestant's process, whatever its framework: ``torch:allocator=jemalloc``, ``torch:numa=0``.

The parent starts the process with them, and the process reads them back: a preloaded library that the loader ignored
must not be reported as in use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlap.data.pipeline_choice import without_choice
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.machine import allocators
from fairlap.machine.hardware.processor import cores_by_node
from fairlap.machine.root import THIS_MACHINE
from fairlap.request.fields.sizes import padding
from fairlap.request.fields.source import CHECKOUT_VARIABLE
from fairlap.worker.protocol import Prepare
from fairlap.worker.slowdown import slowdown_in

ALLOCATOR, NUMA, SANDBOX, CHECKOUT = "allocator", "numa", "sandbox", "checkout"
SYSTEM = "system"  # what the process would use anyway
KEEP, ONE_ARENA = "keep", "one-arena"  # the C library's, with other settings
ALLOCATORS = (SYSTEM, KEEP, ONE_ARENA, *allocators.LIBRARIES)

KEPT_MEMORY: Mapping[str, str] = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TOP_PAD_": "67108864",
}
"""The C library keeps what is freed for the next allocation, instead of returning it to the kernel."""

_ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
_SEARCHED = "PYTHONPATH"
_SOURCES = "src"  # where many checkouts have their packages


@dataclass(frozen=True)
class ProcessOptions:
    allocator: str = SYSTEM
    node: int | None = None
    sandbox: bool = False  # the worker confines itself, as the parent asks it to
    checkout: str = ""  # the folder in which modules are found first: the framework, or a model of the user

    def environment(self) -> dict[str, str]:
        """Variables to start the process with."""
        return {**self._of_allocator(), **self._of_checkout()}

    def _of_checkout(self) -> dict[str, str]:
        if not self.checkout:
            return {}
        folder = Path(self.checkout).absolute()
        places = [*(str(each) for each in (folder, folder / _SOURCES) if each.is_dir()), os.environ.get(_SEARCHED, "")]
        return {CHECKOUT_VARIABLE: str(folder), _SEARCHED: os.pathsep.join(filter(None, places))}

    def _of_allocator(self) -> dict[str, str]:
        if self.allocator in allocators.LIBRARIES:
            file = allocators.allocator_file(self.allocator)
            return {} if file is None else allocators.preloading(file)
        return dict({KEEP: KEPT_MEMORY, ONE_ARENA: _ONE_ARENA}.get(self.allocator, {}))

    def in_force(self) -> dict[str, str]:
        """Read back from this process. Raises Unsupported where it runs with something else."""
        found = {}
        if allocator := _allocator_in_force(self.allocator):
            found[ALLOCATOR] = allocator
        if self.node is not None:
            found[NUMA] = _node_in_force(self.node)
        return found


def process_options_in(options: Mapping[str, str]) -> ProcessOptions:
    """Read the process's options, and raise InvalidRequest for a value that no machine has."""
    allocator, node = options.get(ALLOCATOR, SYSTEM), options.get(NUMA)
    if allocator not in ALLOCATORS:
        raise InvalidRequest(f"{ALLOCATOR} must be one of {', '.join(ALLOCATORS)} (got {allocator})")
    if node is not None and not node.isdecimal():
        raise InvalidRequest(f"{NUMA} must be the number of a node, such as 0 (got {node})")
    if (sandbox := options.get(SANDBOX, "off")) not in ("on", "off"):
        raise InvalidRequest(f"{SANDBOX} must be on or off (got {sandbox})")
    if (checkout := options.get(CHECKOUT, "")) and not Path(checkout).is_dir():
        raise InvalidRequest(f"{CHECKOUT}={checkout} is not a folder")
    return ProcessOptions(allocator, None if node is None else int(node), sandbox == "on", checkout)


def why_no_allocator(allocator: str) -> str:
    """Why this machine lacks it; empty where it has it."""
    if allocator not in allocators.LIBRARIES or allocators.allocator_file(allocator) is not None:
        return ""
    files = " or ".join(allocators.LIBRARIES[allocator])
    folders = "the folders of libraries, nor in those of LD_LIBRARY_PATH"
    return f"{allocator} is not installed here: there is no {files} in {folders}"


def without_process_options(options: Mapping[str, str]) -> dict[str, str]:
    """Keep the options that belong to the framework."""
    others = (ALLOCATOR, NUMA, SANDBOX, CHECKOUT, *padding.OPTIONS)
    return {name: value for name, value in options.items() if name not in others}


def settings_in(request: Prepare) -> tuple[Settings, float]:
    """Read the framework's own settings, and the share by which it is slowed down."""
    options = without_process_options(without_choice(request.options))
    slowdown = slowdown_in(options)
    limit_bytes = request.device_memory_limit_bytes
    settings = Settings(request.threads, request.variant, request.device, options, limit_bytes, rank=request.rank)
    return settings, slowdown


def _allocator_in_force(wanted: str) -> str:
    """Empty for the C library's own with nothing asked of it."""
    path = allocators.allocator_in_use(THIS_MACHINE)
    used = allocators.name_of(path)
    if wanted in allocators.LIBRARIES and used != wanted:
        raise Unsupported(f"{wanted} was preloaded, but this process takes its memory from {path or 'another library'}")
    if wanted == KEEP and not allocators.keeps_freed_memory():
        raise Unsupported("the C library of this process returns freed memory to the kernel in spite of its settings")
    if wanted == ONE_ARENA and allocators.arenas_with_a_second_thread() != 1:
        raise Unsupported("the C library of this process has more than one arena in spite of its settings")
    if wanted in (KEEP, ONE_ARENA):
        return wanted
    return "" if used.startswith(("libc.", "libc-", "ld-musl")) or not used else f"{used} ({Path(path).name})"


def _node_in_force(wanted: int) -> str:
    """By the cores that this process may run on. Memory comes from the node of the core that first writes to it."""
    nodes = cores_by_node()
    cores = os.sched_getaffinity(0)
    if not cores <= set(nodes.get(wanted, ())):
        raise Unsupported(f"this process runs on cores {','.join(map(str, sorted(cores)))}, not all of node {wanted}")
    return f"{wanted}, on {len(cores)} of its {len(nodes[wanted])} cores"
