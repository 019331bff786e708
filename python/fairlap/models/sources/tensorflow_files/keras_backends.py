"""A Keras file on each of Keras's backends, as a built-in model's module for that framework."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, load_keras, loaded_in, use_backend
from fairlap.request.fields.source import Source
from fairlap.request.work import Precision

_FLOATS: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}


class _OnBackend:
    """The file as Keras loads it on one of its backends, in the type that a precision holds.

    A ``source`` with a loss is trained, for which adapters ask for the model as it is in training.
    """

    backend: ClassVar[str]
    distinguishes_training = True
    takes_other_sizes = True

    def __init__(self, file: Path, source: Source, *, trust: bool) -> None:
        use_backend(self.backend)
        self._file, self._source, self._trust, self._floats = file, source, trust, "float32"

    def hold_in(self, precision: Precision) -> None:
        self._floats = _FLOATS.get(precision, "float32")

    def load(self) -> KerasModel:
        if self._floats == "float32":
            return KerasModel(load_keras(self._file, trust=self._trust))
        return loaded_in(self._floats, self._file, trust=self._trust)

    @cached_property
    def own_loss_of(self) -> Any:
        from fairlap.models.sources.learning.keras_loss import loss_in_keras

        return loss_in_keras(self._source) if self._source.loss else None


class KerasOnTensorFlow(_OnBackend):
    backend = "tensorflow"

    def build(self, weights: Arrays, dtype: Any = None) -> Any:
        import tensorflow as tf

        model = self.load()
        model.assign(weights)
        own = self.own_loss_of

        class Module(tf.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model.model
                self.variables_by_name = {name: each.value for name, each in model.variables.items()}

            def __call__(self, inputs: Mapping[str, Any], *, training: bool = False) -> tuple[Any, ...]:
                return model(inputs, training=training)

            def own_loss(self, labels: Any, inputs: Mapping[str, Any], *, training: bool = False) -> Any:
                return own(model.returned(inputs, training=training), labels)

        return Module()

    def canonical(self, _name: str, array: Any) -> Any:
        return array


class KerasOnJax(_OnBackend):
    backend = "jax"

    @cached_property
    def _model(self) -> KerasModel:
        return self.load()

    def params(self, weights: Arrays) -> dict[str, Any]:
        return {name: np.asarray(weights[name]) for name in self._model.variables}

    def forward(
        self, params: Mapping[str, Any], inputs: Mapping[str, Any], statistics: dict[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """Compute the outputs; in training, where ``statistics`` take the new values of what is not trained."""
        return self._model.flattened(self._returned(params, inputs, statistics))

    def own_loss(
        self,
        params: Mapping[str, Any],
        inputs: Mapping[str, Any],
        labels: Any,
        statistics: dict[str, Any] | None = None,
    ) -> Any:
        return self.own_loss_of(self._returned(params, inputs, statistics), labels)

    def _returned(self, params: Mapping[str, Any], inputs: Mapping[str, Any], statistics: dict[str, Any] | None) -> Any:
        names = {id(variable): name for name, variable in self._model.variables.items()}
        model = self._model.model
        trained, fixed = (
            [params[names[id(variable)]] if id(variable) in names else variable.value for variable in own]
            for own in (model.trainable_variables, model.non_trainable_variables)
        )
        result, moved = model.stateless_call(
            trained, fixed, self._model.arguments(inputs), training=statistics is not None
        )
        if statistics is not None:
            pairs = zip(model.non_trainable_variables, moved, strict=True)
            statistics |= {names[id(variable)]: each for variable, each in pairs if id(variable) in names}
        return result

    def canonical(self, held: Mapping[str, Any]) -> dict[str, Any]:
        return dict(held)


class KerasOnTorch(_OnBackend):
    backend = "torch"

    def build(self, weights: Arrays) -> Any:
        import torch

        model = self.load()
        model.assign(weights)
        names, own = list(model.inputs), self.own_loss_of

        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model.model

            def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
                return {name: variable.value.detach() for name, variable in model.variables.items()}

            def named_parameters(self, *_: Any, **__: Any) -> Iterator[tuple[str, Any]]:
                return ((name, variable.value) for name, variable in model.variables.items())

            def returned(self, *arguments: Any, **named: Any) -> Any:
                given = {**dict(zip(names, arguments, strict=False)), **named}
                return model.returned(given, training=self.training)

            def forward(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
                return model.flattened(self.returned(*arguments, **named))

            def own_loss(self, labels: Any, *arguments: Any, **named: Any) -> Any:
                return own(self.returned(*arguments, **named), labels)

        if all(name.isidentifier() for name in names):  # the adapter then hands them over by place, which is quicker
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = [inspect.Parameter(name, kind) for name in ("self", *names)]
            Module.forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return Module().eval()


BACKENDS = {"tensorflow": KerasOnTensorFlow, "jax": KerasOnJax, "torch": KerasOnTorch}
