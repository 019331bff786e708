"""JAX functions as sources: ``(function, params, inputs)``, where ``params`` is any pytree.

A fourth, ``training``, is called instead of ``function`` in training, and returns ``(outputs, moved)``, where ``moved``
are the parts of ``params`` that it moves, under their names there.

``function(params, *inputs)`` is called where the inputs are a tuple or one array, ``function(params, **inputs)`` where
they are a mapping; each may be a pytree itself. What it returns is any pytree of arrays. Leaves have names: their place
in the pytree. Native in JAX; TensorFlow and LiteRT run what JAX's own converter, jax2tf, writes when the model is
opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from fairlap.engine.measurement import Notice
from fairlap.errors import cause_of, described
from fairlap.models.arrays import Arrays, all_widened
from fairlap.models.sources.contract import Bundle, Forward, Opened, Route, SourceError, known_dtype
from fairlap.models.sources.python_models.jax_source import JaxSource, Params, named_leaves
from fairlap.models.sources.sizes import fill_of, require_known_ranges
from fairlap.models.spec import LABELS, Tensor
from fairlap.request.fields.source import Source

IN_TENSORFLOW = "in-tensorflow"  # a folder with a SavedModel
_ROUTE = "from JAX by jax2tf"
_NO_CONVERSION = {
    "torch": "there is no conversion from JAX to PyTorch",
    "onnx": "there is no conversion from JAX to ONNX that its runtimes accept",
}

_NARROW = ("float32", "float16", "bfloat16")


def opened_jax(found: JaxSource, source: Source, folder: Path) -> Opened:
    import jax

    if not found.example:
        raise SourceError("the model has no inputs, so nothing could show that it computes", code="E_SOURCE_INPUTS")
    require_known_ranges(list(found.example), source)
    params = Params(found.params)
    weights = params.weights()

    def run(held: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        return found(params.with_weights(held), inputs)

    try:
        results = {name: np.asarray(each) for name, each in jax.jit(run)(weights, dict(found.example)).items()}
    except Exception as error:  # of JAX's tracing and of the function itself
        raise SourceError(f"JAX cannot compile {source.text}: {cause_of(error)}") from None
    if not results:
        raise SourceError("the function returns no arrays; return one, or a tuple, list or dict of them")
    forward, casts = _in_double(run, weights, found.example)
    how = "the JAX function in float64"
    if casts:
        how += f", but for what its code casts to {', '.join(casts)}"
    routes = {"jax": Route("native")}
    if not source.unconverted:
        converted = _converted(found, run, weights, folder / IN_TENSORFLOW, source)
        routes |= {"tensorflow": converted, "litert": _named_for_litert(converted)}
        routes |= {name: Route(why_not=reason) for name, reason in _NO_CONVERSION.items()}
    return Opened(
        inputs=tuple(_tensor(name, each, source) for name, each in found.example.items()),
        outputs=tuple(results),
        output_types={name: known_dtype(name, str(each.dtype)) for name, each in results.items()},
        weights=weights,
        forward=forward,
        in_float32=run,
        routes=routes,
        reference=how,
        example=found.example,
        notices=(Notice("W_NO_REFERENCE", how),) if casts else (),
    )


def implementation_of_jax(bundle: Bundle, folder: Path, framework: str, load: Callable[[], JaxSource]) -> Any:
    """``load`` gives the function again, in the process of a contestant."""
    if framework == "jax":
        return _Native(load(), bundle.source)
    return _InTensorFlow(folder / IN_TENSORFLOW, [tensor.name for tensor in bundle.spec.inputs])


class _Native:
    """Where there is no function for training, ``statistics``, which it would move, stay as they are."""

    takes_other_sizes = True

    def __init__(self, found: JaxSource, source: Source) -> None:
        self._found, self._params, self._source = found, Params(found.params), source

    def params(self, weights: Arrays) -> dict[str, Any]:
        return {name: np.asarray(weights[name]) for name in self._params.weights()}

    def forward(
        self, params: Mapping[str, Any], inputs: Mapping[str, Any], statistics: dict[str, Any] | None = None
    ) -> tuple[Any, ...]:
        return tuple(named_leaves(self._returned(params, inputs, statistics)).values())

    def own_loss(
        self,
        params: Mapping[str, Any],
        inputs: Mapping[str, Any],
        labels: Any,
        statistics: dict[str, Any] | None = None,
    ) -> Any:
        return self._own(self._returned(params, inputs, statistics), labels)

    def _returned(self, params: Mapping[str, Any], inputs: Mapping[str, Any], statistics: dict[str, Any] | None) -> Any:
        held = self._params.with_weights(params)
        if statistics is None or self._found.training is None:
            return self._found.returned(held, inputs)
        returned, moved = self._found.in_training(held, inputs)
        statistics |= moved
        return returned

    @cached_property
    def _own(self) -> Callable[[Any, Any], Any]:
        from fairlap.models.sources.learning.loss import own_loss

        found = own_loss(self._source)
        assert found is not None
        return found

    def canonical(self, held: Mapping[str, Any]) -> dict[str, Any]:
        return dict(held)


class _InTensorFlow:
    """The SavedModel that jax2tf wrote. Its variables are numbered, since TensorFlow's names cannot hold all others."""

    def __init__(self, folder: Path, inputs: list[str]) -> None:
        self._folder, self._inputs = folder, inputs

    def build(self, weights: Arrays, dtype: Any = None) -> Any:
        import tensorflow as tf

        loaded, names = tf.saved_model.load(str(self._folder)), self._inputs

        class Module(tf.Module):
            def __init__(self) -> None:
                super().__init__()
                self.loaded = loaded
                self.variables_by_name = dict(zip(sorted(weights), loaded.held, strict=True))

            def __call__(self, inputs: Mapping[str, Any], *, training: bool = False) -> tuple[Any, ...]:
                given = {name: inputs[name] for name in names}
                if not training or not hasattr(loaded, "run_training"):
                    return tuple(loaded.run(given))
                found = loaded.run_training(given)
                for place, moved in found["moved"].items():
                    loaded.held[int(place)].assign(moved)
                return tuple(found["outputs"])

            def own_loss(self, labels: Any, inputs: Mapping[str, Any], *, training: bool = False) -> Any:
                given = {**{name: inputs[name] for name in names}, **({} if labels is None else {LABELS: labels})}
                moves = training and hasattr(loaded, "run_loss_training")
                found = (loaded.run_loss_training if moves else loaded.run_loss)(given)
                for place, moved in found["moved"].items():
                    loaded.held[int(place)].assign(moved)
                return found["loss"]

        module = Module()
        for name, variable in module.variables_by_name.items():
            variable.assign(weights[name])
        return module

    def canonical(self, _name: str, array: Any) -> Any:
        return array


def _converted(found: JaxSource, run: Callable[..., Any], weights: Arrays, folder: Path, source: Source) -> Route:
    """Convert the function; where it learns, with the backward pass that JAX has for it, and as it is in training.

    What the training moves is returned by the place of its variable. A loss of the user's is converted with it.
    """
    began_s, example, params = time.monotonic(), found.example, Params(found.params)
    learns = bool(source.loss)
    moves = learns and found.training is not None

    def named(held: list[Any]) -> dict[str, Any]:
        return dict(zip(sorted(weights), held, strict=True))

    def in_training(held: list[Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        returned, moved = found.in_training(params.with_weights(named(held)), inputs)
        return {"outputs": list(named_leaves(returned).values()), "moved": _by_place(moved, weights)}

    try:
        import tensorflow as tf
        from jax.experimental import jax2tf

        function = jax2tf.convert(lambda held, inputs: list(run(named(held), inputs).values()), with_gradient=learns)
        module = tf.Module()
        module.held = [tf.Variable(weights[name]) for name in sorted(weights)]
        signature = [{name: tf.TensorSpec(each.shape, each.dtype, name=name) for name, each in example.items()}]
        module.run = tf.function(
            lambda inputs: function(module.held, inputs), autograph=False, input_signature=signature
        )
        if moves:
            trained = jax2tf.convert(in_training, with_gradient=True)
            module.run_training = tf.function(
                lambda inputs: trained(module.held, inputs), autograph=False, input_signature=signature
            )
        why_no_loss = _add_own_loss(module, found, weights, source) if learns else ""
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=learns)
        tf.saved_model.save(module, str(folder), options=options)
    except ModuleNotFoundError as error:
        return Route(why_not=f"the conversion needs the package {error.name}; install it")
    except Exception as error:  # of jax2tf and of TensorFlow
        return Route(why_not=f"jax2tf cannot convert it: {described(error)}")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Route(_ROUTE, "", time.monotonic() - began_s, size, no_gradients=why_no_loss, in_training=moves)


def _by_place(moved: Mapping[str, Any], weights: Arrays) -> dict[str, Any]:
    return {str(sorted(weights).index(name)): each for name, each in moved.items()}


def _add_own_loss(module: Any, found: JaxSource, weights: Arrays, source: Source) -> str:
    """Convert a loss of the user's with the function that it is of, and report why it cannot be."""
    from fairlap.models.sources.learning.loss import one_number, own_loss
    from fairlap.models.sources.learning.proof import given_labels

    own, params = own_loss(source), Params(found.params)
    if own is None:
        return ""
    import tensorflow as tf
    from jax.experimental import jax2tf

    def loss(held: list[Any], given: Mapping[str, Any], *, training: bool) -> dict[str, Any]:
        own_params = params.with_weights(dict(zip(sorted(weights), held, strict=True)))
        inputs = {name: given[name] for name in found.example}
        called = found.in_training if training else lambda *arguments: (found.returned(*arguments), {})
        returned, moved = called(own_params, inputs)
        return {"loss": one_number(own(returned, given.get(LABELS)), source), "moved": _by_place(moved, weights)}

    labels = given_labels(source)
    given = {**found.example, **({} if labels is None else {LABELS: labels})}
    signature = [{name: tf.TensorSpec(each.shape, each.dtype, name=name) for name, each in given.items()}]
    for name, training in (("run_loss", False), *((("run_loss_training", True),) if found.training else ())):
        converted = jax2tf.convert(partial(loss, training=training), with_gradient=True)
        try:
            function = tf.function(_with_held(converted, module), autograph=False, input_signature=signature)
            function.get_concrete_function()
        except Exception as error:  # of the user's function, of jax2tf and of TensorFlow
            return f"jax2tf cannot convert the loss {source.loss}: {described(error)}"
        setattr(module, name, function)
    return ""


def _with_held(converted: Callable[..., Any], module: Any) -> Callable[..., Any]:
    return lambda given: converted(module.held, given)


def _named_for_litert(route: Route) -> Route:
    if route.why_not:
        return route
    return Route(f"{_ROUTE} and TensorFlow's converter", "", route.conversion_s, route.conversion_bytes)


def _in_double(run: Callable[..., Any], weights: Arrays, example: Arrays) -> tuple[Forward, tuple[str, ...]]:
    """And the narrower types that the function's own code still casts to."""
    import jax

    def forward(weights: Arrays, inputs: Arrays) -> dict[str, np.ndarray]:
        with jax.enable_x64(True):
            held = {name: np.asarray(weights[name]) for name in weights}
            given = {name: np.asarray(inputs[name]) for name in example}
            return {name: np.asarray(each) for name, each in jax.jit(run)(held, given).items()}

    with jax.enable_x64(True):
        wide = [all_widened(arrays) for arrays in (weights, example)]
        casts = sorted(set(narrow_casts(jax.make_jaxpr(run)(*wide).jaxpr)))
    return forward, tuple(casts)


def narrow_casts(jaxpr: Any) -> Iterator[str]:
    """Find what float64 is turned into, in everything that is called, too."""
    for equation in jaxpr.eqns:
        if any(_kind(each) == "float64" for each in equation.invars):
            yield from (kind for each in equation.outvars if (kind := _kind(each)) in _NARROW)
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from narrow_casts(inner)


def _kind(value: Any) -> str:
    return str(getattr(value.aval, "dtype", ""))


def _tensor(name: str, example: np.ndarray, source: Source) -> Tensor:
    dtype = known_dtype(name, str(example.dtype))
    largest = int(example.max()) if example.size and example.dtype.kind in "iu" else None
    return Tensor(name, example.shape, fill_of(name, dtype, None, source, largest), dtype)
