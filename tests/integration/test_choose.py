"""``fairlap choose`` on scikit-learn's digits: models whose answers and costs are known by construction.

A narrow and a wide network of scikit-learn, a copy of the wide one, and one with the wide one's weights beside 8,192
hidden units that barely move its answers: it takes many times as long and answers no better.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairlap
import msgspec
import numpy as np
import pytest
from command_line import fairlap as run
from dense_network import Weights, save_network
from fairlap.results.choice.choice import Choice
from scipy.stats import binomtest  # type: ignore[import-untyped,unused-ignore]

pytestmark = pytest.mark.slow

BATCH = 29  # of 899 items: 31 calls
_NARROW, _WIDE, _DISTURBING = 16, 256, 8192


def disturbed(weights: Weights) -> Weights:
    drawn = np.random.default_rng(0)
    w1, b1, w2, b2 = weights
    beside = drawn.normal(0, 0.3, (len(w1), _DISTURBING)), drawn.normal(0, 2e-4, (_DISTURBING, w2.shape[1]))
    return np.hstack([w1, beside[0]]), np.concatenate([b1, np.zeros(_DISTURBING)]), np.vstack([w2, beside[1]]), b2


def answers(weights: Weights, pixels: np.ndarray) -> np.ndarray:
    w1, b1, w2, b2 = weights
    found: np.ndarray = (np.maximum(pixels @ w1 + b1, 0) @ w2 + b2).argmax(axis=1)
    return found


@pytest.fixture(autouse=True, scope="module")
def _packages() -> None:
    for package in ("onnx", "onnxruntime", "sklearn"):  # here, since collecting would import them everywhere
        pytest.importorskip(package, reason="`make test` installs it and runs this")


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """Make the models with the data, and which digits each answers rightly by NumPy."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    folder = tmp_path_factory.mktemp("digits")
    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype(np.float32)
    trained = {
        width: MLPClassifier((width,), max_iter=30, random_state=0).fit(pixels[899:], digits[899:])
        for width in (_NARROW, _WIDE)
    }
    weights = {
        name: (
            trained[width].coefs_[0],
            trained[width].intercepts_[0],
            trained[width].coefs_[1],
            trained[width].intercepts_[1],
        )
        for name, width in (("narrow", _NARROW), ("wide", _WIDE))
    }
    w1, b1, w2, b2 = weights["wide"]
    weights["copy"] = (w1[:, ::-1], b1[::-1], w2[::-1], b2)  # the same network, whose file is another
    weights["heavy"] = disturbed(weights["wide"])
    for name, own in weights.items():
        save_network(folder / f"{name}.onnx", own)
    np.save(folder / "pixels.npy", pixels[:899])
    np.save(folder / "digits.npy", digits[:899])
    return folder, {name: answers(own, pixels[:899]) == digits[:899] for name, own in weights.items()}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_models_of_known_answers_and_costs_are_judged_as_they_are(
    networks: tuple[Path, dict[str, np.ndarray]],
) -> None:
    folder, right = networks
    options = ("--inputs", "pixels.npy", "--labels", "digits.npy", "--metric", "top1", "--batch", BATCH)
    short = ("--on", "onnxruntime", "--threads", 1, "--blocks", 7, "--seconds", "60ms", "-q")
    models = [f"{name}.onnx" for name in right]
    done = run(
        "choose", *models, *options, *short, "--require", "top1>=85%", "--minimise", "time", "--score-margin", "2%",
        "--json", "-o", "c.html", "-o", "c.md", "-o", "c.svg", "-o", "c.csv", cwd=folder,
        timeout_s=600,
    )  # fmt: skip
    found = msgspec.json.decode(done.stdout, type=Choice)
    assert done.returncode == found.exit_status, done.stderr
    by_model = {each.model.removesuffix(".onnx"): each for each in found.candidates}
    for name, own in right.items():
        score = by_model[name].score
        assert score is not None
        assert score.value == pytest.approx(own.mean(), abs=1e-9)
    for each in found.scores:
        a, b = (right[name.partition(".onnx")[0]] for name in (each.a, each.b))
        only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
        assert (each.only_a_right, each.only_b_right) == (only_a, only_b)
        by_hand = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
        assert by_hand <= each.p_adjusted
        is_shown = each.outcome in ("better", "worse")
        assert is_shown == ("narrow.onnx" in each.a + each.b)
    copies = next(each for each in found.scores if {each.a[:4], each.b[:4]} == {"wide", "copy"})
    assert (copies.outcome, copies.items_differing, copies.difference) == ("equivalent", 0, 0)
    assert by_model["narrow"].front == "on the front"
    assert by_model["narrow"].qualifies == "no"
    assert by_model["heavy"].front == "dominated"
    assert set(by_model["heavy"].dominated_by) <= {"wide.onnx in onnxruntime", "copy.onnx in onnxruntime"}
    assert set(found.recommended) <= {"wide.onnx in onnxruntime", "copy.onnx in onnxruntime"}
    assert found.recommended
    page, drawing = (folder / "c.html").read_text(), (folder / "c.svg").read_text()
    assert "heavy.onnx" in page
    assert drawing.startswith("<svg")
    assert len((folder / "c.csv").read_text().splitlines()) == 1 + len(right)
    assert "| " in (folder / "c.md").read_text()


def test_python_returns_the_same_document_of_a_mean_error_in_two_frameworks(tmp_path: Path) -> None:
    drawn = np.random.default_rng(1)
    weights = (drawn.normal(size=(64, 32)), np.zeros(32), drawn.normal(size=(32, 4)) / 32, np.zeros(4))
    worse = (weights[0], weights[1], weights[2] + drawn.normal(0, 0.02, weights[2].shape), weights[3])
    pixels = drawn.normal(size=(80, 64)).astype(np.float32)
    values = np.maximum(pixels @ weights[0], 0) @ weights[2] + drawn.normal(0, 0.01, (80, 4))
    for name, own in (("exact", weights), ("worse", worse)):
        save_network(tmp_path / f"{name}.onnx", own)
    options: dict[str, Any] = {"threads": 1, "seconds": 0.05, "blocks": 2, "batch": 8}
    found = fairlap.choose(
        [str(tmp_path / "exact.onnx"), str(tmp_path / "worse.onnx")], on=["onnxruntime", "openvino"],
        inputs={"pixels": pixels}, labels=values, metric="mse", output=tmp_path / "c.json", **options,
    )  # fmt: skip
    assert json.loads((tmp_path / "c.json").read_text())["schema"] == "fairlap.choice/1"
    scored = [each for each in found.candidates if each.score is not None]
    assert len(scored) >= 2
    assert found.better == "lower"
    across = [each for each in found.scores if ("exact" in each.a) != ("exact" in each.b)]
    assert across
    assert all(each.outcome == ("better" if "exact" in each.a else "worse") for each in across)
    within = [each for each in found.scores if ("exact" in each.a) == ("exact" in each.b)]
    assert {each.outcome for each in within} <= {"equivalent"}
    assert all(each.outcome == "inconclusive" for each in found.times)  # of two rounds
    assert found.exit_status == 3
