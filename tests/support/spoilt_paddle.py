"""Steps of training in Paddle with a mistake that its users may make.

    python tests/support/spoilt_paddle.py MISTAKE MODEL CONTESTANT FOLDER

takes the steps as steps_of_training.py does, after it has spoilt Paddle in this process.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import paddle
from steps_of_training import take


def _double_the_rate() -> None:
    paddle.optimizer.Momentum = _with_twice_the_rate(paddle.optimizer.Momentum)


def _with_twice_the_rate(optimizer: Callable[..., object]) -> Callable[..., object]:
    return lambda rate, *settings, **named: optimizer(2 * rate, *settings, **named)


def _look_ahead() -> None:
    paddle.optimizer.Momentum = functools.partial(paddle.optimizer.Momentum, use_nesterov=True)


def _keep_gradients() -> None:
    paddle.optimizer.Optimizer.clear_grad = lambda _optimizer: None


def _train_without_momentum() -> None:
    sgd = paddle.optimizer.SGD
    paddle.optimizer.Momentum = lambda rate, _momentum, **named: sgd(rate, **named)


def _add_decay_to_the_gradient() -> None:
    paddle.optimizer.AdamW = paddle.optimizer.Adam


def _keep_the_rate() -> None:
    paddle.optimizer.lr.LambdaDecay = lambda rate, *_, **__: paddle.optimizer.lr.LinearLR(rate, 1, start_factor=1.0)


def _forget_train() -> None:
    paddle.nn.Layer.train = lambda _layer: None


def _move_the_variance_of_the_batch() -> None:
    """As Paddle's own layer does."""
    from fairlap.bench_models.convolution.paddle_unit import BatchNorm2D

    BatchNorm2D.forward = paddle.nn.BatchNorm2D.forward  # type: ignore[method-assign]


SPOIL: dict[str, Callable[[], None]] = {
    "double-rate": _double_the_rate,
    "nesterov": _look_ahead,
    "kept-gradients": _keep_gradients,
    "no-momentum": _train_without_momentum,
    "coupled-decay": _add_decay_to_the_gradient,
    "no-schedule": _keep_the_rate,
    "as-in-inference": _forget_train,
    "variance-of-the-batch": _move_the_variance_of_the_batch,
}

if __name__ == "__main__":
    SPOIL[sys.argv[1]]()
    take(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
