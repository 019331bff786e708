"""A worker's service with a contestant whose work runs on the fake device."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import device_framework
import msgspec
import numpy as np
from cuda_on_fakes import Machine
from fairlap.scenarios.calls import latency
from fairlap.scenarios.calls.latency_messages import Measure, Measured
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Answer
from fairlap.worker.service import Service
from workers_of_fake import PLUGGED, Files

sys.path.append(str(PLUGGED))


class OneContestant:
    """A worker's service in this process, with the contestant prepared on cuda:1 of two devices."""

    def __init__(self, variant: str = "") -> None:
        self.machine = device_framework.machine = Machine()
        self.machine.cuda.fake_cuda_set_device_count(2)
        context = self.machine.cuda.fake_cuda_activate_primary_context(1)
        self.stream = device_framework.stream = int(self.machine.cuda.fake_cuda_create_stream(context, 1))
        device_framework.other_stream = int(self.machine.cuda.fake_cuda_create_stream(context, 1))
        self.folder = Path(tempfile.mkdtemp())
        self.sent: list[object] = []
        self.service = Service(Phases(self.sent.append))
        request = Files(self.folder).write().request(variant, "device_framework:OnFakeDevice")
        unseen = (str(self.folder / "changed.safetensors"),)
        self.service.prepare(msgspec.structs.replace(request, device="cuda:1", unseen=unseen))

    def answer(self) -> None:
        self.service.answer(Answer("inputs", str(self.folder / "answer.safetensors")))

    def measure(self, **more: object) -> Measured:
        request = Measure(samples=20, warmup=2, calls_per_sample=1, **more)  # type: ignore[arg-type]
        self.measured, raw = latency.serve(self.service.held, request)
        self.samples = {
            quantity.name: np.frombuffer(values, "<f8")
            for quantity, values in zip(self.measured.quantities, raw, strict=True)
        }
        return self.measured

    def pending(self) -> int:
        return int(self.machine.cuda.fake_cuda_pending_work(0))

    @property
    def methods(self) -> dict[str, str]:
        return {quantity.name: quantity.method for quantity in self.measured.quantities}
