"""Gradients of a JAX function by ``jax.value_and_grad``, in float64 under ``jax.enable_x64`` or in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Learner, SourceError
from fairlap.models.sources.learning.loss import NO_GRADIENTS, one_number, own_loss
from fairlap.models.sources.python_models.jax_models import narrow_casts
from fairlap.models.sources.python_models.jax_source import JaxSource, Params
from fairlap.models.spec import Loss
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.source import Source

_AVERAGES = "batch_stats"  # where flax keeps those of batch normalisation


def learner_of_jax(found: JaxSource, source: Source, kind: Loss) -> Learner:
    """Train every float leaf of the parameters that the loss depends on: ``stop_gradient`` freezes one.

    What the function for training moves is not trained.
    """
    names = list(Params(found.params).weights())
    averages = [name for name in names if _AVERAGES in name.split(".")]
    trained = tuple(name for name in names if name not in averages and name not in found.moved)
    why = ""
    if still := [name for name in averages if name not in found.moved]:
        why = (
            f"{still[0]} is an average of batch normalisation, which a function of parameters does not move; return "
            "(function, parameters, inputs, training), where training returns (outputs, what it moves)"
        )
    slopes = _SlopesOfJax(found, source, kind, trained)
    how = "jax.value_and_grad in float64"
    return Learner(trained, slopes, slopes.outputs, how, why, unused_are_constants=True, cut_off_by="stop_gradient")


class _SlopesOfJax:
    """Two programs take turns, so that code whose numbers were drawn when it was traced gives itself away."""

    def __init__(self, found: JaxSource, source: Source, kind: Loss, trained: tuple[str, ...]) -> None:
        self._found, self._trained = found, trained
        self._loss = _loss_of(found, source, kind)
        self._programs: dict[bool, list[Any]] = {}
        self._checked: set[bool] = set()

    def __call__(self, weights: Arrays, batch: Batch, training: bool) -> Slopes:
        import jax

        moves = training and self._found.training is not None
        wide = any(array.dtype == np.float64 for array in weights.values())
        learnt = {name: np.asarray(weights[name]) for name in self._trained}
        fixed = {name: np.asarray(array) for name, array in weights.items() if name not in learnt}
        inputs = {name: np.asarray(batch.inputs[name]) for name in self._found.example}
        labels = None if batch.labels is None else np.asarray(batch.labels)
        if wide and labels is not None and labels.dtype.kind == "f":
            labels = labels.astype(np.float64)
        with jax.enable_x64(wide):
            programs = self._programs_that(moves=moves)
            if wide and moves not in self._checked:
                _require_no_casts(programs[0], learnt, fixed, inputs, labels)
                self._checked.add(moves)
            program = programs[0]
            programs.reverse()
            (loss, moved), gradients = program(learnt, fixed, inputs, labels)
            now = {name: np.asarray(each) for name, each in moved.items()}
            return Slopes(float(loss), {name: np.asarray(each) for name, each in gradients.items()}, {**fixed, **now})

    def _programs_that(self, *, moves: bool) -> list[Any]:
        import jax

        if moves not in self._programs:

            def loss(learnt: Any, fixed: Any, inputs: Any, labels: Any) -> Any:
                return self._loss({**fixed, **learnt}, inputs, labels, moves=moves)

            self._programs[moves] = [jax.jit(jax.value_and_grad(loss, has_aux=True)) for _ in range(2)]
        return self._programs[moves]

    def outputs(self, weights: Arrays, inputs: Arrays) -> dict[str, Any]:
        import jax

        with jax.enable_x64(True):
            given = {name: np.asarray(inputs[name]) for name in self._found.example}
            found = self._forward({name: np.asarray(array) for name, array in weights.items()}, given)
            return {name: np.asarray(each) for name, each in found.items()}

    @cached_property
    def _forward(self) -> Any:
        import jax

        found, params = self._found, Params(self._found.params)
        return jax.jit(lambda weights, inputs: found(params.with_weights(weights), inputs))


def _require_no_casts(program: Any, *given: Any) -> None:
    import jax

    if casts := sorted(set(narrow_casts(jax.make_jaxpr(program)(*given).jaxpr))):
        raise SourceError(
            f"its code casts float64 to {', '.join(casts)}, so nothing shows that gradients are right; cast to the "
            "type of an input or a parameter instead, as in x.astype(kernel.dtype)",
            code=NO_GRADIENTS,
        )


def _loss_of(found: JaxSource, source: Source, kind: Loss) -> Callable[..., Any]:
    """Compute the loss, one with a name by its formula, and what the model moves."""
    import jax
    from jax import numpy as jnp

    params, own = Params(found.params), own_loss(source)

    def loss(weights: Mapping[str, Any], inputs: Mapping[str, Any], labels: Any, *, moves: bool) -> Any:
        held = params.with_weights(weights)
        returned, moved = found.in_training(held, inputs) if moves else (found.returned(held, inputs), {})
        if own is not None:
            return one_number(own(returned, labels), source), moved
        first = jax.tree.leaves(returned)[0]
        if kind == "square_error":
            return jnp.mean(jnp.square(first - labels.astype(first.dtype))), moved
        shares = first - jax.nn.logsumexp(first, axis=-1, keepdims=True)
        return -jnp.mean(jnp.take_along_axis(shares, labels[..., None], axis=-1)), moved

    return loss
