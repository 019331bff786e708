"""Training steps in PyTorch as its users write them: zero_grad, forward, backward, step of the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, copied, named_outputs, trained_names
from fairlap.frameworks.adapter_parts.ranks.torch_ranks import divided_as, own_bytes, whole
from fairlap.models.arrays import Arrays
from fairlap.models.training.reference import BUFFER, MEAN, SQUARE, STEP, WEIGHT
from fairlap.models.workload import Workload
from fairlap.request.fields.training import Sgd

_KEPT = {BUFFER: "momentum_buffer", MEAN: "exp_avg", SQUARE: "exp_avg_sq"}


def in_autocast(call: Callable[..., Any], device: str) -> Callable[..., Any]:
    """For forward and loss. PyTorch advises to leave backward and the optimizer outside."""
    import torch

    kind = device.partition(":")[0]

    def mixed(*given: Any) -> Any:
        with torch.autocast(kind, dtype=torch.bfloat16):
            return call(*given)

    return mixed


class TorchTraining:
    """One model with its optimizer. ``loss`` takes a batch and its labels."""

    def __init__(self, work: Workload, model: Any, loss: Callable[..., Any]) -> None:
        assert work.training is not None
        self._work, self._model, self._loss = work, model, loss
        self._training = work.training
        model.train()
        self._parameters = dict(model.named_parameters())
        self._initial = {name: each.detach().clone() for name, each in model.state_dict().items()}
        self.reset()

    def step(self, batch: tuple[Any, ...], labels: Any) -> Any:
        """Of the batch: its loss before the update."""
        self._optimizer.zero_grad()
        loss = self._loss(labels, *batch)
        loss.backward()
        self._optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()
        return loss

    def answering(self, forward: Callable[..., Any], batches: Sequence[tuple[Any, ...]]) -> Callable[[], list[Answers]]:
        """As users evaluate: in eval mode, without gradients, and back."""
        import torch

        def answer() -> list[Answers]:
            self._model.eval()
            try:
                with torch.inference_mode():
                    return [
                        named_outputs(self._work.spec, [each.float().cpu().numpy() for each in forward(*batch)])
                        for batch in batches
                    ]
            finally:
                self._model.train()

        return answer

    def reset(self) -> None:
        import torch

        with torch.no_grad():
            for name, each in self._model.state_dict().items():
                each.copy_(self._initial[name])
        trained = [self._parameters[name] for name in trained_names(self._work.spec)]
        optimizer = self._training.optimizer
        if isinstance(optimizer, Sgd):
            self._optimizer: Any = torch.optim.SGD(
                trained, lr=optimizer.lr, momentum=optimizer.momentum, weight_decay=optimizer.decay
            )
        else:
            self._optimizer = torch.optim.AdamW(
                trained,
                lr=optimizer.lr,
                betas=(optimizer.beta1, optimizer.beta2),
                eps=optimizer.epsilon,
                weight_decay=optimizer.decay,
            )
        schedule = self._training.schedule
        self._scheduler = (
            None if schedule.is_constant else torch.optim.lr_scheduler.LambdaLR(self._optimizer, schedule.at)
        )

    def restore(self, state: Arrays) -> None:
        import torch

        self.reset()
        step = int(state[STEP])

        def like(held: Any, array: Any) -> Any:
            return torch.empty_like(held).copy_(divided_as(held, torch.from_numpy(np.array(array))))  # in its layout

        with torch.no_grad():
            held = self._model.state_dict()
            for weight in self._work.spec.weights:
                held[weight.name].copy_(like(held[weight.name], state[WEIGHT + weight.name]))
            kept: dict[int, dict[str, Any]] = {}
            for place, name in enumerate(trained_names(self._work.spec)):
                found = {
                    key: like(self._parameters[name], state[kind + name])
                    for kind, key in _KEPT.items()
                    if kind + name in state
                }
                if found:
                    counted = {} if isinstance(self._training.optimizer, Sgd) else {"step": torch.tensor(float(step))}
                    kept[place] = {**counted, **found}
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": kept, "param_groups": groups})
        if self._scheduler is not None:
            self._scheduler = torch.optim.lr_scheduler.LambdaLR(
                self._optimizer, self._training.schedule.at, last_epoch=step - 1
            )

    def held_bytes(self) -> dict[str, int]:
        import torch

        kept = [each for of_one in self._optimizer.state.values() for each in of_one.values()]
        tensors = [each for each in kept if isinstance(each, torch.Tensor)]
        return {
            "weights": sum(own_bytes(each) for each in self._model.state_dict().values()),
            "optimizer_state": sum(own_bytes(each) for each in tensors),
        }

    def state(self) -> Answers:
        held = self._model.state_dict()
        weights = [weight.name for weight in self._work.spec.weights]
        found = {WEIGHT + name: copied(whole(held[name]).float().numpy(force=True)) for name in weights}
        found[STEP] = copied(self._steps_taken())
        for name in trained_names(self._work.spec):
            kept = self._optimizer.state.get(self._parameters[name], {})
            for kind, key in _KEPT.items():
                if kept.get(key) is not None:
                    found[kind + name] = copied(whole(kept[key]).float().numpy(force=True))
        return found

    def _steps_taken(self) -> float:
        """0 where neither the optimizer nor the schedule counts them, since nothing then depends on it."""
        counted = (float(kept["step"]) for kept in self._optimizer.state.values() if "step" in kept)
        return next(counted, 0.0 if self._scheduler is None else self._scheduler.last_epoch)

    def in_force(self) -> dict[str, str]:
        group = self._optimizer.param_groups[0]
        keys = ("lr", "momentum", "betas", "eps", "weight_decay", "foreach", "fused")
        settings = ", ".join(f"{key} {group[key]}" for key in keys if key in group)
        return {"optimizer": f"torch.optim.{type(self._optimizer).__name__} ({settings})"}
