"""A board is a site of files: its figures are the newest of each place, each with evidence that the check accepts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from command_line import invoke, output, refusal
from fairlap.board.board import board_of
from fairlap.board.pages import board_page, history_pages
from fairlap.board.submission_rules import SubmissionRules, broken_rules, rules_in
from fairlap.engine.measurement import Notice
from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.render.bundle.verify import verify
from fairlap.request.toml_file import converted
from fairlap.store.recording import begin_recording
from fairlap.store.store import open_store
from fairlap.store.stored_rows import RowsOfRun, rows_stored
from measured_runs import a_measured_run
from runs_to_show import HOSTILE, run_of


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))


def kept(began_at: str, machine: str = "Imaginary 9000", blocks: int = 6) -> str:
    """Store a run with its samples."""
    run, samples = a_measured_run(blocks)
    run.machine["cpu model"] = machine
    run.began_at = began_at
    with open_store() as opened:
        recording = begin_recording(opened, run.plan, run.machine, run.began_at)
        for process in run.processes:
            recording.keep(process, samples[process.block, process.contestant])
        recording.end(run.wall_s)
        return recording.run


def published(folder: Path, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output("board", *arguments, "-o", folder, "--json"))
    return found


def test_every_figure_is_the_newest_of_its_place_and_links_to_evidence_that_is_whole(tmp_path: Path) -> None:
    old, new = kept("2026-01-02T03:04:05+00:00"), kept("2026-02-02T03:04:05+00:00")
    other = kept("2026-01-03T03:04:05+00:00", machine="Imaginary 100")
    found = published(tmp_path / "site")
    assert {(cell["machine"], cell["run"]) for cell in found["cells"]} == {
        ("Imaginary 9000", new),
        ("Imaginary 100", other),
    }
    with open_store(reading=True) as opened:
        places = {(row.contestant, row.place) for row in opened.rows(new)}
    assert {(cell["contestant"], cell["place"]) for cell in found["cells"]} == places
    assert json.loads((tmp_path / "site" / "board.json").read_text()) == found
    for run in (new, other):
        content = (tmp_path / "site" / "bundles" / f"{run}.fairlap").read_bytes()
        assert verify(content, run, found["hashes"][run]).problems == []
    page = (tmp_path / "site" / "index.html").read_text()
    for cell in found["cells"]:
        assert f'href="{cell["bundle"]}"' in page
        assert f'href="{cell["history"]}"' in page
        assert cell["text"].split()[0] in page
    [history] = {cell["history"] for cell in found["cells"] if cell["run"] == new}
    runs = (tmp_path / "site" / history).read_text()
    assert runs.index(new) < runs.index(old)
    assert f"bundles/{old}" not in runs  # its evidence is not published
    for each in (tmp_path / "site").rglob("*.html"):
        links = re.findall(r'href="([^"]+)"', each.read_text())
        assert all(link == "data:," or (each.parent / link).is_file() for link in links)


def test_a_board_of_a_file_is_written_again_without_what_it_no_longer_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept("2026-01-02T03:04:05+00:00")
    site = tmp_path / "site"
    published(site)
    (site / "CNAME").write_text("board.example.org")
    new = kept("2026-02-02T03:04:05+00:00")
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "other.sqlite"))
    published(site, tmp_path / "runs.sqlite")
    assert [each.stem for each in (site / "bundles").iterdir()] == [new]
    assert (site / "CNAME").is_file()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    kept("2026-01-02T03:04:05+00:00")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    assert refusal("board", "-o", tmp_path / "mine").code == "E_BOARD"
    assert refusal("board", "-o", tmp_path / "mine" / "thesis.tex").code == "E_BOARD"


def test_runs_without_evidence_and_unfinished_ones_are_named_and_not_shown(tmp_path: Path) -> None:
    run, _ = a_measured_run(6)
    with open_store() as opened:
        recording = begin_recording(opened, run.plan, run.machine, run.began_at)
        for process in run.processes:
            recording.keep(process, {})  # its samples are gone
        recording.end(run.wall_s)
        with opened.database(writing=True) as db:
            db.execute("DELETE FROM samples")
        empty = begin_recording(opened, run.plan, run.machine, run.began_at)
        empty.end({}, ended_early="nothing ran")
        going_on = begin_recording(opened, run.plan, run.machine, run.began_at)
        found = published(tmp_path / "site")
    assert found["cells"] == []
    assert {each["run"] for each in found["omitted"]} == {recording.run, empty.run, going_on.run}


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [
            name
            for name, value in attrs
            if name.startswith("on") or (name != "data-head" and "script" in (value or "").lower())  # a name to show
        ]


def hostile() -> Run:
    run = run_of((*HOSTILE, "run", "evidence"), batches=(4,))
    run.machine["cpu model"] = "</style><script>alert(3)</script>"
    run.plan = msgspec.structs.replace(run.plan, data="<img src=x onerror=alert(4)>")
    return run


def test_hostile_names_stay_texts() -> None:
    with open_store() as opened:
        run = hostile()
        recording = begin_recording(opened, run.plan, run.machine, run.began_at)
        for process in run.processes:
            recording.keep(process, {"wall_ns": np.full(100, 1e6)})
        recording.end(run.wall_s)
        board = board_of(opened, None)
    pages = [board_page(board), *history_pages(board).values()]
    assert board.document.cells
    for page in pages:
        elements = Elements(page.decode())
        assert not {"script", "img", "iframe", "object"} & {*elements.found}
        assert elements.handlers == []
        assert b"default-src &#x27;none&#x27;" in page
    assert b"&lt;script&gt;alert(1)" in pages[0]
    assert all(re.fullmatch(r"history/[0-9a-f]{16}\.html", each) for each in history_pages(board))


def rows() -> RowsOfRun:
    run = kept("2026-01-02T03:04:05+00:00")
    with open_store(reading=True) as opened:
        return rows_stored(opened, run)


def test_each_rule_is_named_where_it_is_broken() -> None:
    found = rows()

    def broken(**rules: Any) -> set[str]:
        required = converted(Path("submission.toml"), rules, SubmissionRules)
        return {each.partition(":")[0] for each in broken_rules(required, found)}

    assert broken() == set()
    assert broken(processes=6, contestants=2, conditions="controlled", models=["mlp"], interval="50%") == set()
    assert broken(processes=7) == {"processes"}
    assert broken(contestants=3) == {"contestants"}
    assert broken(conditions="as-found") == {"conditions"}
    assert broken(models=["bert_base"]) == {"models"}
    assert broken(interval="0.0001%") == {"interval"}
    assert broken(divisions=["best"]) == {"divisions"}
    warned = msgspec.structs.replace(found.rows[0], warnings=[Notice("W_NO_REFERENCE", "there is none")])
    found = replace(found, rows=(warned, *found.rows[1:]))
    assert broken(forbidden_warnings=["W_NO_REFERENCE"]) == {"forbidden_warnings"}
    assert broken(forbidden_warnings=["W_OTHER"]) == set()


@pytest.mark.parametrize(
    ("rules", "meant"),
    [
        ('models = ["mlpp"]', "did you mean mlp?"),
        ('forbidden_warnings = ["W_NO_REFERNCE"]', "did you mean W_NO_REFERENCE?"),
        ('divisions = ["bset"]', "did you mean best?"),
        ('models = ["mlp", "mlpp.onnx", "./mlpp", "mlpp:make"]\nforbidden_warnings = ["W_OF_A_PACKAGE"]', ""),
    ],
)
def test_a_mistyped_name_in_rules_is_refused_with_the_nearest_one(tmp_path: Path, rules: str, meant: str) -> None:
    file = tmp_path / "submission.toml"
    file.write_text(rules)
    if not meant:
        assert rules_in(file).models[0] == "mlp"
        return
    with pytest.raises(InvalidRequest) as refused:
        rules_in(file)
    assert str(file) in str(refused.value)
    assert meant in str(refused.value)


def test_a_bundle_that_breaks_rules_is_named(tmp_path: Path) -> None:
    run = kept("2026-01-02T03:04:05+00:00")
    bundle, rules = tmp_path / "b.fairlap", tmp_path / "submission.toml"
    output("bundle", run, "-o", bundle, "--no-page")
    rules.write_text("processes = 6\n")
    assert json.loads(output("verify", bundle, "--rules", rules, "--json"))["broken_rules"] == []
    rules.write_text("processes = 7\n")
    found = invoke("verify", bundle, "--rules", rules)
    assert (found.exit_code, "E_SUBMISSION" in found.output) == (1, True)
    assert published(tmp_path / "site", "--rules", rules)["cells"] == []
    rules.write_text("proceses = 7\n")
    with pytest.raises(InvalidRequest, match="processes"):
        raise refusal("verify", bundle, "--rules", rules)
