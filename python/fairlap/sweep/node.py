"""What a node of the cluster is called for in a sweep, in a process of the cluster."""

from __future__ import annotations

import msgspec

from fairlap.launch.cluster.node_process import environment_of_node, take_priority_of_node
from fairlap.sweep.block_process import report_of
from fairlap.sweep.machine_here import machine_here


def describe() -> bytes:
    take_priority_of_node()
    return msgspec.msgpack.encode(machine_here(environment_of_node()))


def run(task: bytes) -> bytes:
    """Run the task; raise BlockLost."""
    take_priority_of_node()
    return report_of(task, environment_of_node())
