"""Text of others does not reach a terminal, a log or GitHub as something that is obeyed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import here, output
from fairlap.engine.measurement import Notice
from fairlap.printable import escaped, joined_lines, one_line
from fairlap.render.bundle.archive import packed
from fairlap.store.runs.run_file import SamplesOfProcess, encode_document, run_document
from forged_bundles import parts_of
from measured_runs import a_measured_run
from terminals import on_a_terminal, several_on_a_terminal

HOSTILE = (
    "x\x1b]0;PWN\x07\x1b[2J\x9b31m\u202egpj\u2066\u200b\u2028\x85\r\n::error ::spoof\n  ::set-env name=A::b\n"
    "##[error]spoof\n1 esc is the fastest\n\U000e0041"
)
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
SPOOFED = re.compile(r"^[ \t]*(::|1 esc|spoof)|##\[", re.MULTILINE)


def _on_a_terminal(*arguments: object, **variables: str) -> str:
    """Return what fairlap writes to a terminal as its standard output and standard error."""
    _, written = on_a_terminal(*arguments, variables=variables, columns=200)
    return written.replace("\r\n", "\n")  # the terminal's own line ends


def _require_harmless(written: str) -> None:
    assert "PWN" in written  # it was shown
    assert not OBEYED.findall(written)
    assert not SPOOFED.findall(written)
    assert "Traceback" not in written


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write_run(path: Path, began_at: str, *, loses: bool) -> Path:
    run, samples = a_measured_run(8)
    run.began_at = began_at
    lost = run.processes[3]
    if loses:
        lost.outcome, lost.code, lost.message, lost.details = "failed", "E_EXCEPTION", HOSTILE, HOSTILE
        lost.timings = {}
    for process in run.processes:
        process.warnings = [Notice("W_COARSE_CLOCK", f"coarse {HOSTILE}")]
        process.version, process.in_force = f"1 {HOSTILE}", {f"threads {HOSTILE}": HOSTILE}
    run.machine = {**run.machine, f"fact {HOSTILE}": HOSTILE, "cpu model": HOSTILE}
    run.ended_early = HOSTILE
    document = run_document(run)
    document.samples = [
        SamplesOfProcess(block, name, quantity, ns.tobytes())
        for (block, name), own in samples.items()
        for quantity, ns in own.items()
        if not loses or (block, name) != (lost.block, lost.contestant)
    ]
    path.write_text(json.dumps(_renamed(json.loads(encode_document(document)), "torch", f"torch {HOSTILE}")))
    return path


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: each if key == "framework" else _renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, old, new) for each in value]
    return new if value == old else value


SHOWING: dict[str, tuple[object, ...]] = {
    "json": ("show", "last", "--json"),
    "show": ("show", "last", "--errors"),
    "runs": ("runs",),
    "history": ("history", "mlp"),
    "across": ("across", "run.json"),
    "gate inside": ("gate", "other.json", "--baseline", "jax:fast"),
    "gate between": ("gate", "run.json", "other.json"),
    "diff": ("diff", "run.json", "other.json"),
    "rerun": ("rerun", "run.json"),
    "verify": ("verify", "x.fairlap"),
}
ERRORS: tuple[tuple[object, ...], ...] = (
    ("rerun", f"{HOSTILE}-none.json"),
    ("across", f"{HOSTILE}-none.json"),
    ("verify", HOSTILE),
    ("compare", f"{HOSTILE}.onnx"),
    ("gate", f"{HOSTILE}.json", "--baseline", "torch"),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what a terminal gets of each command, which one process runs one after the other.

    The run file is as a stranger sends it: hostile in names, messages, facts, versions, settings and warnings.
    """
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLAP_STORE", str(folder / "runs.sqlite"))
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        patch.chdir(folder)
        _write_run(folder / "other.json", "2026-01-03T03:04:05+00:00", loses=False)
        _write_run(folder / "run.json", "2026-01-02T03:04:05+00:00", loses=True)
        output("runs", "import", "run.json")
        output("bundle", "run.json", "-o", "x.fairlap", "--no-page")
        _change_a_sample(Path("x.fairlap"))
        (folder / f"{HOSTILE}.json").write_text("{}")
        texts = several_on_a_terminal([*SHOWING.values(), *ERRORS], columns=200)
    keys = [*SHOWING, *(str(words) for words in ERRORS)]
    return {key: text.replace("\r\n", "\n") for key, text in zip(keys, texts, strict=True)}


@pytest.mark.parametrize("command", [each for each in SHOWING if each != "json"])
def test_a_run_file_of_a_stranger_commands_no_terminal(written: dict[str, str], command: str) -> None:
    _require_harmless(_own_controls_removed(written[command]))


def _change_a_sample(bundle: Path) -> None:
    parts = parts_of(bundle.read_bytes())
    bundle.write_bytes(packed({**parts, "samples/00000.f64": b"\0" * 8, f"more {HOSTILE}": b""}))


def test_the_documents_of_json_are_the_same_and_hold_no_raw_character(written: dict[str, str]) -> None:
    _require_harmless(written["json"])
    assert json.loads(written["json"])["ended_early"] == HOSTILE


WORKER = """#!{python}
import json, os, sys
requests, replies = (int(sys.argv[sys.argv.index(name) + 1]) for name in ("--read", "--write"))
def send(**message):
    os.write(replies, json.dumps(message).encode() + b"\\n")
send(type="hello", protocol=3, language="x", pid=os.getpid(), holds_orphans=False)
os.read(requests, 100000)
send(type="failed", phase="build", kind="exception", message={message!r}, traceback={message!r})
"""


@pytest.mark.parametrize("where", ["a terminal", "no terminal", "no terminal, --quiet"])
def test_a_worker_that_fails_commands_no_terminal(place: Path, where: str) -> None:
    (place / "worker").write_text(WORKER.format(python=sys.executable, message=HOSTILE))
    (place / "worker").chmod(0o755)
    short = ("--blocks", "1", "--seconds", "0.02", "--threads", "1", "--conditions", "as-found", "--no-store")
    race = ("compare", "mlp", "--on", "./worker", *short, *["--quiet"] * where.endswith("--quiet"))
    if where == "a terminal":
        _require_harmless(_own_controls_removed(_on_a_terminal(*race)))
    else:
        done = here(*race)
        _require_harmless(done.stdout + done.stderr)


def _own_controls_removed(written: str) -> str:
    """Remove what a progress bar draws with: the cursor, erased lines, colours."""
    return re.sub(r"\x1b\[(\?25[lh]|2K|1A|[0-9;]*m)|\r", "", written)


@pytest.mark.parametrize("words", ERRORS, ids=lambda words: words[0])
def test_paths_in_errors_command_no_terminal(words: tuple[object, ...], written: dict[str, str]) -> None:
    _require_harmless(written[str(words)])


def test_names_in_a_model_command_no_terminal(place: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", [HOSTILE], ["y"], name=HOSTILE)],
        HOSTILE,
        [helper.make_tensor_value_info(HOSTILE, kind, [2, 3])],
        [helper.make_tensor_value_info("y", kind, [2, 3])],
    )
    onnx.save(helper.make_model(graph, producer_name=HOSTILE, opset_imports=[helper.make_opsetid("", 17)]), "m.onnx")
    _require_harmless(_on_a_terminal("list", "routes", "m.onnx"))


def test_what_is_escaped_is_still_the_same_json() -> None:
    assert json.loads(escaped(json.dumps({HOSTILE: [HOSTILE, "\U0001f600 é"]}, ensure_ascii=False))) == {
        HOSTILE: [HOSTILE, "\U0001f600 é"]
    }
    assert escaped("Grüße, 世界 ✓\ta::b\n") == "Grüße, 世界 ✓\ta::b\n"
    assert escaped("::x\n a\n ::y") == "\\u003a:x\n a\n \\u003a:y"
    assert escaped("::x\n::y", at_line_start=False) == "::x\n\\u003a:y"
    assert "\n" not in one_line(HOSTILE)
    assert joined_lines(["a\nb", 1]) == "a\\u000ab\n1"
