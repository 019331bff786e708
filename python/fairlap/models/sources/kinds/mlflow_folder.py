"""Folders of MLflow: the file inside, which ``MLmodel`` names, is raced as it would be alone.

Only the names in ``MLmodel`` are read. Files that can run code when they are read, as pickles can, are refused by their
own kind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlap.errors import reason_of, shortened
from fairlap.models.sources.contract import Bundle, Opened, SourceError, SourceKind
from fairlap.request.fields.source import Source

_INDEX = "MLmodel"
_MOST_INDEX_BYTES = 2**20
_FLAVOURS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    # The settings that name a place, and what MLflow writes there; an empty name is the place itself.
    "onnx": (("data", ("",)),),
    "pytorch": (("model_data", ("model.pt2", "model.pth")),),
    "tensorflow": (("saved_model_dir", ("",)), ("data", ("model.keras", "model.h5", "model"))),
    "keras": (("data", ("model.keras", "model.h5", "model")),),
}
_PYTHON = "python_function"  # how MLflow calls a model of any flavour
_MOST_NAMES = 100
_NAME_IT = "name the model's file"
_INSTEAD = "save it with mlflow.onnx, or name module:function, which returns a model"

Flavours = dict[str, dict[str, str]]


class MlflowFolder(SourceKind):
    title = "MLflow"

    @classmethod
    def recognises(cls, text: str) -> bool:
        return os.path.isfile(f"{text}/{_INDEX}")  # noqa: PTH113  (a Path raises where the text is too long)

    @classmethod
    def parts_of(cls, text: str) -> tuple[str, ...]:
        return (_file_in(text),)

    @classmethod
    def check(cls, source: Source) -> None:
        """Of one among several files, which are read as they are named."""
        raise SourceError(f"{source.text} is a folder of MLflow; among several files, name {_file_in(source.path)}")

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        raise AssertionError("the file in the folder is opened, by its own kind")

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        raise AssertionError("the file in the folder is built, by its own kind")


def _file_in(folder: str) -> str:
    """Find the model that the folder holds."""
    index = Path(folder) / _INDEX
    try:
        flavours = _flavours(index)
        found = _first_place(folder, flavours)
    except OSError as error:  # also of a name that is too long
        raise SourceError(f"{index} cannot be read, or what it names: {reason_of(error)}") from None
    if found:
        return found
    if not flavours:
        raise SourceError(f"{index} names no flavours of a model; it is damaged, or was not written by MLflow")
    if known := [each for each in _FLAVOURS if each in flavours]:
        raise SourceError(f"{index} names no file of its flavour {known[0]}; it is damaged, or too new; {_NAME_IT}")
    own = shortened(" and ".join(sorted(set(flavours) - {_PYTHON})) or f"{_PYTHON} alone", _MOST_NAMES)
    raise SourceError(f"{folder} is an MLflow model of the flavour {own}, which is not read; {_INSTEAD}")


def _first_place(folder: str, flavours: Flavours) -> str:
    """Find the first file that is there; empty where no flavour that is read names one."""
    for flavour, places in _FLAVOURS.items():
        settings = flavours.get(flavour, {})
        for setting, names in places:
            if not (place := settings.get(setting, "")):
                continue
            found = next((path for name in names if (path := Path(folder) / place / name).exists()), None)
            if found is None:
                raise SourceError(f"{folder}/{_INDEX} names {place}, which holds no model; fetch the whole folder")
            if not found.resolve().is_relative_to(Path(folder).resolve()):
                raise SourceError(f"{found} is outside of the folder of MLflow that names it", code="E_SOURCE_TRUST")
            if (found / _INDEX).is_file():
                raise SourceError(f"{folder}/{_INDEX} names a folder of MLflow, {place}, in place of a model")
            return str(found)
    return ""


def _flavours(index: Path) -> Flavours:
    """Read the settings of each flavour that are one line: MLflow writes YAML in blocks, indented by two."""
    with index.open("rb") as file:
        content = file.read(_MOST_INDEX_BYTES + 1)
    if len(content) > _MOST_INDEX_BYTES:
        raise SourceError(f"{index} is too large for an index of MLflow; {_NAME_IT}")
    found: Flavours = {}
    inside, flavour = False, ""
    for line in content.decode(errors="replace").splitlines():
        bare = line.lstrip(" ")
        indent, (name, colon, value) = len(line) - len(bare), bare.partition(":")
        if not bare or bare.startswith(("#", "-")) or not colon:
            continue
        if indent == 0:
            inside = name == "flavors"
        elif inside and indent == 2:
            flavour = name
            found[flavour] = {}
        elif inside and indent == 4 and flavour:
            found[flavour][name] = value.strip().strip("'\"")
    return found


KIND = MlflowFolder
