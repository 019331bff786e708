"""The id of a work: other where anything that defines the work is, the same wherever its files are."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from fairlap.request.fields.data.training_data import ItemSizes, TrainingData
from fairlap.request.fields.load import Load
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.source import Source
from fairlap.request.fields.training import AdamW, Schedule, Sgd, Training
from fairlap.request.work import StartWeights, Work
from fairlap.request.work_title import told_apart

NET = Source("net.onnx", "/home/a/net.onnx", "/home/a", batch=4, files=(("/home/a/net.onnx", "ab" * 32),))
SUMS = Source("callable", "callable:kernels:right", "/home/a", dims=(("n", 64),), inputs="kernels:draw")
DATA = TrainingData("pets.csv", "/home/a/pets.csv", hash="cd" * 32, sizes=ItemSizes((4,), 3))
TRAINED = Work(
    "mlp",
    8,
    "train",
    training=Training(Sgd(momentum=0.9)),
    train_on=DATA,
    start=StartWeights("/home/a/w.safetensors", "ef" * 32),
    scale=Scale(1, ranks=2),
)
SERVED = Work("mlp", 1, load=Load(0.99, 0.02))
OWN = Work(NET.name, 4, source=NET)


def with_field(name: str, **changes: object) -> Callable[[Work], Work]:
    return lambda work: msgspec.structs.replace(work, **{name: msgspec.structs.replace(getattr(work, name), **changes)})


def work(**changes: object) -> Callable[[Work], Work]:
    return lambda work: msgspec.structs.replace(work, **changes)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (TRAINED, work(model="convnet")),
        (TRAINED, work(batch=16)),
        (TRAINED, work(precision="bf16")),
        (TRAINED, work(together=("fp32", "bf16"))),
        (TRAINED, work(mode="grad")),
        (TRAINED, work(training=Training(Sgd(momentum=0.8)))),
        (TRAINED, work(training=Training(AdamW(lr=0.01)))),
        (TRAINED, work(training=Training(Sgd(momentum=0.9), Schedule("cosine", steps=9)))),
        (TRAINED, with_field("start", sha256="00" * 32)),
        (TRAINED, with_field("train_on", hash="00" * 32)),
        (TRAINED, with_field("train_on", fraction=0.5)),
        (TRAINED, with_field("train_on", column="kind")),
        (TRAINED, with_field("scale", ranks=4)),
        (TRAINED, with_field("scale", threads=2)),
        (TRAINED, with_field("scale", hosts=("a", "b"))),
        (SERVED, with_field("load", bound_s=0.05)),
        (SERVED, with_field("load", workers=2)),
        (OWN, with_field("source", files=(("/home/a/net.onnx", "00" * 32),))),
        (OWN, with_field("source", batch=8)),
        (OWN, with_field("source", shapes=(("x", (4, 3)),))),
        (OWN, with_field("source", ranges=(("ids", 0, 9),))),
        (OWN, with_field("source", loss="cross_entropy")),
        (OWN, with_field("source", generate=(128, 32))),
        (Work(SUMS.name, 1, source=SUMS), with_field("source", dims=(("n", 65),))),
        (Work(SUMS.name, 1, source=SUMS), with_field("source", inputs="kernels:draw_others")),
    ],
)
def test_another_work_has_another_id(before: Work, change: Callable[[Work], Work]) -> None:
    assert change(before).id != before.id


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (TRAINED, with_field("start", path="/elsewhere/w.safetensors")),
        (TRAINED, with_field("train_on", path="/elsewhere/pets.csv", text="../pets.csv")),
        (TRAINED, with_field("scale", scaling="weak")),
        (SERVED, with_field("load", trial_s=9.0, logs="/tmp/logs")),
        (
            OWN,
            with_field(
                "source", text="./a/net.onnx", path="/b/net.onnx", folder="/b", files=(("/b/net.onnx", "ab" * 32),)
            ),
        ),
        (OWN, with_field("source", trust=True, metrics=("top1",), among_others=True)),
        (
            Work(SUMS.name, 1, source=SUMS),
            with_field("source", path="callable:kernels:also_right", peer="python:call=kernels.f"),
        ),
        (Work(SUMS.name, 1, source=SUMS), with_field("source", folder="/elsewhere", checkout="/elsewhere/base")),
    ],
)
def test_the_same_work_elsewhere_has_the_same_id(before: Work, change: Callable[[Work], Work]) -> None:
    changed = change(before)
    assert changed != before
    assert changed.id == before.id


def test_ids_stay_as_they_are_when_works_get_further_fields() -> None:
    """They are in stores and files of users: what is as by default is no part of them."""
    assert [each.id for each in (Work("mlp", 32), TRAINED, SERVED, OWN)] == [
        "463a4f6c3f3049a3",
        "9e9529af28572bdd",
        "dc47f5effbcdfe54",
        "c27d41da9e274dec",
    ]


def test_threads_alone_are_no_other_work_between_runs() -> None:
    alone = Work("mlp", 8)
    assert {msgspec.structs.replace(alone, scale=Scale(threads)).on_any_threads().id for threads in (1, 2)} == {
        alone.id
    }
    assert TRAINED.on_any_threads() == TRAINED


def test_two_works_with_one_title_are_told_apart_by_their_ids() -> None:
    assert told_apart({"0123456789": "net", "ab": "mlp"}) == {"0123456789": "net", "ab": "mlp"}
    assert told_apart({"0123456789": "net", "abcdefghij": "net"}) == {
        "0123456789": "net · 01234567",
        "abcdefghij": "net · abcdefgh",
    }
