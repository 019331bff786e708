"""The float64 reference of each kind agrees with its definition, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.operations.kinds import Convolution, Embedding, Gemm, Gru, Lstm, Rnn
from fairlap.models.operations.operation import Operation
from fairlap.models.reference import answers_in_float32, reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from scipy.signal import correlate  # type: ignore[import-untyped,unused-ignore]

Array = npt.NDArray[Any]


def work_of(operation: Operation) -> Workload:
    found = find(operation.name)
    weights, inputs = draw_weights(found.spec, 1), draw_inputs(found.spec, 1, 2)
    return Workload(found.spec, found.package, 1, "infer", "fp32", weights, inputs)


def answered(operation: Operation) -> tuple[Array, dict[str, Array], Array]:
    """Return the answer, the weights and the input, all in float64 but for whole numbers."""
    work = work_of(operation)
    given = next(iter(work.inputs.values()))
    weights = {name: array.astype(np.float64) for name, array in work.weights.items()}
    return reference_answers(work)[operation.output.name], weights, given.astype(np.float64)


def sigmoid(values: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-values))
    return found


@pytest.mark.parametrize(("at", "bt"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_product_multiplies_the_matrices_as_they_are_stored(at: bool, bt: bool) -> None:
    answer, weights, b = answered(Gemm(5, 3, 7, at, bt))
    a = weights["a"]
    expected = np.einsum(f"{'ki' if at else 'ik'},{'jk' if bt else 'kj'}->ij", a, b)
    np.testing.assert_allclose(answer, expected, rtol=1e-12)


def test_a_convolution_is_a_correlation_at_every_stride() -> None:
    answer, weights, images = answered(Convolution(2, 3, 9, 7, 4, 3, 2, 1, 0, 2, 1))
    padded = np.pad(images, ((0, 0), (0, 0), (0, 0), (1, 1)))
    expected = [
        [correlate(image, kernel, mode="valid", method="direct")[0, ::1, ::2] for kernel in weights["filters"]]
        for image in padded
    ]
    np.testing.assert_allclose(answer, expected, rtol=1e-12, atol=1e-12)


def test_an_rnn_is_the_relu_of_both_products() -> None:
    answer, weights, sequence = answered(Rnn(5, 2, 4))
    state = np.zeros((2, 5))
    for step, given in enumerate(sequence):
        state = np.maximum(given @ weights["layer.weight_ih_l0"].T + state @ weights["layer.weight_hh_l0"].T, 0)
        np.testing.assert_allclose(answer[step], state, rtol=1e-12, atol=1e-12)


def test_an_lstm_keeps_a_cell_behind_three_gates() -> None:
    answer, weights, sequence = answered(Lstm(5, 2, 4))
    ingoing, state_weights = (weights[f"layer.weight_{which}_l0"].reshape(4, 5, 5) for which in ("ih", "hh"))
    state = cell = np.zeros((2, 5))
    for step, given in enumerate(sequence):
        taken, kept, new, shown = (given @ ingoing[gate].T + state @ state_weights[gate].T for gate in range(4))
        cell = sigmoid(kept) * cell + sigmoid(taken) * np.tanh(new)
        state = sigmoid(shown) * np.tanh(cell)
        np.testing.assert_allclose(answer[step], state, rtol=1e-12, atol=1e-12)


def test_a_gru_resets_the_product_of_the_state() -> None:
    answer, weights, sequence = answered(Gru(5, 2, 4))
    ingoing, state_weights = (weights[f"layer.weight_{which}_l0"].reshape(3, 5, 5) for which in ("ih", "hh"))
    state = np.zeros((2, 5))
    for step, given in enumerate(sequence):
        reset = sigmoid(given @ ingoing[0].T + state @ state_weights[0].T)
        update = sigmoid(given @ ingoing[1].T + state @ state_weights[1].T)
        new = np.tanh(given @ ingoing[2].T + reset * (state @ state_weights[2].T))
        state = (1 - update) * new + update * state
        np.testing.assert_allclose(answer[step], state, rtol=1e-12, atol=1e-12)


def test_a_lookup_finds_the_rows_of_its_numbers() -> None:
    answer, weights, numbers = answered(Embedding(9, 4, 6))
    assert all(np.array_equal(row, weights["table"][int(number)]) for row, number in zip(answer, numbers, strict=True))


@pytest.mark.parametrize("kind", [Rnn, Lstm, Gru])
def test_states_stay_of_order_one_over_many_steps(kind: Any) -> None:
    states = answered(kind(32, 1, 700))[0]
    assert 0.01 < np.abs(states[-100:]).max() < 20


@pytest.mark.parametrize("operation", [Gemm(5, 3, 7), Convolution(2, 3, 9, 7, 4, 3, 2, 1, 0, 2, 1), Gru(5, 2, 4)])
def test_the_reference_stays_in_the_precision_that_it_is_given(operation: Operation) -> None:
    answer = answers_in_float32(work_of(operation))[operation.output.name]
    assert answer.dtype == np.float32
    assert answer.shape == operation.output.sized(1)
