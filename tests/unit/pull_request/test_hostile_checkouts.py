"""A change whose code ran in its checkout gets no other code run by git, and leaves no process of its preparation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fairlap.pull_request.checkouts import NotPrepared, base_checkout, prepare
from machine_marks import needs_proc
from processes_seen import wait_until

pytestmark = needs_proc


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "file.txt").write_text("old\n")
    (folder / ".gitattributes").write_text("*.txt filter=evil\n")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "base")
    return folder


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_no_hook_monitor_or_filter_of_the_checkout_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\nenv > {tmp_path}/PWNED\ncat\n")
    script.chmod(0o755)
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (repository / ".git/hooks" / hook).symlink_to(script)
    settings = {"core.fsmonitor": script, "filter.evil.smudge": script, "filter.evil.clean": script,
                "filter.evil.required": "true"}  # fmt: skip
    for name, value in settings.items():
        git(repository, "config", name, str(value))
    (tmp_path / "PWNED").unlink(missing_ok=True)
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t")
    with base_checkout(repository, "HEAD") as base:
        assert (base / "file.txt").read_text() == "old\n"
    assert not (tmp_path / "PWNED").exists()


def test_git_gets_no_secret_of_the_job(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter of the user's own configuration runs, as that of git-lfs does."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    git(repository, "config", "--global", "filter.evil.smudge", f"sh -c 'env > {tmp_path}/SEEN; cat'")
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cr3t")
    with base_checkout(repository, "HEAD") as base:
        assert (base / "file.txt").read_text() == "old\n"
    assert "s3cr3t" not in (tmp_path / "SEEN").read_text()


def sleepers(seconds: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", seconds.encode()]:
            found.append(int(folder.name))
    return found


def gone(seconds: str) -> bool:
    ends_s = time.monotonic() + 120
    while sleepers(seconds) and time.monotonic() < ends_s:
        time.sleep(0.05)
    return not sleepers(seconds)


def test_a_daemon_of_the_preparation_ends_with_it(tmp_path: Path) -> None:
    prepare(tmp_path, "setsid sleep 98761 & exit 0", is_base=False)
    assert gone("98761")
    with pytest.raises(NotPrepared, match="status 3"):
        prepare(tmp_path, "exit 3", is_base=False)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_preparation_ends_with_the_command_however_that_ends(tmp_path: Path, by: signal.Signals) -> None:
    program = (
        "from pathlib import Path; from fairlap.pull_request.checkouts import prepare; "
        f"prepare(Path({str(tmp_path)!r}), 'setsid sleep 98762 & sleep 98762', is_base=False)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, env=dict(os.environ)) as command:
        wait_until(lambda: len(sleepers("98762")) == 2)
        command.send_signal(by)
        command.wait(120)
    assert gone("98762")
