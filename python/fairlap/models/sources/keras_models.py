"""Keras models as sources, on the backend that a process has: load, call by names, and compute in float64."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.errors import described
from fairlap.models.sources.contract import SourceError
from fairlap.models.workload import Arrays


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
        return keras.saving.load_model(file, compile=False, safe_mode=not trust)
    except Exception as error:  # of zipfile, JSON, h5py and every layer
        if not trust and "safe_mode" in str(error):
            raise SourceError(
                f"{file.name} contains code (such as a Lambda layer), which was not read; add --trust if you trust it",
                code="E_SOURCE_TRUST",
            ) from None
        raise SourceError(f"Keras cannot load {file.name}: {described(error)}") from None


class KerasModel:
    """Inputs, outputs and float32 weights by names. Other variables, such as seeds, stay as they are."""

    def __init__(self, model: Any) -> None:
        import keras

        self.model = model
        if not getattr(model, "inputs", None):
            raise SourceError("the model does not say what its inputs are; build it before you save it")
        self.inputs = {_unique(each.name, number): each for number, each in enumerate(model.inputs)}
        self.outputs = [_unique(each, number) for number, each in enumerate(_output_names(model))]
        self._structure = model.input
        self._tree = keras.tree
        self.variables: dict[str, Any] = {}
        for number, variable in enumerate(model.variables):
            if str(variable.dtype).startswith("float"):
                name = variable.path
                self.variables[name if name not in self.variables else f"{name}#{number}"] = variable

    def arguments(self, inputs: Mapping[str, Any]) -> Any:
        """In the nesting that the model takes."""
        return self._tree.pack_sequence_as(self._structure, [inputs[name] for name in self.inputs])

    def flattened(self, result: Any) -> tuple[Any, ...]:
        return tuple(self._tree.flatten(result))

    def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        return self.flattened(self.model(self.arguments(inputs), training=False))

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


def in_double(file: Path, folder: Path, *, trust: bool) -> KerasModel:
    """The same model with every type float64. Its weights are the file's, which Keras converts when it reads them."""
    double = folder / "double.keras"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(double, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename == "config.json":
                content = json.dumps(_widened(json.loads(content))).encode()
            new.writestr(member.filename, content)
    try:
        return KerasModel(load_keras(double, trust=trust))
    finally:
        double.unlink()


def _widened(config: Any) -> Any:
    """Every type of a model's configuration, which has them as text: of layers, inputs, casts and constants."""
    if isinstance(config, dict):
        return {key: _widened(each) for key, each in config.items()}
    if isinstance(config, list):
        return [_widened(each) for each in config]
    return "float64" if config == "float32" else config


def _output_names(model: Any) -> list[str]:
    names = list(model.output_names or [])
    return names if len(names) == len(model.outputs) else [each.name for each in model.outputs]


def _unique(name: str, number: int) -> str:
    return str(name) or f"{number}"


class KerasOnTensorFlow:
    def __init__(self, file: Path, *, trust: bool) -> None:
        use_backend("tensorflow")
        self._file, self._trust = file, trust

    def build(self, weights: Arrays, dtype: Any = None) -> Any:
        import tensorflow as tf

        model = KerasModel(load_keras(self._file, trust=self._trust))
        model.assign(weights)

        class Module(tf.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model.model
                self.variables_by_name = {name: each.value for name, each in model.variables.items()}

            def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
                return model(inputs)

        return Module()

    def canonical(self, _name: str, array: Any) -> Any:
        return array


class KerasOnJax:
    def __init__(self, file: Path, *, trust: bool) -> None:
        use_backend("jax")
        self._model = KerasModel(load_keras(file, trust=trust))

    def params(self, weights: Arrays) -> dict[str, Any]:
        return {name: np.asarray(weights[name]) for name in self._model.variables}

    def forward(self, params: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        named = {id(variable): params[name] for name, variable in self._model.variables.items()}
        model = self._model.model
        trained, fixed = (
            [named.get(id(variable), variable.value) for variable in own]
            for own in (model.trainable_variables, model.non_trainable_variables)
        )
        result, _ = model.stateless_call(trained, fixed, self._model.arguments(inputs), training=False)
        return self._model.flattened(result)

    def canonical(self, held: Mapping[str, Any]) -> dict[str, Any]:
        return dict(held)


class KerasOnTorch:
    def __init__(self, file: Path, *, trust: bool) -> None:
        use_backend("torch")
        self._file, self._trust = file, trust

    def build(self, weights: Arrays) -> Any:
        import torch

        model = KerasModel(load_keras(self._file, trust=self._trust))
        model.assign(weights)

        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model.model

            def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
                return {name: variable.value.detach() for name, variable in model.variables.items()}

            def forward(self, **inputs: Any) -> tuple[Any, ...]:
                return model(inputs)

        return Module().eval()


BACKENDS = {"tensorflow": KerasOnTensorFlow, "jax": KerasOnJax, "torch": KerasOnTorch}
