"""A shell is offered what can stand where the user types: commands, models, contestants, runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from command_line import invoke, output
from fairlap.cli import cli
from fairlap.launch import environments as envs
from fairlap.store.store import open_store
from runs_in_store import keep_whole
from saved_runs import saved_run


def offered(*words: str) -> list[str]:
    *before, typed = words
    return [each.value for each in ShellComplete(cli, {}, "fairlap", "_X").get_completions(list(before), typed)]


def test_models_and_files_are_offered_to_race() -> None:
    assert offered("compare", "ml") == ["mlp", "ml"]  # the shell completes the last one as a file
    assert offered("self-test", "conv") == ["conv2d", "convnet"]


def test_contestants_are_offered_with_their_variants_after_a_comma_too() -> None:
    assert offered("compare", "mlp", "--on", "tens") == ["tensorflow"]
    assert "torch,jax" in offered("load", "mlp", "--on", "torch,")
    assert "jax,torch:compile" in offered("compare", "mlp", "--on", "jax,torch:")
    assert offered("compare", "mlp", "--on", "nothing:") == []


def test_versions_are_offered_that_have_an_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = [envs.Environment("k", tmp_path, (f"torch=={version}",), "2026-01-01") for version in ("2.12.0", "2.11.0")]
    monkeypatch.setattr(envs, "environments", lambda: made)
    assert offered("compare", "mlp", "--on", "torch==") == ["torch==2.11.0", "torch==2.12.0"]
    assert offered("compare", "mlp", "--on", "python==") == []


def test_stored_runs_are_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    assert offered("show", "") == []
    with open_store() as store:
        run = keep_whole(store, saved_run({"torch": 1e6, "jax": 2e6}))
    assert offered("show", "") == ["last", run]
    assert run in offered("diff", "last", run[:4])
    assert offered("compare", "--resume", "la") == ["last"]


def test_choices_are_offered() -> None:
    assert offered("compare", "mlp", "--mode", "infer,g") == ["infer,grad"]
    assert offered("compare", "mlp", "--conditions", "as") == ["as-found"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_fairlap(shell: str) -> None:
    assert "_FAIRLAP_COMPLETE" in output("completion", shell)
    assert invoke("completion", "cmd").exit_code == 2
