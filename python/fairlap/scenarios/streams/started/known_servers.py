"""What is started by name: ``serve:transformers:model=./m``, a server, and ``transformers:model=./m``, a model alone.

Each has a command, and what an environment for it needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlap.machine.software import package_of
from fairlap.request.fields.package_origin import named_in

ANSWERS_OFFLINE: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


@dataclass(frozen=True)
class KnownServer:
    """Its command has ``{model}``, ``{port}``, ``{device}`` and ``{python}`` in places that are filled in."""

    packages: tuple[str, ...]  # of an environment; the first is the one whose version a contestant may name
    command: str
    model: str = "folder"  # what is named: a folder, or a file
    path: str = "/v1"  # of its API
    health: str = "/health"
    variables: Mapping[str, str] = field(default_factory=dict)  # may have {port}
    has_device: bool = True  # False: what its command starts computes on the CPU
    modules: tuple[str, ...] = ()  # that have to be here where no environment is made for it

    @property
    def package(self) -> str:
        return named_in(self.packages[0]).partition("[")[0]

    @property
    def install(self) -> str:
        """Write the line that installs what it needs, in any release."""
        return shlex.join(("pip", "install", *map(named_in, self.packages)))

    def packages_of(self, version: str, release: str = "") -> tuple[str, ...]:
        """Put a version, or what one of them is installed from, in the place of the usual one."""
        first, *others = self.packages
        usual = (f"{named_in(first)}{version}", *others) if version else self.packages
        if not release:
            return usual
        replaced = [each for each in usual if package_of(each) == package_of(release)]
        named, place = named_in(release), release[len(named_in(release)) :]
        if "[" not in named and replaced:
            named += "".join(named_in(replaced[0]).partition("[")[1:])
        return (f"{named}{place}", *(each for each in usual if each not in replaced))


_TRANSFORMERS = "{python} -P -m transformers.cli.transformers"  # what runs as `transformers`, in this interpreter
_PROGRAM = "{python} -P -m fairlap.scenarios.streams.in_process.program"

KNOWN: Mapping[str, KnownServer] = {
    "transformers": KnownServer(
        packages=("transformers[serving]==5.24.0", "torch==2.13.0"),
        command=f"{_TRANSFORMERS} serve {{model}} --host 127.0.0.1 --port {{port}} --device {{device}}",
        variables=ANSWERS_OFFLINE,
        modules=("transformers", "torch"),
    ),
    "llama-cpp": KnownServer(
        packages=("llama-cpp-python[server]==0.3.36",),
        # By default it ends an answer in the middle when another request comes.
        command=(
            "{python} -P -m llama_cpp.server --model {model} --host 127.0.0.1 --port {port} --interrupt_requests false"
        ),
        model="file",
        health="/v1/models",
        variables={"HOST": "127.0.0.1", "PORT": "{port}"},  # which it prefers to its options
        has_device=False,
        modules=("llama_cpp", "sse_starlette", "starlette_context"),
    ),
}
"""After ``serve:``."""

IN_PROCESS: Mapping[str, KnownServer] = {
    "transformers": KnownServer(
        packages=("transformers==5.24.0", "torch==2.13.0"),
        command=f"{_PROGRAM} transformers {{model}} {{port}} {{device}}",
        variables=ANSWERS_OFFLINE,
        modules=("transformers", "torch"),
    ),
    "onnxruntime-genai": KnownServer(
        packages=("onnxruntime-genai==0.18.0",),
        command=f"{_PROGRAM} onnxruntime-genai {{model}} {{port}} {{device}}",
        variables={"ORT_DISABLE_TELEMETRY": "1"},
        modules=("onnxruntime_genai",),
    ),
}
"""Names of frameworks: their processes answer one prompt at a time, and no server is between."""
