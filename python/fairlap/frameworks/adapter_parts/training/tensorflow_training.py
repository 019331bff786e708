"""Training steps in TensorFlow: a gradient tape, and the optimizer's formulas on variables.

Keras' optimizers mean other formulas by the same names: its momentum takes the learning rate in, so that a schedule
acts later, and its Adam adds epsilon before the correction. So the updates are written here, SGD with the kernels that
mean its formula.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fairlap.frameworks.adapter_parts.answers import Answers, Canonical, copied, of_every_weight, trained_names
from fairlap.frameworks.adapter_parts.losses.tensorflow_losses import with_gradients
from fairlap.frameworks.adapter_parts.ranks.tensorflow_ranks import in_force, mean_over_ranks
from fairlap.models.arrays import Arrays
from fairlap.models.training.reference import BUFFER, MEAN, SQUARE, STEP, WEIGHT, kept_by
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Sgd


class TensorFlowTraining:
    """One model with its optimizer.

    ``build`` makes a model of weights, in its own layout; ``loss`` takes the inputs and labels by name. With a
    ``strategy`` its ranks take each step together. Then XLA, which cannot exchange anything on a CPU, compiles what is
    done before the exchange and what is done after it, where ``xla`` asks for it.
    """

    def __init__(
        self,
        work: Workload,
        model: Any,
        build: Callable[[Arrays, Any], Any],
        canonical: Canonical,
        loss: Callable[[Any], Any],
        strategy: Any = None,
        xla: bool = False,
    ) -> None:
        import tensorflow as tf

        assert work.training is not None
        self._work, self._model, self._build, self._canonical = work, model, build, canonical
        self._training, self._strategy = work.training, strategy
        variables = model.variables_by_name
        self._trained = [variables[name] for name in trained_names(work.spec)]
        self._dtype = self._trained[0].dtype
        self._initial = {name: tf.identity(each) for name, each in variables.items()}
        self._kept = {
            kind: [tf.Variable(tf.zeros_like(each), trainable=False) for each in self._trained]
            for kind in kept_by(work.training)
        }
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._put_back: Any = None

        self._differentiate: Callable[[Any], Any] = with_gradients(loss, self._trained)
        self._update: Callable[[list[Any]], None] = self._updated
        if strategy is not None and xla:
            compiled = partial(tf.function, autograph=False, jit_compile=True)
            self._differentiate, self._update = compiled(self._differentiate), compiled(self._update)

    def step(self, batch: dict[str, Any]) -> Any:
        """Of the batch, or of this rank's part of it: its loss before the update."""
        return self._step_of(batch) if self._strategy is None else self._strategy.run(self._step_of, (batch,))

    def _step_of(self, batch: dict[str, Any]) -> Any:
        loss, gradients = self._differentiate(batch)
        if self._strategy is not None:
            gradients = mean_over_ranks(gradients)
        self._update(gradients)
        return loss

    def _updated(self, gradients: list[Any]) -> None:
        rate = self._rate()
        if isinstance(self._training.optimizer, Sgd):
            self._descend(rate, gradients)
        else:
            self._adapt(rate, gradients)
        self._step.assign_add(1)

    def reset(self) -> None:
        import tensorflow as tf

        for name, each in self._model.variables_by_name.items():
            each.assign(self._initial[name])
        for of_kind in self._kept.values():
            for each in of_kind:
                each.assign(tf.zeros_like(each))
        self._step.assign(0)

    def restore(self, state: Arrays) -> None:
        import tensorflow as tf

        held = self._model.variables_by_name
        for name, array in self._in_own_layout(WEIGHT, state).items():
            held[name].assign(tf.cast(array, held[name].dtype))
        names = trained_names(self._work.spec)
        for kind, of_kind in self._kept.items():
            arrays = self._in_own_layout(kind, state)
            for name, each in zip(names, of_kind, strict=True):
                each.assign(tf.cast(arrays[name], each.dtype))
        self._step.assign(int(state[STEP]))

    def hold(self) -> Callable[[], Any]:
        """Copy the state, to be put back by one graph.

        After separate assignments the first step took 1.5 times as long as the others, after these 1.1 times.
        """
        import tensorflow as tf

        held = self._held
        if self._put_back is None:

            def put_back(values: list[Any]) -> None:
                for each, value in zip(held, values, strict=True):
                    each.assign(value)

            self._put_back = tf.function(put_back, autograph=False)
        return partial(self._put_back, [tf.identity(each) for each in held])

    @property
    def _held(self) -> list[Any]:
        kept = [each for of_kind in self._kept.values() for each in of_kind]
        return [*self._model.variables_by_name.values(), *kept, self._step]

    def _in_own_layout(self, kind: str, state: Arrays) -> dict[str, Any]:
        import tensorflow as tf

        of_kind = of_every_weight(self._work, kind, state)
        found: dict[str, Any] = self._build(of_kind, tf.float32).variables_by_name
        return found

    def held_bytes(self) -> dict[str, int]:
        kept = [each for of_kind in self._kept.values() for each in of_kind]
        return {
            "weights": sum(_bytes_of(each) for each in self._model.variables_by_name.values()),
            "optimizer_state": sum(_bytes_of(each) for each in [*kept, self._step]),
        }

    def state(self) -> Answers:
        names = trained_names(self._work.spec)
        held = self._model.variables_by_name
        found = {
            WEIGHT + weight.name: copied(self._canonical(weight.name, held[weight.name].numpy()))
            for weight in self._work.spec.weights
        }
        found[STEP] = copied(self._step.numpy())
        for kind, of_kind in self._kept.items():
            pairs = zip(names, of_kind, strict=True)
            found |= {kind + name: copied(self._canonical(name, each.numpy())) for name, each in pairs}
        return found

    def in_force(self) -> dict[str, str]:
        found = {"optimizer": f"{self._training.text} by fairlap, on TensorFlow's variables"}
        return found if self._strategy is None else {**found, **in_force(self._strategy)}

    def _rate(self) -> Any:
        import tensorflow as tf

        schedule, rate = self._training.schedule, self._training.optimizer.lr
        if schedule.is_constant:
            return tf.constant(rate, self._dtype)
        return tf.cast(rate * schedule.at_traced(tf.cast(self._step, tf.float32), tf), self._dtype)

    def _descend(self, rate: Any, gradients: list[Any]) -> None:
        """Update the weights by TensorFlow's own kernels, which go through the memory once.

        Written out, a step of ``mlp`` at batch 8 took 1.6 times as long.
        """
        import tensorflow as tf

        optimizer = self._training.optimizer
        assert isinstance(optimizer, Sgd)
        for place, (weight, gradient) in enumerate(zip(self._trained, gradients, strict=True)):
            if optimizer.decay:
                gradient = gradient + optimizer.decay * weight
            if optimizer.momentum:
                tf.raw_ops.ResourceApplyMomentum(
                    var=weight.handle,
                    accum=self._kept[BUFFER][place].handle,
                    lr=rate,
                    grad=gradient,
                    momentum=optimizer.momentum,
                )
            else:
                tf.raw_ops.ResourceApplyGradientDescent(var=weight.handle, alpha=rate, delta=gradient)

    def _adapt(self, rate: Any, gradients: list[Any]) -> None:
        import tensorflow as tf

        optimizer = self._training.optimizer
        assert not isinstance(optimizer, Sgd)
        beta1, beta2 = optimizer.beta1, optimizer.beta2
        steps = tf.cast(self._step + 1, tf.float64)  # in float32, 1 - 0.999 ** 1 is off by 1e-5
        share1, share2 = (
            tf.cast(1.0 - tf.pow(tf.constant(beta, tf.float64), steps), self._dtype) for beta in (beta1, beta2)
        )
        for place, (weight, gradient) in enumerate(zip(self._trained, gradients, strict=True)):
            mean, square = self._kept[MEAN][place], self._kept[SQUARE][place]
            mean_now = mean.assign(beta1 * mean + (1 - beta1) * gradient)
            square_now = square.assign(beta2 * square + (1 - beta2) * tf.square(gradient))
            moved = (mean_now / share1) / (tf.sqrt(square_now / share2) + optimizer.epsilon)
            weight.assign_sub(rate * (optimizer.decay * weight + moved))


def _bytes_of(variable: Any) -> int:
    size: int = variable.shape.num_elements() * variable.dtype.size
    return size
