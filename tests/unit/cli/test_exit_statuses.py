"""The exit statuses in docs/reference/command-line.md are those of the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import error_code, fairlap, here, invoke
from fairlap.cli import STATUSES as OF_LOST_OUTPUT
from fairlap.render.bundle.archive import packed
from fairlap.render.bundle.contents import RUN
from fairlap.store.runs.run_file import save_run
from forged_bundles import parts_of
from measured_runs import store_measured_run
from saved_runs import saved_run

PAGE = (Path(__file__).parents[3] / "docs/reference/command-line.md").read_text()

# Statuses that need fakes of their own are asserted beside those: 0 and 1 of `collectives`, `self-test`, `sweep` and
# `runs push`, 3 of `verify`, and those of signals, in test_interrupts.py.
STATUSES = [
    ("gate even.json --baseline torch", 0),
    ("gate slower.json --baseline torch", 1),
    ("gate spread.json even.json --strict", 2),
    ("gate even.json even.json", 3),
    ("gate", 3),
    ("diff even.json slower.json", 0),
    ("diff even.json even.json", 1),
    ("diff even.json none.json", 2),
    ("stale", 0),
    ("stale --model none", 2),
    ("verify kept.fairlap", 0),
    ("verify changed.fairlap", 1),
    ("verify even.json", 2),
    ("convert none.onnx --for torch", 2),
    ("collectives --on onnxruntime", 2),
    ("sweep", 2),
    ("time os:getpid --samples 2", 0),
    ("time os:getpid os:getppid --blocks 2 --seconds 2ms", 1),
    ("time my_kernels:broken --samples 2", 2),
    ("history mlp", 0),
    ("history none", 2),
    ("runs push", 2),
    ("self-test none --on torch", 2),
    ("show last", 0),
    ("show none", 2),
    ("list models", 0),
    ("none", 2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("statuses")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_STORE", str(made / "runs.sqlite"))
        patched.syspath_prepend(made)
        patched.chdir(made)
        store_measured_run()
        (made / "my_kernels.py").write_text("def broken():\n    raise ValueError('no')\n")
        save_run(made / "even.json", saved_run({"torch": 1e6, "jax": 1e6}))
        save_run(made / "slower.json", saved_run({"torch": 1e6, "jax": 1.2e6}, seed=1))
        save_run(made / "spread.json", saved_run({"torch": 1.02e6, "jax": 1.02e6}, seed=2, spread=0.05))
        assert invoke("bundle", "last", "--no-page", "-o", "kept.fairlap").exit_code == 0
        parts = parts_of((made / "kept.fairlap").read_bytes())
        (made / "changed.fairlap").write_bytes(packed({**parts, RUN: parts[RUN].replace(b"torch", b"tarch")}))
        yield made


def documented() -> dict[str, list[str]]:
    """Return the cells of the table, by the commands at the head of each line."""
    found = {}
    for line in re.findall(r"^\| ([^|]*`[a-z-]+(?: [a-z]+)?`[^|]*) \|(.*)\|$", PAGE, re.MULTILINE):
        for command in re.findall(r"`([a-z -]+)`", line[0]):
            found[command] = [cell.strip() for cell in line[1].split("|")]
    return found


@pytest.mark.parametrize(("line", "status"), STATUSES)
def test_a_command_ends_with_the_status_of_the_table(line: str, status: int, folder: Path) -> None:
    done = invoke(*line.split())
    code = getattr(done.exception, "exit_code", None)
    if code is None:
        code = done.exit_code if isinstance(done.exception, SystemExit | None) else 2  # main() ends so for all others
    assert code == status, done.output
    words = line.split()
    cells = documented().get(words[0]) or documented().get(" ".join(words[:2]))
    assert status < 3 if cells is None else cells[status]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("report even.json -o full.html", 1),
        ("export even.json -o full.csv", 1),
        ("show even.json -o full.md", 1),
        ("diff even.json slower.json -o full.json", 2),
        ("gate slower.json --baseline torch -o full.json", 3),
        ("doctor -o full.json", 2),
        ("gate even.json --baseline torch -o nowhere/gate.json", 3),
        ("report even.json -o nowhere/page.html", 2),
    ],
)
def test_a_full_disk_loses_a_file_and_a_folder_that_is_not_there_is_refused(
    line: str, status: int, folder: Path
) -> None:
    for word in line.split():
        if word.startswith("full.") and not (folder / word).is_symlink():
            (folder / word).symlink_to("/dev/full")
    done = here(*line.split(), cwd=folder)
    assert (done.returncode, error_code(done)) == (status, "E_FILE")


LOST = [
    ("gate even.json --baseline torch", 3),
    ("gate slower.json --baseline torch", 3),
    ("diff even.json slower.json", 2),
    ("diff even.json even.json", 2),
    ("stale", 2),
    ("verify kept.fairlap", 2),
    ("doctor", 2),
    ("show last", 1),
    ("show even.json", 1),
    ("history mlp", 1),
    ("across even.json slower.json", 1),
    ("export even.json", 1),
    ("runs", 1),
    ("list models", 1),
    ("explain E_REQUEST", 1),
    ("completion bash", 1),
    ("time os:getpid --samples 2", 1),
    ("gate --help", 3),
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("line", "status"), LOST)
def test_lost_output_does_not_end_with_the_status_of_a_verdict(
    line: str, status: int, as_json: bool, folder: Path
) -> None:
    words = line.split()
    if as_json:
        if words[0] in ("completion", "explain") or "--help" in words:
            pytest.skip("it is the same without --json")
        words.append("--json")
    done = here(*words, cwd=folder, output=Path("/dev/full"))
    assert (done.returncode, error_code(done)) == (status, "E_FILE")


def test_a_command_whose_status_1_is_a_verdict_has_another_one_for_lost_output() -> None:
    """By the table of the documentation; what is subject to options is set while the command runs."""
    by_options = {"suite run", "rerun --recheck"}
    of_files = {name for name, cells in documented().items() if "file could not be written" in cells[1]}
    losing = {"collectives", "runs push", "runs pull", "sweep"}  # whose 1 is that a result is lost
    verdicts = set(documented()) - of_files - losing - by_options
    assert verdicts == set(OF_LOST_OUTPUT) - {"suite"}


@pytest.mark.slow
def test_the_program_itself_ends_with_the_status_of_a_race(folder: Path) -> None:
    for words, status in ((("x=true",), 0), (("x=false",), 1)):
        race = ("compare", "--command", *words, "--blocks", 1, "-q", "--no-store")
        assert fairlap(*race, cwd=folder).returncode == status
    assert fairlap("compare", "nosuch", "--on", "torch", cwd=folder).returncode == 2
    gated = (
        "compare",
        "--command",
        "x=true",
        "--command",
        "y=true",
        "--max-slowdown",
        "90%",
        "--blocks",
        6,
        "--no-store",
    )
    assert fairlap(*gated, cwd=folder, after="> /dev/full").returncode == 3
    assert fairlap("time", "os:getpid", "--samples", 2, "-o", "f.json", after="> /dev/full", cwd=folder).returncode == 1


def test_a_gate_that_is_called_wrongly_has_a_status_of_its_own() -> None:
    for option in ("--max-slowdown=abc", "--basline=x"):
        assert invoke("gate", "last", option).exit_code == 3


@pytest.mark.parametrize("given", [("--memory-limit", "x"), ("--blocks", "1.5"), ("--port", "q")])
def test_a_number_that_is_none_is_refused_without_the_name_of_a_type(given: tuple[str, str]) -> None:
    command = ("serve",) if given[0] == "--port" else ("compare", "mlp")
    done = here(*command, *given)
    assert (done.returncode, error_code(done)) == (2, "E_REQUEST")
    assert given[1] in done.stderr
    assert "integer" not in done.stderr
