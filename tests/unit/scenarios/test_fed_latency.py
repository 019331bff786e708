"""The proof of a pipeline: repeated, wrong and overwritten samples are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.data.native_pipeline import NativePipeline
from fairlap.data.pipeline import NUMBERS, Job, Pipeline
from fairlap.data.pipeline_choice import Choice
from fairlap.frameworks.contract import Contestant, Fed, TrainingState
from fairlap.models.arrays import Arrays
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.fed_check import require_each_once
from fairlap.scenarios.calls.fed_latency import FedCalls
from fairlap.scenarios.calls.latency_messages import Feed, Measure

SAMPLES, BATCH = 22, 4
Change = Callable[[Arrays, int], None]


def doubling(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"y": 2 * inputs["x"]}


HOST = Fed(np.from_dlpack, doubling)
CONTESTANT = Contestant(
    bind=lambda inputs: lambda: doubling(inputs),
    done=None,
    outputs=lambda result: {name: np.array(value, np.float32) for name, value in result.items()},
    weights=dict,
    in_force={},
    fed=HOST,
)


class Unfaithful(Pipeline):
    """A faithful pipeline whose batches are changed on their way."""

    description = "unfaithful"

    def __init__(self, job: Job, change: Change) -> None:
        self._faithful = NativePipeline(job, HOST)
        self._change = change
        self._number = 0
        self._held: dict[str, Any] = {}

    def take(self) -> Mapping[str, Any] | None:
        taken = self._faithful.take()
        self._held = {} if taken is None else {name: np.array(array) for name, array in taken.items()}
        if taken is None:
            return None
        self._change(self._held, self._number)
        self._number += 1
        return self._held

    def arrays(self) -> Arrays:
        return self._held

    def release(self) -> None:
        self._faithful.release()

    def waits_ns(self) -> dict[str, int]:
        return self._faithful.waits_ns()

    def close(self) -> None:
        self._faithful.close()


class Choosing(Choice):
    change: Change = staticmethod(lambda _arrays, _number: None)

    def opened(self, job: Job, fed: Fed) -> Pipeline:
        return Unfaithful(job, type(self).change)


def calls(tmp_path: Path, choice: Choice | None = None, fed: Fed | None = None) -> FedCalls:
    file = tmp_path / "x.npy"
    np.save(file, np.random.default_rng(1).standard_normal((SAMPLES, 3)).astype(np.float32))
    wanted = Feed({"x": str(file)}, SAMPLES, 5, "")
    return FedCalls(CONTESTANT, fed or CONTESTANT.fed, choice or Choice(), wanted, BATCH)  # type: ignore[arg-type]


def test_a_faithful_pipeline_proves_an_epoch_and_its_answers_belong_to_what_went_in(tmp_path: Path) -> None:
    proof = calls(tmp_path).proof()
    require_each_once(proof, SAMPLES, BATCH)
    assert len(proof[NUMBERS]) == 20
    assert list(proof[NUMBERS]) != sorted(proof[NUMBERS])
    held = np.load(tmp_path / "x.npy")
    for batch in (0, 1):
        first, last = proof[NUMBERS][batch * BATCH], proof[NUMBERS][batch * BATCH + BATCH - 1]
        np.testing.assert_array_equal(proof[f"{batch}/seen/x"], held[[first, last]])
        np.testing.assert_array_equal(proof[f"{batch}/got/y"], 2 * held[[first, last]])


def test_rows_of_several_inputs_belong_together(tmp_path: Path) -> None:
    for name in ("x", "z"):
        np.save(tmp_path / f"{name}.npy", np.arange(SAMPLES * 3, dtype=np.float32).reshape(SAMPLES, 3))
    files = {name: str(tmp_path / f"{name}.npy") for name in ("x", "z")}
    pipeline = NativePipeline(Job(files, SAMPLES, BATCH, 1, epochs=3), HOST)
    taken = 0
    while (batch := pipeline.take()) is not None:
        np.testing.assert_array_equal(batch["x"], batch["z"])
        del batch
        pipeline.release()
        taken += 1
    pipeline.close()
    assert taken == 3 * (SAMPLES // BATCH)


def twice(arrays: Any, number: int) -> None:
    if number == 3:
        arrays["x"][1], arrays[NUMBERS][1] = arrays["x"][0], arrays[NUMBERS][0]


def something_else(arrays: Any, number: int) -> None:
    if number == 4:
        arrays["x"][2, 1] += 1


def swapped(arrays: Any, number: int) -> None:
    arrays["x"][[0, 1]] = arrays["x"][[1, 0]]


@pytest.mark.parametrize(
    ("change", "number"),
    [(twice, "1 of 22"), (something_else, "1 sample"), (swapped, "10 samples")],
)
def test_a_pipeline_that_feeds_wrong_samples_is_found(tmp_path: Path, change: Change, number: str) -> None:
    class Chosen(Choosing):
        pass

    Chosen.change = staticmethod(change)
    with pytest.raises(OtherWork, match=number) as wrong:
        require_each_once(calls(tmp_path, Chosen()).proof(), SAMPLES, BATCH)
    assert wrong.value.code == "E_FEED"


def test_a_contestant_that_writes_over_its_batch_is_found(tmp_path: Path) -> None:
    def writing(inputs: Mapping[str, Any]) -> dict[str, Any]:
        answer = doubling(inputs)
        inputs["x"][:] = 0
        return answer

    with pytest.raises(OtherWork, match="8 samples"):
        require_each_once(calls(tmp_path, fed=Fed(np.from_dlpack, writing)).proof(), SAMPLES, BATCH)


@pytest.mark.parametrize("numbers", [range(16), range(22), [*range(19), 22], [*range(19), -1], [*range(19), 0]])
def test_an_epoch_that_is_not_complete_is_found(numbers: Any) -> None:
    proof = {NUMBERS: np.array(numbers), "wrong samples": np.array([0]), "0/seen/x": np.zeros((2, 3), np.float32)}
    with pytest.raises(OtherWork) as wrong:
        require_each_once(proof, SAMPLES, BATCH)
    assert wrong.value.code == "E_FEED"


def test_an_epoch_too_large_to_prove_is_checked_as_far_as_it_was_compared() -> None:
    proof = {
        NUMBERS: np.arange(1024),
        "wrong samples": np.array([0]),
        "0/seen/x": np.zeros((2, 2**18), np.float32),  # a MiB each
    }
    require_each_once(proof, 4096, 16)
    with pytest.raises(OtherWork, match=r"1,008 .*4,096"):
        require_each_once({**proof, NUMBERS: np.arange(1008)}, 4096, 16)


def test_measured_calls_report_their_waits_and_the_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    fed = calls(tmp_path)
    assert fed.open() == "fairlap"
    measured = fed.measure(Measure(samples=200))
    assert measured.samples == 200
    feeding = fed.feeding
    assert feeding is not None
    assert (feeding.items, feeding.calls) == (200 * BATCH, 200)
    assert feeding.wall_ns == pytest.approx(float(measured.headline.values.sum()))
    assert feeding.work_ns + feeding.waited_ns == pytest.approx(feeding.wall_ns)
    causes = (feeding.source_ns, feeding.staging_ns, feeding.no_slot_ns)
    assert sum(cause or 0 for cause in causes) == pytest.approx(feeding.waited_ns)
    assert 0 <= feeding.waited_ns < feeding.wall_ns
    after = fed.answer()
    np.testing.assert_array_equal(after["got/y"], 2 * after["seen/x"])
    fed.close()


def test_closing_a_pipeline_early_releases_every_slot(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    np.save(tmp_path / "x.npy", np.zeros((SAMPLES, 3), np.float32))
    pipeline = NativePipeline(Job({"x": str(tmp_path / "x.npy")}, SAMPLES, BATCH, 1), HOST)
    pipeline.take()
    pipeline.close()
    assert not recwarn.list


class Adding:
    """Training whose state is the sum of all that it was fed, and the number of steps."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.total, self.steps = 0.0, 0

    def read(self) -> dict[str, Any]:
        return {"weight/total": np.array(self.total, np.float32), "step": np.array(self.steps, np.float32)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.total, self.steps = float(state["weight/total"]), int(state["step"])

    def step(self, batch: Mapping[str, Any]) -> float:
        self.total += float((batch["x"].sum(axis=1) * batch["labels"]).sum())
        self.steps += 1
        return self.total


def training_calls(tmp_path: Path, samples: int = SAMPLES) -> FedCalls:
    rng, files = np.random.default_rng(2), {}
    for name, array in {
        "x": rng.standard_normal((samples, 3)).astype(np.float32),
        "labels": np.arange(samples, dtype=np.int32),
    }.items():
        files[name] = str(tmp_path / f"{name}.npy")
        np.save(files[name], array)
    adding = Adding()
    adding.step({"x": np.ones((1, 3)), "labels": np.ones(1)})  # as the checked answers do before
    contestant = Contestant(
        bind=lambda _inputs: lambda: None,
        done=None,
        outputs=lambda loss: {"loss": np.array(loss, np.float32)},
        weights=dict,
        in_force={},
        fed=Fed(np.from_dlpack, adding.step),
        training=TrainingState(adding.read, adding.reset, adding.restore),
    )
    wanted = Feed(files, samples, 5, "", whole_batches=True)
    return FedCalls(contestant, contestant.fed, Choice(), wanted, BATCH)  # type: ignore[arg-type]


def fed_sum(proof: Mapping[str, Any], prefix: str) -> float:
    return float((proof[f"{prefix}seen/x"].sum(axis=1) * proof[f"{prefix}seen/labels"]).sum())


@pytest.mark.parametrize(("samples", "steps"), [(SAMPLES, 3), (9, 2)])
def test_the_proof_of_training_has_whole_batches_with_their_labels_and_the_state_after_each(
    tmp_path: Path, samples: int, steps: int
) -> None:
    proof = training_calls(tmp_path, samples).proof()
    require_each_once(proof, samples, BATCH)
    held = np.load(tmp_path / "labels.npy")
    total = 0.0
    for number in range(steps):
        of_batch = proof[NUMBERS][number * BATCH : (number + 1) * BATCH]
        np.testing.assert_array_equal(proof[f"{number}/seen/labels"], held[of_batch])
        total += fed_sum(proof, f"{number}/")
        assert proof[f"{number}/got/weight/total"] == pytest.approx(total, rel=1e-5)
        assert proof[f"{number}/got/step"] == number + 1
    assert f"{steps}/seen/x" not in proof


def test_labels_of_other_samples_are_found(tmp_path: Path) -> None:
    fed = training_calls(tmp_path)
    labels = np.load(tmp_path / "labels.npy")
    opened = fed._choice

    class Shifted(Choosing):
        change = staticmethod(lambda arrays, _number: arrays.update(labels=np.roll(arrays["labels"], 1)))

    fed._choice = Shifted()
    assert type(opened) is Choice
    with pytest.raises(OtherWork, match=f"{len(labels) // BATCH * BATCH} samples"):
        require_each_once(fed.proof(), SAMPLES, BATCH)


def test_measured_training_begins_with_the_given_weights_and_its_answer_is_a_step_from_where_it_ended(
    tmp_path: Path,
) -> None:
    fed = training_calls(tmp_path)
    fed.proof()
    fed.open()
    measured = fed.measure(Measure(samples=30, warmup=2))
    after = fed.answer()
    warm_up = 1 + measured.warm_up.calls  # its one sample, and what came before it
    assert after["before/step"] == warm_up + 30
    assert after["got/step"] == after["before/step"] + 1
    moved = after["got/weight/total"] - after["before/weight/total"]
    assert moved == pytest.approx(fed_sum(after, ""), rel=1e-3, abs=1e-3)
    assert fed.feeding is not None
    assert fed.feeding.calls == 30
    fed.close()
