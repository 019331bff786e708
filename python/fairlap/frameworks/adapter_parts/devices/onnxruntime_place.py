"""Where a session of ONNX Runtime runs: its providers, the memory of inputs and outputs, and on a GPU its stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from fairlap.frameworks.adapter_parts.devices.onnxruntime_on_device import (
    GRAPH,
    provider_of,
    providers_for,
    run_options,
)
from fairlap.frameworks.adapter_parts.precisions.onnxruntime_memory import SessionMemory
from fairlap.frameworks.contract import Settings, Unsupported, device_number
from fairlap.request.work import Precision

PROVIDERS = {  # on the CPU; the first is the default
    "cpu": "CPUExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
}


@dataclass(frozen=True)
class Place:
    """Where a session runs, and where its inputs and outputs are bound. ``stream`` is None on the CPU."""

    providers: Sequence[tuple[str, Mapping[str, str]]]  # with their options, the one that is raced first
    memory: SessionMemory
    run_options: Any = None
    stream: Any = None
    graphs: Iterator[int] | None = None  # numbers for CUDA graphs, one for each binding

    @classmethod
    def of(cls, onnxruntime: Any, wanted: Settings, precision: Precision, package: str) -> Place:
        """Choose it; ``package`` is what pip installs for a GPU, for the refusal of a build without it."""
        if wanted.device == "cpu":
            here = onnxruntime.get_available_providers()
            known = {name: provider for name, provider in PROVIDERS.items() if provider in here}
            name = wanted.options.get("provider", next(iter(known)))
            if name not in known:
                raise Unsupported(f"onnxruntime has no provider {name!r}; it has {', '.join(known)}")
            return cls([(known[name], {})], SessionMemory("cpu", 0, precision))
        provider_of(onnxruntime, wanted, package)  # refuses a build without it, and loads its libraries
        from fairlap.engine.cuda.device_completion import own_stream

        number = device_number(wanted.device)
        stream = own_stream(number)
        providers = providers_for(wanted, stream.address, precision)
        graphs = count(1) if wanted.variant == GRAPH else None
        return cls(providers, SessionMemory("cuda", number, precision), run_options(onnxruntime), stream, graphs)

    @property
    def provider(self) -> str:
        return self.providers[0][0]
