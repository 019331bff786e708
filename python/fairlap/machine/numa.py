"""NUMA nodes: which cores are near to which part of the memory."""

from __future__ import annotations

import os

from fairlap.machine.root import THIS_MACHINE, Root, numbers_listed

_NODES = "sys/devices/system/node"


def cores_by_node(root: Root = THIS_MACHINE) -> dict[int, tuple[int, ...]]:
    """Of nodes that have cores; empty where the system does not describe its nodes."""
    found = {node: numbers_listed(root.text(f"{_NODES}/node{node}/cpulist")) for node in _online(root)}
    return {node: tuple(sorted(cores)) for node, cores in found.items() if cores}


def available_cores_by_node(root: Root = THIS_MACHINE) -> dict[int, tuple[int, ...]]:
    """Of the cores that this process may use."""
    here = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    found = {node: tuple(core for core in cores if core in here) for node, cores in cores_by_node(root).items()}
    return {node: cores for node, cores in found.items() if cores}


def _online(root: Root) -> list[int]:
    return numbers_listed(root.text(f"{_NODES}/online"))
