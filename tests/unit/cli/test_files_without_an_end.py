"""A device or a pipe in the place of a file is refused before it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import invoke, refusal
from fairlap.errors import FairlapError
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_inputs


@pytest.fixture(params=["device", "pipe"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "device":
        return Path("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("verify",), "E_BUNDLE"), (("across",), "E_RUN_FILE"), (("runs", "import"), "E_RUN_FILE")],
)
def test_commands_that_read_a_file_say_that_it_is_none(endless: Path, arguments: tuple[str, ...], code: str) -> None:
    assert refusal(*arguments, endless).code == code


def test_it_cannot_be_gated(endless: Path) -> None:
    assert invoke("gate", endless, "--baseline", "torch").exit_code == 3


def test_a_store_is_neither_opened_nor_repaired(endless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(endless))
    for arguments in (("runs",), ("runs", "repair")):
        assert refusal(*arguments).code == "E_STORE"


def test_a_plan_and_a_request_are_refused(endless: Path, tmp_path: Path) -> None:
    assert refusal("compare", "--plan", endless).code == "E_REQUEST"
    request = tmp_path / "request.toml"
    request.symlink_to(endless)
    assert refusal("compare", request, "--dry-run").code == "E_TOML"


@pytest.mark.parametrize("name", ["array.npy", "arrays.npz", "labels.json"])
def test_inputs_and_labels_are_refused(endless: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.symlink_to(endless)
    with pytest.raises(FairlapError, match="not a regular file"):
        labels_in(file, ["map" if name == "labels.json" else "top1"])
    if name != "labels.json":
        with pytest.raises(FairlapError, match="not a regular file"):
            given_inputs(str(file), "")


def test_training_does_not_start_from_it(endless: Path) -> None:
    assert (
        refusal("compare", "digits", "--on", "python:call=a.b", "--mode", "train", "--start-from", endless).code
        == "E_START_FROM"
    )


def test_it_is_not_posted(endless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "token")
    monkeypatch.setenv("GITHUB_REPOSITORY", "a/b")
    posted = invoke("pull-request", "--post", endless, "--number", 1)
    assert posted.exit_code == 3
    assert f"cannot read {endless}" in posted.stderr
