"""Training steps in JAX with optax: one compiled function from the state and a batch to the next state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, copied, of_every_weight, trained_names
from fairlap.frameworks.adapter_parts.ranks.jax_ranks import RankMesh
from fairlap.frameworks.contract import Unsupported
from fairlap.models.arrays import Arrays
from fairlap.models.training.reference import BUFFER, MEAN, SQUARE, STEP, WEIGHT
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Sgd, Training

_KEPT = {"trace": BUFFER, "mu": MEAN, "nu": SQUARE}


class JaxTraining:
    """Training in JAX.

    ``loss`` takes the trained leaves, the others and a batch, and gives the loss and the others' new values. ``named``
    turns trained leaves into arrays by the spec's names; ``parted`` turns such arrays into trained leaves and the
    others. With a ``mesh`` the ranks of it take each step together, on batches that it joined.
    """

    def __init__(
        self,
        work: Workload,
        learnt: list[Any],
        fixed: list[Any],
        loss: Callable[..., Any],
        named: Callable[[list[Any], list[Any] | None], dict[str, Any]],
        parted: Callable[[Arrays], tuple[list[Any], list[Any]]],
        mesh: RankMesh | None = None,
    ) -> None:
        import jax

        try:
            import optax
        except ModuleNotFoundError:
            raise Unsupported("jax trains with optax, which is not installed: pip install optax") from None
        assert work.training is not None
        self._work, self._named, self._parted, self._mesh = work, named, parted, mesh
        self._optimizer = _optimizer(optax, work.training)
        # Copies: the step gives the memory of its arguments back to XLA.
        self._initial = [np.array(each) for each in learnt], [np.array(each) for each in fixed]
        slopes = jax.value_and_grad(loss, has_aux=True)

        def step(state: Any, batch: Any) -> Any:
            learnt, fixed, kept = state
            (found, fixed), gradients = slopes(learnt, fixed, batch)
            if mesh is not None:
                found, gradients = mesh.mean((found, gradients))
            updates, kept = self._optimizer.update(gradients, kept, learnt)
            return (optax.apply_updates(learnt, updates), fixed, kept), found

        self._state: Any = None
        self.jitted: Any = jax.jit(step if mesh is None else mesh.mapped(step), donate_argnums=0)
        self.reset()

    def lowered(self, batch: Any) -> Any:
        return self.jitted.lower(self._state, batch)

    def step(self, batch: Any) -> Any:
        """Of the batch: its loss before the update."""
        self._state, loss = self.jitted(self._state, batch)
        return loss

    def done(self, loss: Any) -> Any:
        """All results of one program are ready together, and looking through the state takes tens of microseconds."""
        return loss.block_until_ready()

    @property
    def weights(self) -> tuple[Any, Any]:
        """The trained leaves and the others."""
        learnt, fixed, _ = self._state
        return (learnt, fixed) if self._mesh is None else self._mesh.own((learnt, fixed))

    def reset(self) -> None:
        import jax
        import jax.numpy as jnp

        learnt, fixed = jax.tree.map(jnp.array, self._initial)
        self._hold(learnt, fixed, self._optimizer.init(learnt))

    def restore(self, state: Arrays) -> None:
        import jax
        import jax.numpy as jnp

        def as_held(arrays: Any, held: Any) -> Any:
            return jax.tree.map(lambda array, own: jnp.array(array, own.dtype), arrays, held)

        learnt, fixed = as_held(self._parted(of_every_weight(self._work, WEIGHT, state)), self._initial)
        kept = []
        for part in self._optimizer.init(learnt):
            found = {
                key: as_held(self._parted(of_every_weight(self._work, kind, state))[0], getattr(part, key))
                for key, kind in _KEPT.items()
                if key in part._fields
            }
            if "count" in part._fields:
                found["count"] = jnp.asarray(int(state[STEP]), part.count.dtype)
            kept.append(part._replace(**found))
        self._hold(learnt, fixed, tuple(kept))

    def _hold(self, *state: Any) -> None:
        self._state = state if self._mesh is None else self._mesh.copied(state)

    def held_bytes(self) -> dict[str, int]:
        import jax

        learnt, fixed, kept = self._state
        return {
            "weights": sum(each.nbytes for each in jax.tree.leaves((learnt, fixed))),
            "optimizer_state": sum(each.nbytes for each in jax.tree.leaves(kept)),
        }

    def state(self) -> Answers:
        learnt, fixed, kept = self._state
        trained = trained_names(self._work.spec)
        found = {WEIGHT + name: copied(array) for name, array in self._named(learnt, fixed).items()}
        counts = [part.count for part in kept if "count" in part._fields]
        found[STEP] = copied(counts[0] if counts else 0)
        for part in kept:
            for key, kind in _KEPT.items():
                if key in part._fields:
                    by_name = self._named(getattr(part, key), None)
                    found |= {kind + name: copied(array) for name, array in by_name.items() if name in trained}
        return found

    def in_force(self) -> dict[str, str]:
        import optax

        return {"optimizer": f"optax {optax.__version__}, {self._work.training.text if self._work.training else ''}"}


def _optimizer(optax: Any, training: Training) -> Any:
    """With the momentum before the learning rate, as in the specification."""
    import jax.numpy as jnp

    optimizer, schedule = training.optimizer, training.schedule

    def rate(step: Any) -> Any:
        return optimizer.lr * schedule.at_traced(step, jnp)

    learning_rate: Any = optimizer.lr if schedule.is_constant else rate
    if isinstance(optimizer, Sgd):
        decay = [optax.add_decayed_weights(optimizer.decay)] if optimizer.decay else []
        momentum = [optax.trace(optimizer.momentum)] if optimizer.momentum else []
        return optax.chain(*decay, *momentum, optax.scale_by_learning_rate(learning_rate))
    return optax.adamw(
        learning_rate, optimizer.beta1, optimizer.beta2, eps=optimizer.epsilon, weight_decay=optimizer.decay
    )
