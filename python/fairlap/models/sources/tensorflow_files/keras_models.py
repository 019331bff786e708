"""Keras models as sources, on the backend that a process has: load, call by names, and compute in float64."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import SourceError

_UNKNOWN_CLASS = re.compile("Could not locate (class|function)|Unknown (layer|object)")
_MADE_UP = re.compile(r"(?<=/)(jax_|nnx_)?variable(_\d+)?$")  # by Keras, after its class of the backend, numbered

CLASSES = "keras-classes.json"  # next to a file that was saved here


def use_backend(name: str) -> None:
    """Keras reads it once, when it is imported."""
    if "keras" in sys.modules and sys.modules["keras"].backend.backend() != name:
        raise SourceError(f"Keras runs on {sys.modules['keras'].backend.backend()} in this process, not on {name}")
    os.environ["KERAS_BACKEND"] = name


def load_keras(file: Path, *, trust: bool) -> Any:
    try:
        import keras
    except ModuleNotFoundError as error:
        raise SourceError(f"{file.name} is read with the package {error.name}; install it") from None
    try:
        if trust:
            _register_classes(file.with_name(CLASSES))
        return keras.saving.load_model(file, compile=False, safe_mode=not trust)
    except SourceError:
        raise
    except Exception as error:  # of zipfile, JSON, h5py and every layer
        if not trust and "safe_mode" in str(error):
            raise SourceError(
                f"{file.name} contains code (such as a Lambda layer), which was not read; add --trust if you trust it",
                code="E_SOURCE_TRUST",
            ) from None
        if _UNKNOWN_CLASS.search(str(error)):
            raise SourceError(
                f"{file.name} has layers of your own ({described(error)}), which Keras finds only where their code is "
                "imported: name module:function, a function in that code that loads and returns the model"
            ) from None
        raise SourceError(f"Keras cannot load {file.name}: {described(error)}") from None


def save_keras(model: Any, file: Path, modules: str) -> None:
    """Save a model that a user's code made, and where its own classes are, which Keras does not find.

    They are imported from the folder ``modules``.
    """
    try:
        model.save(file)
        with zipfile.ZipFile(file) as archive:
            places = sorted(set(_own_classes(json.loads(archive.read("config.json")))))
    except Exception as error:  # of any layer
        raise SourceError(f"Keras cannot save the model: {described(error)}") from None
    file.with_name(CLASSES).write_text(json.dumps({"modules": modules, "classes": places}))


def _own_classes(config: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(config, dict):
        module = config.get("module")
        if isinstance(module, str) and "class_name" in config and module.partition(".")[0] not in ("keras", "builtins"):
            yield module, config["class_name"], config.get("registered_name") or config["class_name"]
    if isinstance(config, dict | list):
        for each in config.values() if isinstance(config, dict) else config:
            yield from _own_classes(each)


def _register_classes(listed: Path) -> None:
    if not listed.is_file():
        return
    import keras

    found = json.loads(listed.read_text())
    sys.path.append(found["modules"])
    for module, name, registered in found["classes"]:
        own = getattr(import_module(module), name, None)
        if own is None:
            raise SourceError(f"{name} is not at the top of the module {module}, so Keras cannot load the model again")
        keras.saving.get_custom_objects()[registered] = own


class KerasModel:
    """Inputs, outputs and float32 weights by names. Other variables, such as seeds, stay as they are."""

    def __init__(self, model: Any) -> None:
        import keras

        self.model = model
        if not getattr(model, "inputs", None):
            raise SourceError(
                "the model does not say what its inputs are; make it with keras.Input, functional or Sequential"
            )
        self.inputs = {_unique(each.name, number): each for number, each in enumerate(model.inputs)}
        functional = getattr(model, "_functional", None) or model  # inside of a Sequential
        self.outputs = [_unique(each, number) for number, each in enumerate(_output_names(functional))]
        self._structure = functional.input
        self._tree = keras.tree
        self.variables: dict[str, Any] = {}
        for number, variable in enumerate(model.variables):
            if "float" in str(variable.dtype):
                name = _MADE_UP.sub("variable", variable.path)
                self.variables[name if name not in self.variables else f"{name}#{number}"] = variable

    def arguments(self, inputs: Mapping[str, Any]) -> Any:
        """In the nesting that the model takes."""
        return self._tree.pack_sequence_as(self._structure, [inputs[name] for name in self.inputs])

    def flattened(self, result: Any) -> tuple[Any, ...]:
        return tuple(self._tree.flatten(result))

    def returned(self, inputs: Mapping[str, Any], *, training: bool) -> Any:
        """Compute what the model returns, in its own nesting."""
        return self.model(self.arguments(inputs), training=training)

    def __call__(self, inputs: Mapping[str, Any], *, training: bool = False) -> tuple[Any, ...]:
        return self.flattened(self.returned(inputs, training=training))

    def assign(self, weights: Arrays) -> None:
        for name, variable in self.variables.items():
            variable.assign(np.asarray(weights[name]))

    def weights(self) -> dict[str, np.ndarray]:
        return {name: np.array(variable.value.numpy()) for name, variable in self.variables.items()}

    def rows_of(self, name: str) -> int | None:
        """How many rows the tables have that this input indexes, where an Embedding takes it as it is."""
        import keras

        tensor = self.inputs[name]
        tables = [each for each in self.model._flatten_layers() if isinstance(each, keras.layers.Embedding)]
        found = (
            int(table.input_dim)
            for table in tables
            if any(each is tensor for node in table._inbound_nodes for each in node.input_tensors)
        )
        return min(found, default=None)

    def require_float32(self) -> None:
        """Also of what layers compute in: half precision keeps its weights in float32."""
        others = {layer.compute_dtype for layer in self.model._flatten_layers()} - {"float32"}
        others |= {str(variable.dtype) for variable in self.variables.values()} - {"float32"}
        if others:
            raise SourceError(f"the model computes in {', '.join(sorted(others))}; only models in float32 are raced")


def in_double(file: Path, *, trust: bool) -> KerasModel:
    """Load the same model with every type float64.

    Its weights are the file's, which Keras converts when it reads them.
    """
    return loaded_in("float64", file, trust=trust)


def loaded_in(floats: str, file: Path, *, trust: bool) -> KerasModel:
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / "changed.keras"
        if (classes := file.with_name(CLASSES)).is_file():
            shutil.copyfile(classes, changed.with_name(CLASSES))
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
            for member in old.infolist():
                content = old.read(member)
                if member.filename == "config.json":
                    content = json.dumps(_with_floats(floats, json.loads(content))).encode()
                new.writestr(member.filename, content)
        return KerasModel(load_keras(changed, trust=trust))


def _with_floats(floats: str, config: Any) -> Any:
    """Every type of a model's configuration, which has them as text: of layers, inputs, casts and constants."""
    if isinstance(config, dict):
        return {key: _with_floats(floats, each) for key, each in config.items()}
    if isinstance(config, list):
        return [_with_floats(floats, each) for each in config]
    return floats if config == "float32" else config


def _output_names(model: Any) -> list[str]:
    names = list(model.output_names or [])
    return names if len(names) == len(model.outputs) else [each.name for each in model.outputs]


def _unique(name: str, number: int) -> str:
    return str(name) or f"{number}"
