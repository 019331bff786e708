"""Gradients of a JAX function by ``jax.value_and_grad``, in float64 under ``jax.enable_x64`` or in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.learning.learner import NO_GRADIENTS, Learner, one_number, own_loss
from fairlap.models.sources.python_models.jax_models import JaxSource, Params, narrow_casts
from fairlap.models.spec import Loss
from fairlap.models.training.reference import Batch, Slopes
from fairlap.request.fields.source import Source

_AVERAGES = "batch_stats"  # where flax keeps those of batch normalisation


def learner_of_jax(found: JaxSource, source: Source, kind: Loss) -> Learner:
    """Train every float leaf of the parameters that the loss depends on: ``stop_gradient`` freezes one."""
    names = list(Params(found.params).weights())
    trained = tuple(name for name in names if _AVERAGES not in name.split("."))
    why = ""
    if len(trained) < len(names):
        why = f"{_AVERAGES} are averages of batch normalisation, which a function of parameters does not move"
    slopes = _SlopesOfJax(found, source, kind, trained)
    how = "jax.value_and_grad in float64"
    return Learner(trained, slopes, how, why, unused_are_constants=True, cut_off_by="stop_gradient")


class _SlopesOfJax:
    """Two programs take turns, so that code whose numbers were drawn when it was traced gives itself away."""

    def __init__(self, found: JaxSource, source: Source, kind: Loss, trained: tuple[str, ...]) -> None:
        import jax

        self._found, self._trained = found, trained
        self._programs = [jax.jit(jax.value_and_grad(_loss_of(found, source, kind))) for _ in range(2)]
        self._checked = False

    def __call__(self, weights: Arrays, batch: Batch, training: bool) -> Slopes:
        import jax

        wide = any(array.dtype == np.float64 for array in weights.values())
        learnt = {name: np.asarray(weights[name]) for name in self._trained}
        fixed = {name: np.asarray(array) for name, array in weights.items() if name not in learnt}
        inputs = {name: np.asarray(batch.inputs[name]) for name in self._found.example}
        labels = None if batch.labels is None else np.asarray(batch.labels)
        if wide and labels is not None and labels.dtype.kind == "f":
            labels = labels.astype(np.float64)
        with jax.enable_x64(wide):
            if wide:
                self._require_no_casts(learnt, fixed, inputs, labels)
            program = self._programs[0]
            self._programs.reverse()
            loss, gradients = program(learnt, fixed, inputs, labels)
            return Slopes(float(loss), {name: np.asarray(each) for name, each in gradients.items()}, fixed)

    def _require_no_casts(self, *given: Any) -> None:
        if self._checked:
            return
        import jax

        if casts := sorted(set(narrow_casts(jax.make_jaxpr(self._programs[0])(*given).jaxpr))):
            raise SourceError(
                f"its code casts float64 to {', '.join(casts)}, so nothing shows that gradients are right; cast to the "
                "type of an input or a parameter instead, as in x.astype(kernel.dtype)",
                code=NO_GRADIENTS,
            )
        self._checked = True


def _loss_of(found: JaxSource, source: Source, kind: Loss) -> Callable[..., Any]:
    """Compute a loss with a name by its formula."""
    import jax
    from jax import numpy as jnp

    params, own = Params(found.params), own_loss(source)

    def loss(learnt: Mapping[str, Any], fixed: Mapping[str, Any], inputs: Mapping[str, Any], labels: Any) -> Any:
        returned = found.returned(params.with_weights({**fixed, **learnt}), inputs)
        if own is not None:
            return one_number(own(returned, labels), source)
        first = jax.tree.leaves(returned)[0]
        if kind == "square_error":
            return jnp.mean(jnp.square(first - labels.astype(first.dtype)))
        shares = first - jax.nn.logsumexp(first, axis=-1, keepdims=True)
        return -jnp.mean(jnp.take_along_axis(shares, labels[..., None], axis=-1))

    return loss
