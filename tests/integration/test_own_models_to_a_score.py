"""Models of one's own are trained to a score as a loop by hand trains them, in every framework that gets them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import fairlap as run
from command_line import refusal
from fairlap.models.array_files import safetensors
from learning_sources import SUPPORT
from transformers_folders import folder_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEED, BATCH, ITEMS, CLASSES = 1, 4, 200, 3
QUICK = ("--mode", "train", "--seconds", "0.1s", "--no-store", "--quiet", "--threads", 1, "--seed", SEED, "--blocks", 1)
Arrays = dict[str, np.ndarray]

VALUES = """
import torch


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(5, 16), torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).squeeze(-1)


def build():
    torch.manual_seed(0)
    return Regression(), (torch.randn(4, 5),)


def transposed():
    module, (x,) = build()

    class Transposed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return self.inner(x)[None]

    return Transposed(), (x,)
"""


@pytest.fixture(autouse=True)
def _packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here, since collecting would import them everywhere.
    for package in ("torch", "onnxscript", "jax", "optax", "tensorflow", "keras"):
        pytest.importorskip(package, reason="`make test` installs it and runs this")
    (tmp_path / "own_values.py").write_text(VALUES)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), str(tmp_path)]), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.syspath_prepend(str(tmp_path))


def images(*, channels_last: bool = False) -> Arrays:
    """Of three classes, each of which is brighter in one channel."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, CLASSES, ITEMS)
    pixels = rng.standard_normal((ITEMS, 3, 12, 12)) + 0.4 * np.eye(3)[labels][:, :, None, None]
    pixels = pixels.transpose(0, 2, 3, 1) if channels_last else pixels
    return {"image": pixels.astype(np.float32), "labels": labels}


def tokens() -> Arrays:
    """Each label is the token before, which attention can find."""
    ids = np.random.default_rng(5).integers(0, 8, (ITEMS, 6))
    return {"ids": ids, "labels": np.roll(ids, 1, axis=1)}


def values() -> Arrays:
    x = np.random.default_rng(5).standard_normal((ITEMS, 5))
    return {"x": x, "labels": 3.0 * x[:, 0] - x[:, 1] + 7.0}


def saved(arrays: Mapping[str, Any], folder: Path) -> Path:
    np.savez(folder / "items.npz", **arrays)
    return folder / "items.npz"


def raced(model: str, on: str, *options: object) -> dict[str, dict[str, Any]]:
    done = run("compare", model, "--on", on, *QUICK, *options, "--json", timeout_s=1500)
    assert done.returncode == 0, done.stderr
    rows = {row["contestant"]: row for row in json.loads(done.stdout)["rows"]}
    assert set(rows) == set(on.split(","))
    for row in rows.values():
        assert row["outcome"] == "finished", row["message"]  # equal training is proven, or it is disqualified
        assert row["reached_share"] == 1.0, row["best_score"]
    return rows


def standardised(array: np.ndarray, learnt: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = ((array - array[learnt].mean(0)) / array[learnt].std(0)).astype(np.float32)
    return scaled


def by_hand(
    module: Any, optimizer: Any, loss: Callable[[Any, Any], Any], score: Callable[[Any, Any], float], arrays: Arrays
) -> Iterator[tuple[int, float, Arrays]]:
    """Train in plain PyTorch on the items in the order of the race, and give steps, score and weights of each epoch."""
    import torch

    torch.set_num_threads(1)
    held, learnt = np.split(np.random.default_rng(0).permutation(ITEMS), [ITEMS // 5])
    items, labels = (arrays[name] for name in arrays)
    if items.dtype == np.float64:  # a table
        items, labels = standardised(items, learnt), standardised(labels, learnt)
    given, wanted = torch.from_numpy(items), torch.from_numpy(labels)
    steps = 0
    for epoch in range(30):
        module.train()
        order = learnt[np.random.default_rng([SEED, 0, epoch]).permutation(len(learnt))]
        for place in range(0, len(order) - BATCH + 1, BATCH):
            rows = torch.from_numpy(order[place : place + BATCH])
            optimizer.zero_grad()
            loss(module(given[rows]), wanted[rows]).backward()
            optimizer.step()
            steps += 1
        module.eval()
        with torch.no_grad():
            found = score(module(given[held]), wanted[held])
        yield steps, found, {name: each.numpy().copy() for name, each in module.state_dict().items()}


def cross_entropy(scores: Any, labels: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(scores.flatten(0, -2), labels.flatten())


def top1(scores: Any, labels: Any) -> float:
    return float((scores.argmax(-1) == labels).double().mean())


def squares(answers: Any, labels: Any) -> Any:
    return (answers - labels).square().mean()


def r_squared(answers: Any, labels: Any) -> float:
    return float(1 - (answers - labels).square().sum() / (labels - labels.mean()).square().sum())


def sgd(module: Any) -> Any:
    import torch

    return torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)


def adamw(module: Any) -> Any:
    import torch

    return torch.optim.AdamW(module.parameters(), lr=0.003)


LOSS = {"cross_entropy": (cross_entropy, top1), "mse": (squares, r_squared)}
OPTIMIZER = {"sgd:lr=0.05,momentum=0.9": sgd, "adamw:lr=0.003": adamw}
BY_HAND = [
    ("own_nets:normalised", images, "cross_entropy", "sgd:lr=0.05,momentum=0.9", 0.6, "torch"),
    ("own_nets:convolutional", images, "cross_entropy", "adamw:lr=0.003", 0.9, "torch,jax,tensorflow:graph"),
    ("own_nets:transformer", tokens, "cross_entropy", "adamw:lr=0.003", 0.25, "torch,jax,tensorflow:graph"),
    ("own_values:build", values, "mse", "sgd:lr=0.05,momentum=0.9", 0.975, "torch,jax"),
]


@pytest.mark.parametrize(("model", "data", "loss", "optimizer", "target", "on"), BY_HAND)
def test_a_module_reaches_the_score_after_the_epochs_of_a_loop_by_hand(
    model: str, data: Callable[[], Arrays], loss: str, optimizer: str, target: float, on: str, tmp_path: Path
) -> None:
    arrays = data()
    options = ("--loss", loss, "--optimizer", optimizer, "--to-score", target, "--train-on", saved(arrays, tmp_path))
    rows = raced(model, on, *options, "--keep-weights", tmp_path / "kept", "--count-evaluation")
    module_name, _, function = model.partition(":")
    module, _ = getattr(__import__(module_name), function)()
    epochs = by_hand(module, OPTIMIZER[optimizer](module), *LOSS[loss], arrays)
    steps, score, weights = next(each for each in epochs if each[1] >= target)
    assert steps > ITEMS * 4 // 5 // BATCH  # more than an epoch, so that their order counts
    for name, row in rows.items():
        assert row["steps_to_score"] == steps, name
        assert row["best_score"] == pytest.approx(score, abs=1e-6 if name == "torch" else 0.03), name
        assert row["evaluation_to_score_s"]["value"] > 0
        [file] = [each for each in (tmp_path / "kept").iterdir() if each.stem.endswith(name.replace(":", "-"))]
        kept = safetensors.read(file)
        named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        assert set(kept) == {weight for weight, each in named.items() if each.is_floating_point()}
        for weight, array in kept.items() if name == "torch" else ():  # rounding decides where Adam takes some weights
            np.testing.assert_allclose(array, weights[weight], rtol=1e-3, atol=1e-4, err_msg=weight)


WORDS = ("", "good", "fine", "great", "fun", "bad", "poor", "dull", "sad", "the", "film", "was", "is", "a", "very")


def opinions() -> Arrays:
    """Eight words each, of which more are good or more are bad."""
    drawn = np.random.default_rng(0)
    rows: list[list[int]] = []
    while len(rows) < ITEMS:
        row = drawn.integers(1, len(WORDS), 8).tolist()
        good, bad = sum(1 <= each <= 4 for each in row), sum(5 <= each <= 8 for each in row)
        rows += [row] if good != bad else []
    texts = np.array(rows)
    good, bad = (((texts >= low) & (texts < low + 4)).sum(axis=1) for low in (1, 5))
    return {"input_ids": texts, "labels": (good > bad).astype(np.int64)}


def test_a_bert_is_fine_tuned_on_texts_to_a_score_as_in_a_loop_by_hand(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="`make test` installs it and runs this")
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 2}
    folder = folder_of(tmp_path / "bert", "bert", weights=True, **quiet)
    arrays, optimizer, target = opinions(), "adamw:lr=0.003", 0.85
    options = ("--dims", f"batch={BATCH},sequence=8", "--loss", "cross_entropy", "--optimizer", optimizer)
    data = ("--to-score", target, "--train-on", saved(arrays, tmp_path))
    rows = raced(f"hf:{folder}", "torch,jax", *options, *data)
    bert = transformers.BertForSequenceClassification.from_pretrained(folder)

    class Logits(type(bert)):  # type: ignore[misc]
        def forward(self, ids: Any) -> Any:
            return super().forward(ids).logits

    bert.__class__ = Logits
    epochs = by_hand(bert, OPTIMIZER[optimizer](bert), *LOSS["cross_entropy"], arrays)
    steps, score, _ = next(each for each in epochs if each[1] >= target)
    assert rows["torch"]["steps_to_score"] == steps
    assert rows["torch"]["best_score"] == pytest.approx(score, abs=1e-6)
    assert rows["jax"]["best_score"] >= target


def test_training_goes_on_from_kept_weights(tmp_path: Path) -> None:
    data = saved(images(), tmp_path)
    options = ("--loss", "cross_entropy", "--optimizer", "adamw:lr=0.01", "--train-on", data, "--epochs", 9)
    first = raced("own_nets:convolutional", "torch", *options, "--to-score", "80%", "--keep-weights", tmp_path / "kept")
    [kept] = (tmp_path / "kept").iterdir()
    again = raced("own_nets:convolutional", "torch,jax", *options, "--to-score", "80%", "--start-from", kept)
    for row in again.values():
        assert row["steps_to_score"] <= first["torch"]["steps_to_score"]
        assert row["best_score"] >= 0.8


@pytest.mark.parametrize(
    ("model", "on"),
    [
        ("own_keras_nets:normalised", "tensorflow:graph,jax,torch"),
        ("own_jax_nets:normalised", "jax,tensorflow:graph"),
    ],
)
def test_keras_models_and_jax_functions_reach_the_same_score_after_the_same_steps(
    model: str, on: str, tmp_path: Path
) -> None:
    data = saved(images(channels_last=True), tmp_path)
    options = ("--loss", "cross_entropy", "--optimizer", "adamw:lr=0.01", "--train-on", data, "--metric", "top1")
    rows = raced(model, on, *options, "--to-score", "85%")
    assert len({row["steps_to_score"] for row in rows.values()}) == 1
    for row in rows.values():
        assert row["scores"]["top1"]["items"] == ITEMS // 5
        assert row["scores"]["top1"]["value"] == pytest.approx(row["best_score"])


def test_a_loss_of_one_s_own_is_trained_to_a_score(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.arange(BATCH) % CLASSES)
    data = saved(images(), tmp_path)
    options = ("--loss", "own_nets:smoothed", "--optimizer", "adamw:lr=0.01", "--train-on", data)
    raced("own_nets:convolutional", "torch", *options, "--labels", tmp_path / "labels.npy", "--to-score", "80%")


def changed(arrays: Arrays, **by: Any) -> Arrays:
    return {name: by[name](array) if name in by else array for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("model", "arrays", "loss", "code"),
    [
        (
            "own_nets:convolutional",
            changed(images(), labels=lambda _: np.arange(ITEMS) % 11),
            "cross_entropy",
            "E_DATA",
        ),
        ("own_nets:convolutional", changed(images(), labels=lambda each: each / 7), "cross_entropy", "E_DATA"),
        ("own_nets:convolutional", changed(images(), image=lambda each: each[:, :, :-1]), "cross_entropy", "E_DATA"),
        ("own_nets:transformer", changed(tokens(), ids=lambda each: each + 13), "cross_entropy", "E_DATA"),
        ("own_nets:transformer", changed(tokens(), ids=lambda each: each + 0.5), "cross_entropy", "E_DATA"),
        ("own_nets:transformer", changed(tokens(), labels=lambda each: each[:, 0]), "cross_entropy", "E_DATA"),
        ("own_nets:convolutional", images(), "mse", "E_DATA"),
        ("own_nets:convolutional", images(), "own_nets:unlabelled", "E_LOSS"),
        ("own_values:transposed", values(), "mse", "E_TO_SCORE"),
    ],
)
def test_data_that_do_not_fit_the_model_are_refused(
    model: str, arrays: Arrays, loss: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--loss", loss, "--to-score", "90%", "--train-on", saved(arrays, tmp_path))
    assert refusal("compare", model, "--on", "torch", *QUICK, *options).code == code
