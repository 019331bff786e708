"""``fairlap pull-request``: the gate's status, one comment or the job's summary, and never the token in the output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from command_line import invoke
from comment_server import TOKEN, CommentServer, comment_server
from fairlap.race.run import Run
from fairlap.store.runs.run_file import load_run, save_run
from saved_runs import saved_run

PASSED, SLOWER, INCONCLUSIVE, NOT_COMPARABLE = 0, 1, 2, 3
EVENTS = Path(__file__).parent / "events"
SLOW = {"base": 1e6, "change": 1.2e6}


@pytest.fixture
def server() -> Iterator[CommentServer]:
    with comment_server() as running:
        yield running


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: CommentServer) -> Path:
    """Variables as GitHub Actions sets them; returns the summary."""
    summary = tmp_path / "summary.md"
    variables = {
        "GITHUB_API_URL": server.address,
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(EVENTS / "own_branch.json"),
        "GITHUB_REPOSITORY": "octo/parser",
        "GITHUB_RUN_ID": "77",
        "GITHUB_SERVER_URL": "https://github.test",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_TOKEN": TOKEN,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return summary


def judged(run: Run, *options: str) -> Result:
    save_run(Path("run.json"), run)
    done = invoke("pull-request", "run.json", *options)
    assert TOKEN not in done.output + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(
    ("run", "options", "status", "word"),
    [
        (saved_run(SLOW), (), SLOWER, "**slower**"),
        (saved_run(SLOW), ("--max-slowdown", "30%"), PASSED, "within"),
        (saved_run({"base": 1e6, "change": 1e6}), (), PASSED, "within"),
        (saved_run({"base": 1e6, "change": 0.8e6}), (), PASSED, "within"),
        (
            saved_run({"base": 1e6, "change": 1.03e6}),
            ("--max-slowdown", "3%", "--strict"),
            INCONCLUSIVE,
            "inconclusive",
        ),
        (saved_run(SLOW, blocks=4), (), PASSED, "inconclusive"),
        (saved_run(SLOW, blocks=4), ("--strict",), INCONCLUSIVE, "inconclusive"),
    ],
)
def test_the_comment_has_the_verdict_and_the_status_is_the_gates(
    job: Path, server: CommentServer, run: Run, options: tuple[str, ...], status: int, word: str
) -> None:
    assert judged(run, *options).exit_code == status
    [comment] = server.comments
    assert comment["body"].startswith("<!-- fairlap pull request: benchmark -->\n")
    assert word in comment["body"].splitlines()[2]
    assert "`change`" in comment["body"]
    assert comment["body"].endswith("(https://github.test/octo/parser/actions/runs/77)\n")
    assert job.read_text() == comment["body"] + "\n"


def test_a_second_push_updates_the_comment(job: Path, server: CommentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(saved_run(SLOW))
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    judged(saved_run({"base": 1e6, "change": 1e6}))
    [comment] = server.comments
    assert "within" in comment["body"]


@pytest.mark.parametrize("event", ["fork", "deleted_fork"])
def test_a_change_from_a_fork_gets_the_summary_and_the_same_status(
    job: Path, server: CommentServer, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(EVENTS / f"{event}.json"))
    done = judged(saved_run(SLOW))
    assert (done.exit_code, server.requests) == (SLOWER, [])
    assert "**slower**" in job.read_text()
    assert "fork" in done.stderr


def test_a_trusted_job_for_a_fork_comments(job: Path, server: CommentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(EVENTS / "fork.json"))
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request_target")
    judged(saved_run(SLOW))
    assert len(server.comments) == 1


@pytest.mark.parametrize("change", [{"GITHUB_TOKEN": ""}, {"GITHUB_EVENT_PATH": str(EVENTS / "push.json")}])
def test_without_a_token_or_a_pull_request_there_is_no_comment(
    job: Path, server: CommentServer, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    assert judged(saved_run(SLOW)).exit_code == SLOWER
    assert server.requests == []
    assert "**slower**" in job.read_text()


def test_another_ci_system_names_the_number_and_the_repository(
    job: Path, server: CommentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    judged(saved_run(SLOW), "--number", "42")
    assert server.requests[-1][1] == "/repos/octo/parser/issues/42/comments"


@pytest.mark.parametrize("failure", [403, 404, 500, "rubbish", "close"])
@pytest.mark.parametrize(("run", "status"), [(saved_run(SLOW), SLOWER), (saved_run({"base": 1, "change": 1}), PASSED)])
def test_a_comment_that_fails_changes_no_status(
    job: Path, server: CommentServer, failure: int | str, run: Run, status: int
) -> None:
    server.fails["POST"] = failure
    done = judged(run)
    assert done.exit_code == status
    assert "[E_COMMENT]" in done.stderr
    assert job.exists()


def test_programs_that_race_do_not_inherit_the_token(job: Path) -> None:
    judged(saved_run(SLOW), "--no-comment")
    assert "GITHUB_TOKEN" not in os.environ


def test_a_body_that_was_written_is_posted_later_with_the_address_of_the_charts(
    job: Path, server: CommentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(saved_run(SLOW), "--no-comment", "--body", "comment.md")
    assert server.requests == []
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    done = invoke("pull-request", "--post", "comment.md", "--charts", "https://github.test/artifact/5")
    assert done.exit_code == 0
    [comment] = server.comments
    assert comment["body"].endswith("](https://github.test/artifact/5)\n")
    assert comment["body"].count("https://") == 1


def test_what_a_benchmark_printed_is_no_markup(job: Path, server: CommentServer) -> None:
    run = saved_run(SLOW)
    run.processes[1].outcome = "disqualified"
    run.processes[1].message = "</code> @everyone [x](http://evil.test) | `a`"
    assert judged(run).exit_code == NOT_COMPARABLE
    assert "@everyone" not in server.comments[0]["body"]
    assert "](http://evil" not in server.comments[0]["body"]


@pytest.mark.parametrize(
    ("arguments", "variables", "code"),
    [
        ([], {}, "E_PULL_REQUEST"),
        (["run.json", "--command", "x"], {}, "E_PULL_REQUEST"),
        (["run.json", "--name", "a --> b"], {}, "E_PULL_REQUEST"),
        (["--post", "none.md"], {}, "E_PULL_REQUEST"),
        (["none.json"], {}, "E_REQUEST"),
        (["run.json", "--baseline", "main"], {}, "E_REQUEST"),
        (["run.json"], {"GITHUB_API_URL": "http://api.github.test"}, "E_PULL_REQUEST"),
        (["run.json"], {"GITHUB_EVENT_PATH": "/none"}, "E_PULL_REQUEST"),
        (["run.json"], {"GITHUB_EVENT_PATH": __file__}, "E_PULL_REQUEST"),
        (["--command", "x 'y"], {}, "E_COMMAND"),
    ],
)
def test_a_call_that_makes_no_sense_is_one_line_and_never_passes(
    job: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], variables: dict[str, str], code: str
) -> None:
    save_run(Path("run.json"), saved_run(SLOW))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = invoke("pull-request", "--base", ".", *arguments)
    assert done.exit_code == NOT_COMPARABLE
    assert f"[{code}]" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


@pytest.mark.parametrize("option", ["--call", "--command", "--max-slowdown"])
def test_an_option_given_twice_races_nothing(job: Path, option: str) -> None:
    done = invoke("pull-request", "--base", ".", "--call", "a.b", option, "3%", option, "4%")
    assert done.exit_code == NOT_COMPARABLE
    assert option in done.stderr
    assert not job.exists()


BENCH = "import sys, time\ntime.sleep({seconds})\nprint('done')\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, job: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a shallow clone of a merge of a change into its base, as a job has it; the base lacks only speed."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "--quiet")
    (origin / "bench.py").write_text(BENCH.format(seconds=0.001))
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "base")
    git(origin, "checkout", "--quiet", "-b", "change")
    (origin / "bench.py").write_text(BENCH.format(seconds=0.05))
    (origin / "kernel.py").write_text("import time\ndef run(): time.sleep(0.002)\n")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "change")
    git(origin, "checkout", "--quiet", "main")
    git(origin, "merge", "--quiet", "--no-ff", "-m", "merge", "change")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", str(clone))
    monkeypatch.chdir(clone)
    return clone


def race(*arguments: str) -> Result:
    return invoke("pull-request", *arguments, "--blocks", "2", "--no-comment", "--body", "body.md", "-o", "run.json")


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_command_races_in_both_checkouts_and_the_base_is_gone_afterwards(repository: Path, job: Path) -> None:
    done = race("--command", f"{sys.executable} bench.py", "--prepare", "touch prepared", "--same-output")
    assert done.exit_code == PASSED, done.output  # two blocks decide nothing
    run = load_run(Path("run.json"))
    assert [name.text for name in run.plan.contestants] == ["base", "change"]
    assert {process.outcome for process in run.processes} == {"finished"}
    medians = {name: [p.headline_ns for p in run.processes if p.contestant == name] for name in ("base", "change")}
    assert max(medians["base"]) < min(medians["change"])
    assert (repository / "prepared").exists()
    assert git(repository, "worktree", "list").count("\n") == 0
    assert "`change`" in job.read_text()


@pytest.mark.slow_but("passed0")
@pytest.mark.sanitized
@pytest.mark.parametrize(("passed", "kept"), [((), set()), (("--pass-env", "NPM_TOKEN"), {"NPM_TOKEN"})])
def test_what_prepares_a_checkout_gets_no_token(
    repository: Path, job: Path, monkeypatch: pytest.MonkeyPatch, passed: tuple[str, ...], kept: set[str]
) -> None:
    names = {"GH_TOKEN", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "NPM_TOKEN"}
    for name in names:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PLAIN", "kept")
    race("--command", "./none", "--prepare", f"env > {repository}/seen", *passed)
    seen = {line.partition("=")[0] for line in (repository / "seen").read_text().splitlines()}
    assert "PLAIN" in seen
    assert seen & names == kept


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_callable_is_imported_from_both_checkouts(repository: Path, job: Path) -> None:
    base = repository.parent / "base"
    base.mkdir()
    (base / "kernel.py").write_text("def run(): pass\n")
    assert race("--call", "kernel.run", "--base", str(base)).exit_code == PASSED
    assert {each.in_force["file"] for each in load_run(Path("run.json")).processes} == {
        str(folder / "kernel.py") for folder in (base, repository)
    }


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_base_that_lacks_the_callable_is_not_comparable(repository: Path, job: Path) -> None:
    done = race("--call", "kernel.run")
    assert done.exit_code == NOT_COMPARABLE
    assert "not comparable" in job.read_text()


@pytest.mark.slow_but("arguments0", "arguments5")
@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--command", f"{sys.executable} kernel.py"), "E_BASELINE"),
        (("--command", "./none"), "E_BASELINE"),
        (("--command", "true", "--base", "nonesuch"), "E_BASELINE"),
        (("--command", "true", "--base", "--upload-pack=touch hacked"), "E_BASELINE"),
        (("--command", "true", "--prepare", "test -e kernel.py"), "E_BASELINE"),
        (("--command", "true", "--prepare", "test ! -e kernel.py"), "E_PREPARE"),
    ],
)
def test_without_a_base_that_runs_there_is_nothing_to_compare(
    repository: Path, job: Path, arguments: tuple[str, ...], code: str
) -> None:
    done = race(*arguments)
    assert done.exit_code == NOT_COMPARABLE, done.output
    assert f"[{code}]" in done.stderr
    assert "not comparable" in job.read_text()
    assert Path("body.md").read_text() == job.read_text().removesuffix("\n")
    assert not Path("hacked").exists()


@pytest.mark.sanitized
def test_without_a_commit_to_compare_with_nothing_runs(tmp_path: Path, job: Path) -> None:
    done = race("--command", "true")
    assert done.exit_code == NOT_COMPARABLE
    assert "[E_BASELINE]" in done.stderr


def test_files_have_the_verdict_of_the_gate(job: Path) -> None:
    options = ("--max-slowdown", "30%", "-o", "result.junit.xml", "-o", "rows.md")
    assert judged(saved_run(SLOW), *options).exit_code == PASSED
    assert 'failures="0"' in Path("result.junit.xml").read_text()
    judged(saved_run(SLOW), "-o", "result.junit.xml")
    assert 'failures="1"' in Path("result.junit.xml").read_text()
    assert Path("rows.md").exists()


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(job: Path) -> None:
    done = judged(saved_run(SLOW), "-o", "nowhere/rows.md")
    assert (done.exit_code, "[E_FILE]" in done.stderr) == (NOT_COMPARABLE, True)
    done = judged(saved_run(SLOW), "-o", "log.mllog")
    assert (done.exit_code, "[E_OUTPUT_FORMAT]" in done.stderr) == (NOT_COMPARABLE, True)
