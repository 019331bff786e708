"""Measurements of frameworks, each in a new process of the script that is running, under controlled memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from fairlap.frameworks.contract import Settings
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY


def measured_in_processes(
    names: Iterable[str], models: Iterable[str], width: int
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Run ``SCRIPT NAME MODEL``, which prints JSON, for each framework and model, or print why it cannot run."""
    for name in names:
        framework, _, variant = name.partition(":")
        adapter = framework_named(framework)
        if not is_importable(adapter):
            print(f"{name:<18}not installed")
            continue
        environment = {**os.environ, **CONTROLLED_MEMORY, **adapter.environment_for(Settings(1, variant))}
        for model in models:
            command = [sys.executable, sys.argv[0], name, model]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name:<18}{model:<{width}}failed: {done.stderr.strip().splitlines()[-1]}")
                continue
            yield name, model, json.loads(done.stdout.splitlines()[-1])
