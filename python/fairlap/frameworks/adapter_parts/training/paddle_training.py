"""Training steps in Paddle as its users write them: forward, backward, step of the optimizer, clear_grad."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, Canonical, copied, of_every_weight, trained_names
from fairlap.models.arrays import Arrays
from fairlap.models.training.reference import BUFFER, MEAN, SQUARE, STEP, WEIGHT
from fairlap.models.workload import Workload
from fairlap.request.fields.training import AdamW

_KEPT = {BUFFER: "velocity", MEAN: "moment1", SQUARE: "moment2"}


class PaddleTraining:
    """One model with its optimizer.

    ``loss`` takes the inputs and the labels; ``build`` makes a model of weights, in Paddle's layout, and ``canonical``
    leads back to the spec's.
    """

    def __init__(
        self,
        work: Workload,
        held: Mapping[str, Any],
        build: Callable[[Arrays], Any],
        canonical: Canonical,
        loss: Callable[[list[Any], Any], Any],
    ) -> None:
        assert work.training is not None
        self._work, self._held, self._build, self._canonical, self._loss = work, held, build, canonical, loss
        self._training = work.training
        self._trained = {name: held[name] for name in trained_names(work.spec)}
        self._initial = {name: copied(each.numpy()) for name, each in held.items()}
        self._powers: dict[str, float] = {}
        if isinstance(work.training.optimizer, AdamW):
            betas = work.training.optimizer.beta1, work.training.optimizer.beta2
            self._powers = {"beta1_pow_acc": betas[0], "beta2_pow_acc": betas[1]}
        self.reset()

    def step(self, inputs: list[Any], labels: Any) -> Any:
        """Of the batch: its loss before the update."""
        loss = self._loss(inputs, labels)
        loss.backward()
        self._optimizer.step()
        self._optimizer.clear_grad()
        if self._scheduler is not None:
            self._scheduler.step()
        self._steps += 1
        return loss

    def reset(self) -> None:
        for name, each in self._held.items():
            each.set_value(self._initial[name])
        self._start_optimizer(0)

    def _start_optimizer(self, step: int) -> None:
        import paddle

        optimizer, schedule = self._training.optimizer, self._training.schedule
        self._steps = step
        self._scheduler = (
            None
            if schedule.is_constant
            else paddle.optimizer.lr.LambdaDecay(optimizer.lr, schedule.at, last_epoch=step - 1)
        )
        rate = optimizer.lr if self._scheduler is None else self._scheduler
        trained = list(self._trained.values())
        if isinstance(optimizer, AdamW):
            self._optimizer: Any = paddle.optimizer.AdamW(
                rate,
                optimizer.beta1,
                optimizer.beta2,
                optimizer.epsilon,
                parameters=trained,
                weight_decay=optimizer.decay,
            )
        elif optimizer.momentum:
            self._optimizer = paddle.optimizer.Momentum(
                rate, optimizer.momentum, parameters=trained, weight_decay=optimizer.decay or None
            )
        else:
            self._optimizer = paddle.optimizer.SGD(rate, parameters=trained, weight_decay=optimizer.decay or None)

    def restore(self, state: Arrays) -> None:
        step = int(state[STEP])
        self._start_optimizer(step)
        kept = [kind for kind in _KEPT if any(key.startswith(kind) for key in state)]
        if kept:
            self._make_kept()
        for name, array in self._in_own_layout(WEIGHT, state).items():
            self._held[name].set_value(array)
        for kind in kept:
            arrays = self._in_own_layout(kind, state)
            for name, each in self._kept(_KEPT[kind]).items():
                each.set_value(arrays[name])
        for what, beta in self._powers.items():
            power = np.cumprod(np.full(step + 1, beta, np.float32))[-1:]  # as Paddle does, step by step
            for each in self._kept(what).values():
                each.set_value(power)

    def _make_kept(self) -> None:
        """Paddle makes what its optimizer keeps in the first step; this is one along gradients of 0."""
        sum((each * 0.0).sum() for each in self._trained.values()).backward()
        self._optimizer.step()
        self._optimizer.clear_grad()

    def _in_own_layout(self, kind: str, state: Arrays) -> dict[str, Any]:
        built: dict[str, Any] = self._build(of_every_weight(self._work, kind, state)).parameters_by_name
        return {name: each.numpy() for name, each in built.items()}

    def _kept(self, what: str) -> dict[str, Any]:
        """By weight; nothing before the first step. Paddle names it after the parameter, with a number at the end."""
        found = {key.rpartition("_")[0]: each for key, each in self._optimizer.state_dict().items()}
        named = {name: f"{each.name}_{what}" for name, each in self._trained.items()}
        return {name: found[key] for name, key in named.items() if key in found}

    def held_bytes(self) -> dict[str, int]:
        import paddle

        kept = [each for each in self._optimizer.state_dict().values() if isinstance(each, paddle.Tensor)]
        return {
            "weights": sum(each.numpy().nbytes for each in self._held.values()),
            "optimizer_state": sum(each.numpy().nbytes for each in kept),
        }

    def state(self) -> Answers:
        found = {WEIGHT + name: copied(self._canonical(name, each.numpy())) for name, each in self._held.items()}
        found[STEP] = copied(self._steps)
        for kind, what in _KEPT.items():
            for name, each in self._kept(what).items():
                found[kind + name] = copied(self._canonical(name, each.numpy()))
        return found

    def in_force(self) -> dict[str, str]:
        return {"optimizer": f"paddle.optimizer.{type(self._optimizer).__name__}, {self._training.text}"}
