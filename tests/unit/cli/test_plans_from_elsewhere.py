"""A plan, run file or stored run of somebody else reaches nothing that its user did not allow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import error_code, fairlap, invoke, output, refusal

RACE = ("--blocks", "1", "--seconds", "0.05", "--threads", "1", "--conditions", "as-found", "--quiet")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    _on_machine("mine", tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _on_machine(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / name))


@pytest.fixture
def foreign(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Draw a plan on another machine, whose program writes a file."""
    with monkeypatch.context() as there:
        _on_machine("other", here, there)
        commands = (f"--command=a=touch {here}/PWN", "--command=b=true")
        output("compare", *commands, *RACE, "--dry-run", "--save-plan", here / "plan.json")
    return here / "plan.json"


def test_a_plan_from_elsewhere_shows_its_commands_and_runs_none(foreign: Path, here: Path) -> None:
    done = invoke("compare", "--plan", foreign, "--no-store")
    assert getattr(done.exception, "code", "") == "E_PLAN_TRUST"
    assert f'command "touch {here}/PWN" in "{here}"' in done.stderr
    assert f'command "true" in "{here}"' in done.stderr
    assert not (here / "PWN").exists()


def test_it_is_refused_as_an_argument_and_for_a_dry_run_and_under_load(foreign: Path, here: Path) -> None:
    for arguments in (["compare", foreign], ["compare", "--plan", foreign, "--dry-run"], ["load", "--plan", foreign]):
        assert refusal(*arguments).code == "E_PLAN_TRUST"
    assert not (here / "PWN").exists()


def test_a_process_that_nobody_watches_ends_with_status_2_and_one_line_with_a_code(foreign: Path) -> None:
    done = fairlap("compare", "--plan", foreign, "--no-store", after="< /dev/null")
    assert done.returncode == 2
    [*shown, last] = done.stderr.splitlines()
    assert last.endswith("[E_PLAN_TRUST]")
    assert all(line.startswith("fairlap: the plan reaches ") for line in shown)


def test_it_runs_once_its_user_allows_it_and_its_run_is_run_again_without_asking(foreign: Path, here: Path) -> None:
    assert invoke("compare", "--plan", foreign, "--trust").exit_code == 0
    assert (here / "PWN").exists()
    assert invoke("rerun", "last").exit_code == 0
    assert invoke("compare", "--plan", foreign, "--dry-run").exit_code == 0


def test_a_changed_command_is_asked_about_again(foreign: Path, here: Path) -> None:
    output("compare", "--plan", foreign, "--no-store", "--trust")
    foreign.write_text(foreign.read_text().replace("/PWN", "/OTHER"))
    assert refusal("compare", "--plan", foreign, "--no-store").code == "E_PLAN_TRUST"
    assert not (here / "OTHER").exists()


@pytest.mark.slow
def test_a_plan_that_this_machine_saved_is_not_asked_about(here: Path) -> None:
    output("compare", f"--command=a=touch {here}/OWN", *RACE, "--dry-run", "--save-plan", "own.json")
    assert invoke("compare", "--plan", "own.json", "--no-store").exit_code == 0
    assert (here / "OWN").exists()


def test_a_command_that_was_allowed_in_one_folder_is_asked_about_in_another(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``./bench`` is another program there."""
    (here / "other").mkdir()
    output("compare", "--command=a=./bench", "--command=b=true", *RACE, "--dry-run", "--save-plan", "own.json")
    assert invoke("compare", "--plan", "own.json", "--dry-run", "--no-store").exit_code == 0
    monkeypatch.chdir(here / "other")
    assert refusal("compare", "--plan", "../own.json", "--no-store").code == "E_PLAN_TRUST"


def test_what_was_raced_in_a_sandbox_is_asked_about_outside_of_one(foreign: Path, here: Path) -> None:
    commands = (f"--command=a=touch {here}/PWN", "--command=b=true")
    invoke("compare", *commands, *RACE, "--sandbox", "--dry-run")
    assert refusal("compare", "--plan", foreign, "--no-store").code == "E_PLAN_TRUST"
    assert not (here / "PWN").exists()


def test_a_command_is_not_taken_for_another_one_and_its_folder(here: Path) -> None:
    (here / "legit").mkdir()
    apart = [["run", "true"], ["folder", f"{here}/legit"]]
    invoke("compare", "--plan", _plan_of(here, contestant={"framework": "command", "options": apart}), "--trust")
    joined = [["run", f'true" in "{here}/legit']]
    plan = _plan_of(here, contestant={"framework": "command", "options": joined})
    assert refusal("compare", "--plan", plan, "--no-store").code == "E_PLAN_TRUST"


def test_built_in_models_in_installed_frameworks_reach_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        _on_machine("other", here, there)
        output("compare", "mlp", "--on", "torch,jax", *RACE, "--dry-run", "--save-plan", "plain.json")
    assert "torch" in output("compare", "--plan", "plain.json", "--dry-run")


def test_a_run_file_and_an_imported_run_are_shown_and_not_run(
    foreign: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as there:
        _on_machine("other", here, there)
        output("compare", "--plan", foreign, "--trust", "--no-store", "-o", "run.json")
    (here / "PWN").unlink()
    assert refusal("rerun", "run.json", "--no-store").code == "E_PLAN_TRUST"
    imported = invoke("runs", "import", "run.json")
    assert imported.exit_code == 0
    assert f'command "touch {here}/PWN" in' in imported.stderr
    assert refusal("rerun", "last").code == "E_PLAN_TRUST"
    assert not (here / "PWN").exists()
    assert invoke("rerun", "last", "--trust").exit_code == 0
    assert (here / "PWN").exists()


def _plan_of(here: Path, *, contestant: dict[str, Any] | None = None, work: dict[str, Any] | None = None) -> Path:
    output("compare", "mlp", "--on", "torch", *RACE, "--dry-run", "--save-plan", here / "changed.json")
    plan = json.loads((here / "changed.json").read_text())
    plan["contestants"][0] |= contestant or {}
    plan["works"][0] |= work or {}
    (here / "changed.json").write_text(json.dumps(plan))
    return here / "changed.json"


@pytest.mark.parametrize(
    "version", [" @ file:///tmp/evil", "==1 --index-url http://x", "-r x", "==1\n", "2.0", "==a:b"]
)
def test_a_version_in_a_plan_is_checked_as_on_the_command_line(here: Path, version: str) -> None:
    plan = _plan_of(here, contestant={"version": version})
    assert "version" in str(refusal("compare", "--plan", plan, "--trust", "--no-store"))


def test_a_framework_in_a_plan_is_a_name(here: Path) -> None:
    plan = _plan_of(here, contestant={"framework": "x @ file:///tmp/evil"})
    assert "framework" in str(refusal("compare", "--plan", plan, "--trust", "--no-store"))


SOURCE = {"text": "m.keras", "path": "/m/m.keras", "folder": "/m"}


@pytest.mark.parametrize(
    ("contestant", "work", "line"),
    [
        ({"version": "==2.13.0"}, {}, "package torch==2.13.0"),
        ({"framework": "", "program": "./w"}, {}, "program {here}/w"),
        ({"framework": "python", "options": [["call", "os.abort"]]}, {}, 'callable "os.abort" in "{here}"'),
        ({"framework": "http", "options": [["url", "http://127.0.0.1:1/x"]]}, {}, 'server "http://127.0.0.1:1/x"'),
        ({"options": [["provider", "/tmp/evil.so"]]}, {}, 'option "provider=/tmp/evil.so" of torch'),
        ({}, {"source": {**SOURCE, "trust": True}}, "model /m/m.keras, which may run code when it is read"),
        ({}, {"source": {**SOURCE, "inputs": "/m/x.py:f"}}, "inputs /m/x.py:f"),
        ({}, {"source": {**SOURCE, "labels": "/m/y.npy"}}, "labels /m/y.npy"),
        ({}, {"start": {"path": "/m/w.npz", "sha256": "0"}}, "weights /m/w.npz"),
        ({}, {"scale": {"threads": 1, "ranks": 2, "hosts": ["other"]}}, "host other"),
        ({}, {"train_on": {"text": "x", "path": "/m/x.csv"}}, "training data /m/x.csv"),
        ({}, {"load": {"percentile": 0.9, "bound_s": None, "logs": "/m/logs"}}, "folder /m/logs, which is written"),
        (
            {"framework": "command", "options": [["run", "sh -c TOKEN=`touch${IFS}/tmp/PWN`"]]},
            {},
            'command "sh -c TOKEN=`touch${IFS}/tmp/PWN`" in "{here}"',
        ),
    ],
)
def test_whatever_a_plan_reaches_is_shown(
    here: Path, contestant: dict[str, Any], work: dict[str, Any], line: str
) -> None:
    done = invoke("compare", "--plan", _plan_of(here, contestant=contestant, work=work), "--no-store")
    assert getattr(done.exception, "code", "") == "E_PLAN_TRUST"
    assert f"the plan reaches {line.replace('{here}', str(here))}" in done.stderr


def test_a_plan_from_elsewhere_locks_no_clock_that_was_not_allowed(here: Path) -> None:
    file = _plan_of(here)
    file.write_text(json.dumps({**json.loads(file.read_text()), "device": "cuda:0", "lock_clocks": "1410"}))
    done = invoke("compare", "--plan", file, "--no-store")
    assert getattr(done.exception, "code", "") == "E_PLAN_TRUST"
    assert "the plan reaches the clock of the GPU, which is locked at 1410" in done.stderr


def test_a_request_file_cannot_allow_code_to_run(here: Path) -> None:
    (here / "r.toml").write_text('models = ["m.keras"]\ncontestants = ["torch"]\ntrust = true\n')
    done = fairlap("compare", "r.toml", "--no-store")
    assert error_code(done) == "E_SOURCE_TRUST"


def test_a_store_from_elsewhere_allows_nothing(foreign: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        _on_machine("other", here, there)
        there.setenv("FAIRLAP_STORE", str(here / "theirs.sqlite"))
        output("compare", "--plan", foreign, "--trust")
    monkeypatch.setenv("FAIRLAP_STORE", str(here / "theirs.sqlite"))
    (here / "PWN").unlink()
    for arguments in (["rerun", "last"], ["compare", "--resume", "last"]):
        assert refusal(*arguments).code == "E_PLAN_TRUST"
    assert not (here / "PWN").exists()
