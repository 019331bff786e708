"""Steps of training: what rounding explains is right, and each known mistake is found and named."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from fairlap.models.spec import Normal, Spec, Tensor, Weight
from fairlap.models.training.check import TrainingCheck
from fairlap.models.training.exercise import Exercise, as_trained, distances, trained, written
from fairlap.models.training.reference import Batch, Mistake, Slopes, State, state_named, steps_of
from fairlap.request.fields.training import AdamW, Optimizer, Schedule, Sgd, Training

SPEC = Spec(
    name="two layers",
    task="",
    inputs=(Tensor("x", ("batch", 5)),),
    outputs=(Tensor("logits", ("batch", 3)),),
    weights=(
        Weight("first", (8, 5), Normal(0.5)),
        Weight("moving", (8,), Normal(0.5), trained=False),
        Weight("second", (3, 8), Normal(0.5)),
    ),
    parameters=64,
    gmacs_per_item=None,
    published="",
    loss="cross_entropy",
    modes=("infer", "train"),
)
SGD = Training(Sgd(lr=0.1, momentum=0.9, decay=0.01))
ADAM = Training(AdamW(lr=0.01, decay=0.1), Schedule("cosine", warmup=2, steps=10))


def forward(weights: Any, inputs: Any, statistics: dict[str, Any] | None = None) -> dict[str, Any]:
    """With a mean that moves in training, as a normalisation has one."""
    hidden = inputs["x"] @ weights["first"].T
    if statistics is None:
        centred = hidden - weights["moving"]
    else:
        from fairlap.models.checks.differentiation import plain

        centred = hidden - hidden.mean(axis=0)
        statistics["moving"] = 0.9 * weights["moving"] + 0.1 * plain(hidden).mean(axis=0)
    return {"logits": np.maximum(centred, 0.0) @ weights["second"].T}


def exercise(training: Training) -> Exercise:
    rng = np.random.default_rng(3)
    weights = {weight.name: rng.normal(0, 0.5, weight.shape).astype(np.float32) for weight in SPEC.weights}
    batches = [
        Batch({"x": rng.normal(size=(16, 5)).astype(np.float32)}, rng.integers(0, 3, 16).astype(np.int32))
        for _ in range(2)
    ]
    return Exercise(SPEC, forward, training, State(weights), [batches[0], batches[1], batches[0]])


def in_float32(of: Exercise) -> dict[str, Any]:
    return of.taken(np.float32)


@pytest.mark.parametrize("training", [SGD, ADAM])
def test_float32_is_right_and_far_from_the_limit(training: Training) -> None:
    asked = exercise(training)
    found = as_trained(written(trained(asked)))
    assert max(distances(found, in_float32(asked)).values()) < 0.2


def with_optimizer(training: Training, **changes: Any) -> Training:
    import msgspec

    return Training(msgspec.structs.replace(training.optimizer, **changes), training.schedule)


MISTAKES: dict[str, tuple[Training, Callable[[Exercise], Exercise]]] = {
    "learning rate is 2 times": (SGD, lambda each: replace(each, training=with_optimizer(SGD, lr=0.2))),
    "1.01 times as long": (SGD, lambda each: replace(each, training=with_optimizer(SGD, lr=0.101))),
    "without momentum": (SGD, lambda each: replace(each, training=with_optimizer(SGD, momentum=0.0))),
    "does not decay": (SGD, lambda each: replace(each, training=with_optimizer(SGD, decay=0.0))),
    "adds up its gradients": (ADAM, lambda each: replace(each, mistake=Mistake(gradient_times=2.0))),
    "epsilon is 100000": (ADAM, lambda each: replace(each, training=with_optimizer(ADAM, epsilon=1e-3))),
    "added to the gradient": (
        ADAM,
        lambda each: replace(each, training=with_optimizer(ADAM, decay=0.0), mistake=Mistake(decay_in_gradient=0.1)),
    ),
    "does not follow the schedule": (ADAM, lambda each: replace(each, training=Training(ADAM.optimizer))),
    "repeats a batch": (SGD, lambda each: replace(each, batches=[each.batches[0]] * 3)),
    "skips a batch": (SGD, lambda each: replace(each, batches=[*each.batches[1:], each.batches[0]])),
    "one step too few": (SGD, lambda each: replace(each, batches=each.batches[:-1])),
    "as in inference": (
        SGD,
        lambda each: replace(each, forward=lambda weights, inputs, _statistics: forward(weights, inputs)),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_and_named(name: str) -> None:
    training, made = MISTAKES[name]
    asked = exercise(training)
    got = in_float32(made(asked))
    apart, why = TrainingCheck(asked).judged(got)
    assert max(apart.values()) > 5
    assert name in why


def with_an_array_of_rounding() -> Exercise:
    """Add to all scores alike, which changes nothing.

    Its gradient is what rounding leaves, and Adam makes whole steps of it. The bias of an attention's keys is such an
    array.
    """
    asked = exercise(ADAM)
    spec = replace(SPEC, weights=(*SPEC.weights, Weight("shift", (1,), Normal(0.5))))

    def shifted(weights: Any, inputs: Any, statistics: dict[str, Any] | None = None) -> dict[str, Any]:
        return {"logits": forward(weights, inputs, statistics)["logits"] + weights["shift"]}

    weights = {**asked.start.weights, "shift": np.full(1, 0.3, np.float32)}
    return replace(asked, spec=spec, forward=shifted, start=State(weights))


def test_a_mistake_is_named_whatever_rounding_alone_decides() -> None:
    asked = with_an_array_of_rounding()
    got = in_float32(replace(asked, training=with_optimizer(ADAM, decay=0.0)))
    apart, why = TrainingCheck(asked).judged(got)
    assert max(apart.values()) > 1
    assert "does not decay" in why


@pytest.mark.parametrize(("share", "name"), [(0.85, "it repeats a batch"), (0.5, "")])
def test_what_is_wrong_is_named_after_the_mistake_that_is_clearly_nearest(share: float, name: str) -> None:
    """As where a mistake makes training chaotic, so that it ends elsewhere in float32."""
    asked = exercise(SGD)
    check = TrainingCheck(asked)
    repeated = check.mistakes["it repeats a batch"]
    got = {key: share * repeated[key] + (1 - share) * array for key, array in check.found.expected.items()}
    apart, why = check.judged(got)
    assert max(apart.values()) > 5
    assert why == name


def at_a_kink() -> Exercise:
    """Put the first unit of the first item some roundings away from the kink of its ReLU."""
    asked = exercise(SGD)
    inputs = asked.batches[0].inputs["x"].copy()
    weights = asked.start.weights["first"][0].astype(np.float64)
    inputs[0, 1] = 0.0
    inputs[0, 1] = (5e-7 - inputs[0] @ weights) / weights[1]
    first = Batch({"x": inputs}, asked.batches[0].labels)

    def plain_forward(weights: Any, inputs: Any, _statistics: Any = None) -> dict[str, Any]:
        return {"logits": np.maximum(inputs["x"] @ weights["first"].T, 0.0) @ weights["second"].T}

    return replace(asked, forward=plain_forward, batches=[first])


def moved(asked: Exercise, seed: int, by: float) -> dict[str, Any]:
    """Where a contestant ends whose weights are rounded otherwise."""
    rng = np.random.default_rng(seed)
    weights = {
        name: array.astype(np.float64) * (1 + by * rng.choice([-1.0, 1.0], array.shape))
        for name, array in asked.start.weights.items()
    }
    weights["moving"] = asked.start.weights["moving"]
    return replace(asked, start=State(weights)).taken()


def test_a_contestant_may_take_the_other_side_of_a_kink() -> None:
    check = TrainingCheck(at_a_kink())
    ends = [moved(at_a_kink(), seed, 8 * 2**-24) for seed in range(10)]
    assert max(max(distances(check.found, end).values()) for end in ends) > 3
    assert all(max(check.judged(end)[0].values()) < 1 for end in ends)


def test_a_mistake_is_found_at_a_kink_too() -> None:
    asked = at_a_kink()
    doubled = replace(asked, training=with_optimizer(SGD, lr=0.2))
    for seed in range(10):
        apart, _ = TrainingCheck(asked).judged(moved(doubled, seed, 8 * 2**-24))
        assert max(apart.values()) > 5


def test_shuffled_labels_are_found() -> None:
    asked = exercise(SGD)
    shuffled = [Batch(batch.inputs, None if batch.labels is None else batch.labels[::-1]) for batch in asked.batches]
    assert max(distances(trained(asked), in_float32(replace(asked, batches=shuffled))).values()) > 1000


def test_no_training_is_named() -> None:
    asked = exercise(SGD)
    start = {name: np.asarray(array, np.float32) for name, array in asked.start.named().items()}
    assert TrainingCheck(asked).judged(start)[1] == "it does not train at all"


def test_what_is_missing_misshapen_or_not_finite_is_wrong() -> None:
    asked = exercise(SGD)
    found, got = trained(asked), in_float32(asked)
    for broken in ({"weight/first": np.full((8, 5), np.nan)}, {"weight/first": np.zeros(3)}):
        assert distances(found, {**got, **broken})["weight/first"] == float("inf")
    del got["buffer/first"]
    assert distances(found, got)["buffer/first"] == float("inf")


@pytest.mark.parametrize("training", [SGD, ADAM])
def test_steps_may_go_on_from_what_was_written(training: Training) -> None:
    asked = exercise(training)
    _, whole = steps_of(SPEC, forward, training, asked.start, asked.batches)
    _, first = steps_of(SPEC, forward, training, asked.start, asked.batches[:2])
    _, second = steps_of(SPEC, forward, training, state_named(first.named()), asked.batches[2:])
    assert all(np.array_equal(array, second.named()[name]) for name, array in whole.named().items())


def test_steps_on_halves_whose_gradients_are_averaged_are_those_on_the_whole() -> None:
    spec = replace(SPEC, weights=tuple(weight for weight in SPEC.weights if weight.trained))
    asked = exercise(SGD)
    start = State({weight.name: asked.start.weights[weight.name] for weight in spec.weights})
    meeting, given = Barrier(2), [Slopes(0.0, {}, {})] * 2

    def plain_forward(weights: Any, inputs: Any) -> dict[str, Any]:
        return {"logits": np.maximum(inputs["x"] @ weights["first"].T, 0.0) @ weights["second"].T}

    def half(number: int) -> State:
        def averaged(slopes: Slopes) -> Slopes:
            given[number] = slopes
            meeting.wait(120)
            mean = {name: (given[0].gradients[name] + given[1].gradients[name]) / 2 for name in slopes.gradients}
            meeting.wait(120)
            return replace(slopes, gradients=mean)

        rows = slice(8 * number, 8 * number + 8)
        parts = [Batch({"x": batch.inputs["x"][rows]}, batch.labels[rows]) for batch in asked.batches]  # type: ignore[index]
        return steps_of(spec, plain_forward, SGD, start, parts, exchanged=averaged)[1]

    with ThreadPoolExecutor(2) as threads:
        ends = list(threads.map(half, range(2)))
    _, whole = steps_of(spec, plain_forward, SGD, start, asked.batches)
    for end in ends:
        assert all(np.allclose(end.named()[name], array, rtol=1e-12) for name, array in whole.named().items())


@pytest.mark.parametrize("optimizer", [Sgd(0.1, 0.9, 0.01), AdamW(0.01, decay=0.1)])
def test_the_optimizers_are_those_of_pytorch(optimizer: Optimizer) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    asked = exercise(Training(optimizer))
    weights = {name: torch.tensor(array, dtype=torch.float64) for name, array in asked.start.weights.items()}
    trained_ones = [weights["first"].requires_grad_(), weights["second"].requires_grad_()]
    made = (
        torch.optim.SGD(trained_ones, lr=0.1, momentum=0.9, weight_decay=0.01)
        if isinstance(optimizer, Sgd)
        else torch.optim.AdamW(trained_ones, lr=0.01, weight_decay=0.1)
    )
    for batch in asked.batches:
        hidden = torch.tensor(batch.inputs["x"], dtype=torch.float64) @ weights["first"].T
        logits = torch.relu(hidden - hidden.mean(0)) @ weights["second"].T
        made.zero_grad()
        torch.nn.functional.cross_entropy(logits, torch.tensor(batch.labels).long()).backward()
        made.step()
    taken = asked.taken()
    for name in ("first", "second"):
        assert np.allclose(taken[f"weight/{name}"], weights[name].detach().numpy(), rtol=0, atol=1e-13)
