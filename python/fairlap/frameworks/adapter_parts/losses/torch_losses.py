"""The losses of a model in PyTorch, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlap.models.spec import Loss


def loss_with(model: Any, kind: Loss, labels: Any) -> Callable[..., Any]:
    """With the labels bound, since all calls have the same ones."""
    of_batch = loss_of_batch(model, kind)

    def loss(*inputs: Any, **named: Any) -> Any:
        return of_batch(labels, *inputs, **named)

    return loss


def loss_of_batch(model: Any, kind: Loss) -> Callable[..., Any]:
    from torch.nn.functional import cross_entropy, ctc_loss, log_softmax, mse_loss

    def mean_square(_labels: Any, *inputs: Any, **named: Any) -> Any:
        return model(*inputs, **named)[0].float().square().mean()

    def square_error(labels: Any, *inputs: Any, **named: Any) -> Any:
        return mse_loss(model(*inputs, **named)[0].float(), labels)

    def mean_cross_entropy(labels: Any, *inputs: Any, **named: Any) -> Any:
        first = model(*inputs, **named)[0].float()
        rows = first if first.dim() == 2 else first.reshape(-1, first.shape[-1])  # a view is a further node
        return cross_entropy(rows, labels)

    def of_frames(labels: Any, *inputs: Any, **named: Any) -> Any:
        frames = log_softmax(model(*inputs, **named)[0].float(), -1).transpose(0, 1)
        counts = labels.new_full((frames.shape[1],), frames.shape[0])
        return ctc_loss(frames, labels, counts, (labels != 0).sum(1))

    if kind == "own":
        loss: Callable[..., Any] = model.own_loss
        return loss
    losses = {"mean_square": mean_square, "square_error": square_error, "cross_entropy": mean_cross_entropy}
    losses["ctc"] = of_frames
    return losses[kind]


def loss_and_gradients(bound: Callable[[], Any], trained: list[Any]) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    from torch.autograd import grad

    def step() -> tuple[Any, tuple[Any, ...]]:
        loss = bound()
        return loss, grad(loss, trained)

    return step
