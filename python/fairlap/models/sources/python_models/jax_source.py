"""A JAX function with its parameters and example inputs: called by the names of leaves, in training too."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairlap.errors import cause_of
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.script import array_of

_PAIR = 2


@dataclass(frozen=True, eq=False)
class JaxSource:
    """``example`` are arrays by the names of the leaves; ``places`` is the pytree of the arguments.

    ``training``, where there is one, is called in training instead of ``function``, and returns what the model returns
    there and the parts of the parameters that it moves, such as the averages of batch normalisation.
    """

    function: Callable[..., Any]
    params: Any
    example: Mapping[str, np.ndarray]
    places: Any
    training: Callable[..., Any] | None = None

    @classmethod
    def of(
        cls, function: Callable[..., Any], params: Any, inputs: Any, training: Callable[..., Any] | None = None
    ) -> JaxSource:
        import jax

        if isinstance(inputs, Mapping):
            arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), dict(inputs))
        else:
            arguments = (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,), {})
        leaves, places = jax.tree.flatten(arguments)
        arrays = [np.asarray(jax.numpy.asarray(array_of(leaf))) for leaf in leaves]  # in JAX's own types
        example = dict(zip(_names_of(arguments, function), arrays, strict=True))
        return cls(function, params, example, places, training)

    def returned(self, params: Any, inputs: Mapping[str, Any]) -> Any:
        """Compute what the function returns, in its own nesting."""
        return self._called(self.function, params, inputs)

    def in_training(self, params: Any, inputs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Compute what the model returns in training, and the new arrays by the names of the parameters."""
        assert self.training is not None
        found = self._called(self.training, params, inputs)
        if not isinstance(found, tuple) or len(found) != _PAIR:
            kind = f"{len(found)} values" if isinstance(found, tuple) else f"a {type(found).__name__}"
            raise SourceError(f"the function for training returns {kind}; return (outputs, what it moves)")
        return found[0], named_leaves(found[1], "params")

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """Names of the parameters that the function for training moves; refuse what is none of them."""
        if self.training is None:
            return ()
        import jax

        params = Params(self.params)
        weights = params.weights()
        try:
            _, found = jax.eval_shape(
                lambda held, inputs: self.in_training(params.with_weights(held), inputs), weights, dict(self.example)
            )
        except SourceError:
            raise
        except Exception as error:  # of JAX's tracing and of the function itself
            raise SourceError(f"JAX cannot trace the function for training: {cause_of(error)}") from None
        if other := [name for name, leaf in found.items() if name not in weights or weights[name].shape != leaf.shape]:
            raise SourceError(
                f"the function for training moves {other[0]}, and the parameters have no such array of floats in that "
                "shape; return arrays under their names in the parameters"
            )
        return tuple(found)

    def _called(self, function: Callable[..., Any], params: Any, inputs: Mapping[str, Any]) -> Any:
        import jax

        places, named = jax.tree.unflatten(self.places, [inputs[name] for name in self.example])
        return function(params, *places, **named)

    def __call__(self, params: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the outputs, by name."""
        return named_leaves(self.returned(params, inputs), "output")


def named_leaves(tree: Any, only: str = "") -> dict[str, Any]:
    """Name the leaves by their places in the tree; ``only`` is the name of one that is the whole tree."""
    import jax

    found, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_text(path) or only: leaf for path, leaf in found}


class Params:
    """The float leaves of a pytree by name. Others, such as seeds, stay as they are."""

    def __init__(self, params: Any) -> None:
        import jax

        found, self._tree = jax.tree_util.tree_flatten_with_path(params)
        self._leaves = [(_text(path) or "params", leaf) for path, leaf in found]
        self._is_weight = [
            hasattr(leaf, "dtype") and jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating) for _, leaf in self._leaves
        ]

    def weights(self) -> dict[str, np.ndarray]:
        """float64 becomes float32, as in JAX itself."""
        found = {name: leaf for (name, leaf), mine in zip(self._leaves, self._is_weight, strict=True) if mine}
        others = {str(leaf.dtype) for leaf in found.values()} - {"float32", "float64"}
        if others:
            raise SourceError(f"the model has weights of {', '.join(sorted(others))}; only models in float32 are raced")
        return {name: np.asarray(leaf, dtype=np.float32) for name, leaf in found.items()}

    def with_weights(self, weights: Mapping[str, Any]) -> Any:
        import jax

        pairs = zip(self._leaves, self._is_weight, strict=True)
        return jax.tree.unflatten(self._tree, [weights[name] if mine else leaf for (name, leaf), mine in pairs])


def _names_of(arguments: tuple[tuple[Any, ...], dict[str, Any]], function: Callable[..., Any]) -> list[str]:
    """Name each leaf by the argument, and its place in the argument where that is a pytree.

    The parts are joined by what TensorFlow allows in the names of arguments.
    """
    import jax

    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        parameters = []
    by_place = [each.name for each in parameters if each.kind is not inspect.Parameter.VAR_POSITIONAL]
    names = []
    for path, _ in jax.tree_util.tree_flatten_with_path(arguments)[0]:
        first, rest = path[1], path[2:]
        if hasattr(first, "key"):
            argument = str(first.key)
        else:
            argument = by_place[first.idx] if first.idx < len(by_place) else f"input_{first.idx}"
        names.append(re.sub(r"\W", "_", f"{argument}_{_text(rest)}" if rest else argument))
    return names


def _text(path: tuple[Any, ...]) -> str:
    """Keys of mappings, places in sequences, names of attributes."""
    kinds = ("key", "idx", "name")
    return ".".join(next(str(getattr(step, kind)) for kind in kinds if hasattr(step, kind)) for step in path)
