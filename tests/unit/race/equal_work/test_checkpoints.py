"""A checkpoint holds what a process had learnt; training goes on from it only where it is whole and of the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fairlap.models.array_files import safetensors
from fairlap.models.registry import find
from fairlap.race.equal_work.answers import OtherWork
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.scenarios.learning.race.checkpoints import Checkpoint, Checkpoints, Origin
from fairlap.scenarios.learning.race.learning import Learner
from fairlap.scenarios.learning.race.learning_data import data_to_learn
from fairlap.scenarios.learning.training_messages import Evaluation, LearningCurve, Restore, Restored
from fairlap.scenarios.process_result import AnswerError, ProcessResult

STATE = {"weight/w": np.arange(6, dtype=np.float32), "step": np.asarray(4, np.float32)}
CURVE = LearningCurve(0.9, (Evaluation(2, 0.1, 0.5, 1.0), Evaluation(4, 0.2, 0.7, 0.8)))
ERRORS = [AnswerError("weight after 2 steps of training", "first epoch", None, 0.0, 0.0, True)]
KEPT = Checkpoint(CURVE, ERRORS, STATE)


def process(contestant: str = "torch", block: int = 3) -> ProcessResult:
    return ProcessResult(block, 0, contestant, "digits", "controlled", version="2.13.0")


def origin(epochs: int = 2, **changes: str) -> Origin:
    fields = {"contestant": "torch", "version": "2.13.0", "work_id": "digits", "weights": "a", "items": "b"} | changes
    return Origin(block=3, batches=f"{epochs} epochs", **fields)


class Kept:
    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self.folder = folder
        self.checkpoints = Checkpoints(folder, self.lines.append)

    def file(self) -> Path:
        [file] = self.folder.iterdir()
        return file


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    found = Kept(tmp_path / "checkpoints")
    found.checkpoints.write(process(), origin(), KEPT)
    return found


def test_what_was_written_last_is_found_again(kept: Kept) -> None:
    further = Checkpoint(LearningCurve(0.9, (*CURVE.evaluations, Evaluation(6, 0.3, 0.8, 0.6))), ERRORS, STATE)
    kept.checkpoints.write(process(), origin(3), further)
    kept.file()
    found = Checkpoints(kept.folder).find(process(), origin)
    assert found is not None
    assert (found.curve, found.errors) == (further.curve, ERRORS)
    assert {name: array.tolist() for name, array in found.state.items()} == {
        name: array.tolist() for name, array in STATE.items()
    }
    assert kept.lines == []


def test_another_process_has_its_own(kept: Kept) -> None:
    assert kept.checkpoints.find(process("jax"), origin) is None
    assert kept.checkpoints.find(process(block=4), origin) is None
    assert kept.lines == []


@pytest.mark.parametrize("changed", ["version", "weights", "items", "work_id"])
def test_of_other_work_it_does_not_count_and_a_line_says_so(changed: str, kept: Kept) -> None:
    assert kept.checkpoints.find(process(), lambda epochs: origin(epochs, **{changed: "other"})) is None
    assert len(kept.lines) == 1


def test_of_another_order_it_does_not_count(kept: Kept) -> None:
    assert kept.checkpoints.find(process(), lambda epochs: origin(epochs + 1)) is None
    assert "order of the batches" in kept.lines[0]


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    place = content.index(STATE["weight/w"].tobytes())
    content[place] ^= 1
    file.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "one bit": flipped,
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-8]),
    "empty": lambda file: file.write_bytes(b""),
    "foreign": lambda file: safetensors.write(file, STATE),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_one_does_not_count_and_a_line_says_so(how: str, kept: Kept) -> None:
    DAMAGE[how](kept.file())
    assert kept.checkpoints.find(process(), origin) is None
    assert ["damaged" in line for line in kept.lines] == [True]


def test_where_none_can_be_written_one_line_says_so_and_the_last_one_stays(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fairlap.models.array_files.safetensors._write_whole", full)
    for _ in range(3):
        kept.checkpoints.write(process(), origin(3), Checkpoint(CURVE, [], STATE))
    assert ["No space left" in line for line in kept.lines] == [True]
    found = kept.checkpoints.find(process(), origin)
    assert found is not None
    assert found.errors == ERRORS
    kept.file()  # nothing half written beside it


def test_a_folder_that_cannot_be_made_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = Kept(tmp_path / "file" / "checkpoints")
    kept.checkpoints.write(process(), origin(), KEPT)
    assert len(kept.lines) == 1
    assert kept.checkpoints.find(process(), origin) is None


def test_they_are_removed_together(kept: Kept) -> None:
    kept.checkpoints.remove_all()
    kept.checkpoints.remove_all()
    assert not kept.folder.exists()
    Checkpoints().write(process(), origin(), KEPT)
    Checkpoints().remove_all()


class Restoring:
    """A worker that reads back what it was given, or something else."""

    def __init__(self, changed: float = 0.0) -> None:
        self.changed, self.restored = changed, 0

    def ask(self, request: Restore, *, within_s: float) -> Restored:
        self.restored += 1
        state = safetensors.read(Path(request.state))
        safetensors.write(Path(request.path), {name: array + np.float32(self.changed) for name, array in state.items()})
        return Restored()


def planned(to_score: float) -> Plan:
    model = find("digits")
    data, _ = data_to_learn(model, "", 1.0, lambda _: None)
    work = Work("digits", 32, "train", training=model.spec.training, train_on=data)
    options = {"to_score": to_score, "most_epochs": 5, "available_cores": (0,), "threads": 1, "seed": 3}
    return draw_plan(Contestants("torch,jax"), (work,), blocks=2, conditions="controlled", **options)  # type: ignore[arg-type]


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Learner]:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path))

    def made(to_score: float = 0.9, block: int = 0) -> Learner:
        plan = planned(to_score)
        return Learner(plan, plan.blocks[block], materials_for(plan.works[0], 0), tmp_path)

    return made


def test_epochs_and_time_before_the_interruption_count(learner: Callable[..., Learner]) -> None:
    learning, worker = learner(), Restoring()
    learning.go_on_from(KEPT, worker, 60.0)  # type: ignore[arg-type]
    assert (worker.restored, learning.goes_on) == (1, True)
    assert (learning.curve, learning.curve.trained_s) == (CURVE, 0.2)


def test_a_contestant_that_had_reached_the_score_does_not_train_again(learner: Callable[..., Learner]) -> None:
    learning, worker = learner(0.6), Restoring()
    reached = LearningCurve(0.6, CURVE.evaluations)
    learning.go_on_from(Checkpoint(reached, [], STATE), worker, 60.0)  # type: ignore[arg-type]
    assert (worker.restored, learning.goes_on) == (0, False)


def test_a_framework_that_goes_on_from_another_state_does_other_work(learner: Callable[..., Learner]) -> None:
    with pytest.raises(OtherWork) as wrong:
        learner().go_on_from(KEPT, Restoring(1e-7), 60.0)  # type: ignore[arg-type]
    assert wrong.value.code == "E_TRAINING"


def test_the_origin_is_that_of_the_block_its_data_and_its_batches(learner: Callable[..., Learner]) -> None:
    of = process(block=0)
    first, other = learner().origin(of, 2), learner(block=1).origin(of, 2)
    assert first == learner().origin(of, 2)
    assert first.batches != learner().origin(of, 3).batches
    assert first.batches != other.batches
    assert (first.weights, first.items) == (other.weights, other.items)
