"""Programs race like callables: run once for each call, with status 0 and, if asked, the same output."""

from __future__ import annotations

import hashlib
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Contestant, Settings, Unsupported
from fairlap.frameworks.programs.command import (
    CommandFailed,
    CommandLine,
    OtherOutput,
    fingerprint,
    output_of,
    version_of,
)
from fairlap.models.registry import find
from fairlap.models.workload import Workload

pytestmark = pytest.mark.sanitized


def work(model: str = "callable") -> Workload:
    found = find(model)
    return Workload(found.spec, found.package, 1, "infer", "fp32", {}, {"ticket": np.ones((1, 4), np.float32)})


def prepared(run: str, **options: str) -> Contestant:
    return CommandLine().prepare(work(), Settings(1, options={"run": run, **options}), lambda name: nullcontext())


def test_it_runs_once_for_each_call_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "count.sh").write_text("#!/bin/sh\necho $1 >> calls\n")
    (tmp_path / "count.sh").chmod(0o755)
    made = prepared("./count.sh 'two words'", folder=str(tmp_path))
    call = made.bind(work().inputs)
    [answer] = made.outputs(call()).values()
    np.testing.assert_array_equal(answer, np.ones((1, 4)))
    call()
    assert (tmp_path / "calls").read_text() == "two words\n" * 2
    assert made.in_force["program"] == str(tmp_path / "count.sh")


@pytest.mark.parametrize(
    ("run", "value"),
    [
        ("sh -c 'echo first >&2; echo no such thing >&2; exit 3'", "status 3: no such thing"),
        ("sh -c 'kill -SEGV $$'", "SIGSEGV"),
        ("false", "status 1"),
        ("sh -c 'echo bad option >&2; echo See --help. >&2; exit 2'", "status 2: bad option"),
        ("sh -c 'echo See --help. >&2; exit 2'", "status 2: See --help."),
    ],
)
def test_a_program_that_fails_says_how(run: str, value: str) -> None:
    call = prepared(run).bind(work().inputs)
    with pytest.raises(CommandFailed, match=value) as raised:
        call()
    assert raised.value.code == "E_COMMAND"
    assert len(str(raised.value).splitlines()) == 1


NO_SERVICE = """\
docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?

Run 'docker run --help' for more information
"""


def test_what_runs_in_a_container_has_no_figures_of_its_client_and_fails_in_one_line(tmp_path: Path) -> None:
    """Programs of docker's name stand in for it: one that runs the command itself, and one without its service."""
    for name, code in (("works", 'shift 4; "$@"'), ("alone", f"cat >&2 <<'END'\n{NO_SERVICE}END\nexit 125")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "docker").write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name / "docker").chmod(0o755)
    made = prepared(f"{tmp_path}/works/docker run --rm image touch {tmp_path}/ran")
    made.bind(work().inputs)()
    assert (tmp_path / "ran").exists()
    assert (made.work_in, made.cpu_times, made.peak_of_runs) == ("other_server", None, None)
    assert prepared("echo docker").work_in == "child"
    with pytest.raises(CommandFailed, match="status 125: docker: Cannot connect") as raised:
        prepared(f"{tmp_path}/alone/docker run --rm image true").bind(work().inputs)()
    assert len(str(raised.value).splitlines()) == 1


NO_IMAGE = """\
Unable to find image 'none:1' locally
docker: Error response from daemon: Get "https://registry.example/v2/": no such host

Run 'docker run --help' for more information
"""


def test_an_image_that_is_missing_is_named(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{NO_IMAGE}END\nexit 125")
    docker.chmod(0o755)
    with pytest.raises(CommandFailed, match=r"status 125: no image 'none:1' is here, .* no such host") as raised:
        prepared(f"{docker} run --rm none:1 true").bind(work().inputs)()
    assert len(str(raised.value).splitlines()) == 1


def test_what_a_program_prints_must_be_what_all_print() -> None:
    wanted = fingerprint(b"five\n")
    made = prepared("echo five", output=wanted)
    made.outputs(made.bind(work().inputs)())
    made = prepared("echo four", output=wanted)
    ticket = made.bind(work().inputs)()  # of the same size, which is all that a timed call looks at
    with pytest.raises(OtherOutput) as raised:
        made.outputs(ticket)
    assert raised.value.code == "E_OUTPUT"
    with pytest.raises(OtherOutput, match="4 bytes, not 5"):
        prepared("echo six", output=wanted).bind(work().inputs)()


def test_output_of_an_earlier_call_is_not_taken_for_that_of_a_later_one(tmp_path: Path) -> None:
    (tmp_path / "once.sh").write_text("test -e printed || echo five\ntouch printed\n")
    made = prepared("sh once.sh", folder=str(tmp_path), output=fingerprint(b"five\n"))
    call = made.bind(work().inputs)
    call()
    with pytest.raises(OtherOutput, match="0 bytes"):
        call()


def test_much_output_does_not_block() -> None:
    run = f'{sys.executable} -c \'import sys; [sys.stderr.write("x" * 10**6) for _ in range(3)]; print("y" * 10**6)\''
    assert output_of(run, "") == fingerprint(b"y" * 10**6 + b"\n")


def test_the_run_for_the_output_of_all_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_TOKEN", "x")
    run = "sh -c 'echo $OWN_TOKEN'"
    assert output_of(run, "") == fingerprint(b"\n")
    assert output_of(run, "", passed=["OWN_TOKEN"]) == fingerprint(b"x\n")


@pytest.mark.parametrize("run", ["./none", "no-such-program-xyz", "/", "/etc/passwd"])
def test_what_is_no_program_is_refused(run: str) -> None:
    with pytest.raises(CommandFailed, match="not an executable program"):
        prepared(run)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="not a folder"):
        prepared("true", folder=str(tmp_path / "none"))


def test_the_output_that_all_must_have_comes_from_a_program_that_works() -> None:
    with pytest.raises(InvalidRequest) as raised:
        output_of("false", "")
    assert raised.value.code == "E_COMMAND"


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [("mlp", {"run": "true"}, "not models"), ("callable", {}, "name the program"), ("callable", {"ru": "x"}, "'ru'")],
)
def test_what_it_cannot_do_is_refused(model: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        CommandLine().prepare(work(model), Settings(1, options=options), lambda name: nullcontext())


def test_two_builds_of_a_program_have_two_versions(tmp_path: Path) -> None:
    versions = []
    for text in ("#!/bin/sh\n", "#!/bin/sh\ntrue\n"):
        (tmp_path / "program").write_text(text)
        (tmp_path / "program").chmod(0o755)
        framework = CommandLine()
        settings = Settings(1, options={"run": "./program", "folder": str(tmp_path)})
        framework.prepare(work(), settings, lambda name: nullcontext())
        versions.append(framework.version())
    assert len(set(versions)) == 2


def test_what_an_interpreter_or_launcher_runs_is_part_of_the_version(tmp_path: Path) -> None:
    def short(file: Path) -> str:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]

    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("pass")
    other.write_text("print(1)")
    python = Path(sys.executable).resolve()
    assert version_of([sys.executable, "one.py"], str(tmp_path)) == f"sha256:{short(python)}+{short(one)}"
    assert version_of([sys.executable, "-X", "dev", str(other), str(one)], "").endswith(f"+{short(other)}")
    assert version_of(["env", "A=1", sys.executable, str(one)], "") == version_of(["env", str(one)], "") != ""
    assert version_of([sys.executable, "-c", "pass"], str(tmp_path)) == ""
    assert version_of(["sh", "-c", "exit 0"], str(tmp_path)) == ""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert version_of(["./program", "one.py"], str(tmp_path)) == f"sha256:{short(program)}"
