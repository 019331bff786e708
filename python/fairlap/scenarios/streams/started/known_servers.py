"""What is started by name: ``serve:transformers:model=./m``, a server, and ``transformers:model=./m``, a model alone.

Each has a command, and what an environment for it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def package(self) -> str:
        return self.packages[0].partition("==")[0].partition("[")[0]

    def packages_of(self, version: str, release: str = "") -> tuple[str, ...]:
        """Put a version, or what it is installed from, in the place of the usual one."""
        first, *others = self.packages
        if release:
            return (release, *others)
        return (f"{first.partition('==')[0]}{version}", *others) if version else self.packages


_TRANSFORMERS = "{python} -P -m transformers.cli.transformers"  # what runs as `transformers`, in this interpreter
_PROGRAM = "{python} -P -m fairlap.scenarios.streams.in_process.program"

KNOWN: Mapping[str, KnownServer] = {
    "transformers": KnownServer(
        packages=("transformers[serving]==5.24.0", "torch==2.13.0"),
        command=f"{_TRANSFORMERS} serve {{model}} --host 127.0.0.1 --port {{port}} --device {{device}}",
        variables=ANSWERS_OFFLINE,
    ),
}
"""After ``serve:``."""

IN_PROCESS: Mapping[str, KnownServer] = {
    "transformers": KnownServer(
        packages=("transformers==5.24.0", "torch==2.13.0"),
        command=f"{_PROGRAM} transformers {{model}} {{port}} {{device}}",
        variables=ANSWERS_OFFLINE,
    ),
    "onnxruntime-genai": KnownServer(
        packages=("onnxruntime-genai==0.18.0",),
        command=f"{_PROGRAM} onnxruntime-genai {{model}} {{port}} {{device}}",
        variables={"ORT_DISABLE_TELEMETRY": "1"},
    ),
}
"""Names of frameworks: their processes answer one prompt at a time, and no server is between."""
