"""A framework whose work is a kernel on the fake device: one call multiplies in NumPy and launches it.

Variants say on which streams, and how its stream is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from fairlap.errors import NotAvailable
from fairlap.frameworks.contract import Contestant, DeviceStream, Framework, Phase, Settings
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

KERNEL_NS = 20_000
LATE_NS = 5_000_000

# Set by the test.
machine: Any = None
stream = 0
other_stream = 0  # of the same device
context = 0  # in which an operation of a real framework launches, and on which streams
streams: tuple[int, ...] = ()


class OnFakeDevice(Framework):
    name = "on-fake-device"
    packages = ("on-fake-device",)
    module = "device_framework"
    variants: ClassVar[tuple[str, ...]] = ("", "hidden", "unknown", "two-streams", "late")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        weight = work.weights["w"]

        def bind(inputs: Arrays) -> Callable[[], Any]:
            x = inputs["x"]

            def call() -> Any:
                machine.kernel(KERNEL_NS, "matmul", stream)
                if wanted.variant == "two-streams":
                    machine.kernel(LATE_NS, "elsewhere", other_stream)
                return x @ weight

            return call

        def late(_result: Any) -> None:
            machine.kernel(LATE_NS, "enqueued late", stream)
            machine.cuda.cuStreamSynchronize(stream)  # its own wait, after which its result is there

        return Contestant(
            bind=bind,
            done=late if wanted.variant == "late" else None,
            outputs=lambda result: {"y": result},
            weights=lambda: dict(work.weights),
            in_force={"threads": str(wanted.threads)},
            stream=None if wanted.variant == "unknown" else DeviceStream("the test's word", _find(wanted.variant)),
        )

    def version(self) -> str:
        return "1"


def _find(variant: str) -> Callable[[Callable[[], Any]], object]:
    def find(_call: Callable[[], Any]) -> object:
        if variant == "hidden":
            raise NotAvailable("it does not show its stream")
        return stream

    return find
