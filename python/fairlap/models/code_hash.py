"""The hash of code, for what is cached and must be computed again when the code that computes it changes."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from pathlib import Path

from fairlap.models.registry import package_of_code


def hash_of_code(*folders: Path) -> str:
    """SHA-256 of the Python files in the folders and below them."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def hash_of_model_code(package: str) -> str:
    """Of a model's package, with what built-in models share and what turns a reference into losses and gradients."""
    folder = Path(str(import_module(package_of_code(package)).__file__)).parent
    if package.startswith("fairlap.bench_models."):
        folder = folder.parent
    return hash_of_code(folder, Path(__file__).parent)
