"""``module:function``: Python code of the user that returns a model. What it returns decides how it is raced.

- a pair of a ``torch.nn.Module`` and its example inputs, a tuple or a mapping;
- a Keras model, alone or in a pair with its example inputs;
- a triple of a JAX function, its parameters and its example inputs, and a fourth for training; see ``jax_models``.

A function that takes sizes, ``def encoder(seq=128)``, is called with those of the request, and returns the model with
example inputs in them.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest, described
from fairlap.models.sources.callables.functions import require_from, search_first
from fairlap.models.sources.contract import Bundle, Learner, Opened, Route, SourceError, SourceKind
from fairlap.models.sources.given_data.script import array_of
from fairlap.models.sources.kinds.keras_file import implementation_of_keras, opened_keras
from fairlap.models.sources.learning.loss import kind_of_loss
from fairlap.models.sources.python_models.jax_models import implementation_of_jax, opened_jax
from fairlap.models.sources.python_models.jax_source import JaxSource
from fairlap.models.sources.python_models.torch_models import implementation_of_module, opened_module, require_no_sizes
from fairlap.models.sources.python_models.torch_source import TorchSource
from fairlap.models.sources.tensorflow_files.keras_models import KerasModel, save_keras
from fairlap.request.fields.data.stored_data import PREFIX_OF_DATA
from fairlap.request.fields.source import CHECKOUT_VARIABLE, Source, is_callable_name
from fairlap.suggestions import part_named

_KERAS_FILE = "returned.keras"
_JAX_MARK = "returned-jax"
_WANTED = (
    "return (torch.nn.Module, example inputs), a Keras model, or (JAX function, parameters, example inputs) instead"
)


class PythonFunction(SourceKind):
    title = "a Python function"
    no_gradients = ""
    names_dimensions = True

    @classmethod
    def recognises(cls, text: str) -> bool:
        return is_callable_name(text) and not text.startswith(PREFIX_OF_DATA)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return ()

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        returned, taken = returned_by(source), _sizes_for(source)
        source = msgspec.structs.replace(source, dims=())
        if (model := _torch_source(source, returned)) is not None:
            require_no_sizes(source, model.example)
            found = opened_module(model, source, folder)
        elif (function := _jax_source(source, returned)) is not None:
            require_no_sizes(source, function.example)
            (folder / _JAX_MARK).touch()
            found = opened_jax(function, source, folder)
        elif (pair := _keras_model(returned)) is not None:
            found = _opened_keras(*pair, source, folder, sized=bool(taken))
        else:
            raise SourceError(f"{source.text} returned {_what(returned)}; {_flax_wanted(returned) or _WANTED}")
        return replace(found, dims=tuple(taken))

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Any:
        source = bundle.source
        if (folder / _KERAS_FILE).is_file():
            return implementation_of_keras(folder / _KERAS_FILE, folder, framework, source, trust=True)
        if (folder / _JAX_MARK).is_file():
            return implementation_of_jax(bundle, folder, framework, _again(source, _jax_source))
        return implementation_of_module(folder, framework, _again(source, _torch_source), source)

    @classmethod
    def learner(cls, source: Source, folder: Path) -> Learner:
        kind = kind_of_loss(source.loss)
        if (folder / _KERAS_FILE).is_file():
            from fairlap.models.sources.learning.keras_learner import learner_of_keras

            return learner_of_keras(folder / _KERAS_FILE, source, kind, trust=True)
        if (folder / _JAX_MARK).is_file():
            from fairlap.models.sources.learning.jax_learner import learner_of_jax

            return learner_of_jax(_again(source, _jax_source)(), source, kind)
        from fairlap.models.sources.learning.torch_learner import learner_of_module

        return learner_of_module(_again(source, _torch_source)(), source, kind)


def returned_by(source: Source) -> Any:
    """Call the user's function, which is found in the checkout or the current folder first, as ``python -m`` does."""
    module_name = source.path.partition(":")[0]
    os.environ["KERAS_BACKEND"] = "tensorflow"  # where a Keras model is opened
    checkout = os.environ.get(CHECKOUT_VARIABLE) or source.checkout
    sys.path.insert(0, source.folder)
    try:
        if checkout:
            search_first(checkout)
        import_module(module_name)
        if checkout:
            require_from(checkout, module_name)
        return _named_by(source)(**_sizes_for(source))
    except SourceError:
        raise
    except InvalidRequest as error:
        raise SourceError(str(error)) from None
    except (Exception, SystemExit) as error:
        raise SourceError(f"{source.text} raised {described(error)}") from error
    finally:
        sys.path.remove(source.folder)


def _named_by(source: Source) -> Any:
    """Find the function, whose module is imported."""
    module_name, _, path = source.path.partition(":")
    return part_named(import_module(module_name), path, module_name)


def _sizes_for(source: Source) -> dict[str, int]:
    """Choose the sizes of the request that the function takes; it decides all others."""
    asked = dict(source.dims)
    taken = _parameters_of(_named_by(source)) if asked else set()
    if (unknown := [name for name in asked if name not in taken]) and not source.among_others:
        raise SourceError(
            f"the example inputs decide the sizes of {source.text}, and it has no parameter {unknown[0]!r}: "
            f"change them there, or let the function take it: def {source.path.rpartition(':')[2]}({unknown[0]}=128)",
            code="E_SHAPES",
        )
    return {name: size for name, size in asked.items() if name in taken}


def _parameters_of(function: Any) -> set[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of what is written in another language
        return set()
    return {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}


def _again(source: Source, of: Callable[[Source, Any], Any]) -> Callable[[], Any]:
    """In the process of a contestant."""

    def load() -> Any:
        found = of(source, returned_by(source))
        if found is None:
            raise SourceError(f"{source.text} returned another kind of model than before")
        return found

    return load


def _torch_source(source: Source, returned: Any) -> TorchSource | None:
    torch = sys.modules.get("torch")
    model = returned[0] if isinstance(returned, tuple) and returned else returned
    if torch is None or not isinstance(model, torch.nn.Module) or _is_keras(model):
        return None
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise SourceError(
            f"{source.text} returned {_what(returned)}; return a pair of the module and its example inputs"
        )
    return TorchSource(model.eval(), named_inputs(model, returned[1]), Route("native"))


def named_inputs(model: Any, example: Any) -> dict[str, Any]:
    """By the names of the arguments of ``forward``."""
    import torch

    given = example if isinstance(example, Mapping | tuple | list) else (example,)
    if not isinstance(given, Mapping):
        parameters = inspect.signature(model.forward).parameters.values()
        places = [
            each.name
            for each in parameters
            if each.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ]
        if len(given) > len(places):
            raise SourceError(f"the model takes {len(places)} inputs, and the example has {len(given)}")
        given = dict(zip(places, given, strict=False))
    for name, each in given.items():
        if not isinstance(each, torch.Tensor):
            kind = type(each).__name__
            raise SourceError(f"the example input {name} must be a tensor (got {kind})", code="E_SOURCE_INPUTS")
    if given and not any(each.numel() for each in given.values()):  # one may, as a cache before a token
        shapes = ", ".join(f"{name} is {list(each.shape)}" for name, each in given.items())
        raise SourceError(f"the example inputs have no elements: {shapes}", code="E_SOURCE_INPUTS")
    return dict(given)


def _jax_source(source: Source, returned: Any) -> JaxSource | None:
    if not isinstance(returned, tuple) or len(returned) not in (3, 4) or _is_keras(returned[0]):
        return None
    if not all(map(callable, (returned[0], *returned[3:]))):
        return None
    return JaxSource.of(*returned)


def _keras_model(returned: Any) -> tuple[Any, Any] | None:
    """Find the model, and example inputs or None."""
    pair = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    return pair if _is_keras(pair[0]) else None


def _opened_keras(model: Any, example: Any, source: Source, folder: Path, *, sized: bool) -> Opened:
    """Open a model that is saved once, so that each contestant has the same weights on its own backend."""
    import keras

    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise SourceError(
            f"{source.text} chose Keras's backend {backend}, and Keras models are opened on tensorflow; "
            "leave KERAS_BACKEND to fairlap"
        )
    found = KerasModel(model)
    save_keras(model, folder / _KERAS_FILE, source.folder)
    arrays = None if example is None else _in_order(example, found)
    return opened_keras(folder / _KERAS_FILE, source, folder, trust=True, example=arrays, sized=sized)


def _in_order(example: Any, found: KerasModel) -> list[np.ndarray]:
    """Of the model's inputs. A saved model has other names for those without one."""
    import keras

    by_name = isinstance(example, Mapping) and set(example) == set(found.inputs)
    given = [example[name] for name in found.inputs] if by_name else keras.tree.flatten(example)
    if len(given) != len(found.inputs):
        raise SourceError(
            f"the model takes {len(found.inputs)} inputs, and the example has {len(given)}", code="E_SOURCE_INPUTS"
        )
    return [np.asarray(array_of(each)) for each in given]


def _is_keras(model: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and hasattr(keras, "Model") and isinstance(model, keras.Model)


def _flax_wanted(returned: Any) -> str:
    """Say how a module of flax is raced, which is a JAX function to fairlap; empty for anything else."""
    model = returned[0] if isinstance(returned, tuple) and returned else returned
    packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "flax" not in packages:
        return ""
    return (
        "return a flax.linen module as (module.apply, variables, inputs), and one of flax.nnx, after graph, state = "
        "nnx.split(module), as (lambda state, *x: nnx.merge(graph, state)(*x), state, inputs)"
    )


def _what(returned: Any) -> str:
    if isinstance(returned, tuple):
        return f"a tuple of {', '.join(type(each).__name__ for each in returned) or 'nothing'}"
    return f"a {type(returned).__name__}"


KIND = PythonFunction
