"""The hash of code, for what is cached and must be computed again when the code that computes it changes."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from pathlib import Path

from fairlap.models.names import SIZES
from fairlap.models.registry import packages_of_code


def hash_of_code(*folders: Path) -> str:
    """SHA-256 of the Python files in the folders and below them, and of the sizes of families."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((*folder.rglob("*.py"), *folder.rglob(SIZES))):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def folders_of_model_code(package: str) -> tuple[Path, ...]:
    """Of a model that is not a user's. Built-in models share what is beside them."""
    folders = [Path(str(import_module(each).__file__)).parent for each in packages_of_code(package)]
    return (folders[0].parent,) if package.startswith("fairlap.bench_models.") else tuple(folders)


@cache
def hash_of_model_code(package: str) -> str:
    """Of a model's code, with what turns a reference into losses and gradients."""
    return hash_of_code(*folders_of_model_code(package), Path(__file__).parent)


@cache
def hash_of_learning_code() -> str:
    """Of what turns the gradients of a user's model into steps of training, and says how far off they may be."""
    return hash_of_code(Path(__file__).parent)
