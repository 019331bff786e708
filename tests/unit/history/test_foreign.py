"""Results of other tools, imported as a history: what they hold, where they came from, and what is no result."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, output, refusal
from fairlap.history.foreign import file_reading
from fairlap.history.foreign.foreign_files import points_in
from fairlap.store.foreign_points import ForeignPoint, foreign_sources
from fairlap.store.repair import repair_store
from fairlap.store.store import open_store
from foreign_results import (
    COMMITS,
    SLOWER_FROM,
    action_data,
    asv_folder,
    commit,
    data_js,
    pytest_folder,
    seconds,
)
from published_schemas import checked
from runs_for_rows import a_run
from runs_in_store import keep_whole
from stored_histories import daily_run, stored

Made = Callable[[Path], Path]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(folder: Path) -> Path:
    folder.mkdir()
    (folder / "data.js").write_text(data_js())
    return folder / "data.js"


def points_of(path: Path) -> list[ForeignPoint]:
    found = points_in(path)
    assert found is not None
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_either_version_of_asv_has_the_same_values(version: int, place: Path) -> None:
    points = points_of(asv_folder(place / "results", version))
    by_name: dict[str, list[ForeignPoint]] = {}
    for each in points:
        by_name.setdefault(each.benchmark, []).append(each)
    assert set(by_name) == {
        "suite.time_parse", "suite.peakmem_load", "suite.time_sort(10, 'quick')", "suite.time_sort(10, 'heap')",
    }  # fmt: skip
    parse = by_name["suite.time_parse"]
    assert [each.value for each in parse] == [seconds(number) for number in range(COMMITS)]
    assert [each.commit for each in parse] == [commit(number) for number in range(COMMITS)]
    assert parse[0].at == "2026-01-01T00:00:00+00:00"
    assert (parse[0].low, parse[0].high) == pytest.approx((0.99 * seconds(0), 1.01 * seconds(0)))
    assert parse[0].machine == "bench, A Processor, 8 cores, 32GB"
    assert (parse[0].unit, parse[0].environment) == ("seconds", "virtualenv-py3.12")
    quick, heap = (by_name[f"suite.time_sort(10, '{kind}')"][0] for kind in ("quick", "heap"))
    assert quick.parameters == {"n": "10", "kind": "'quick'"}
    assert (quick.value, quick.low) == pytest.approx((2 * seconds(0), 1.9 * seconds(0)))
    assert (heap.value, heap.low, heap.interval) == (3 * seconds(0), None, "")
    assert by_name["suite.peakmem_load"][1].value == 50_004_096


def test_the_script_and_its_json_have_the_same_values(place: Path) -> None:
    (place / "benchmark-data.json").write_text(json.dumps(action_data()))
    points = points_of(script(place / "pages"))
    assert points == points_of(place / "benchmark-data.json")
    parse, speed, share = points[:3]
    assert (parse.benchmark, parse.commit, parse.unit) == ("Rust: parse", commit(0), "ns/iter")
    assert (parse.low, parse.high) == (parse.value - 1234, parse.value + 1234)
    assert (speed.low, speed.interval) == (None, "")
    assert (share.low, share.high) == (196.0, 204.0)
    assert parse.project == "https://github.com/a/b"


def test_a_file_of_pytest_benchmark_has_medians_without_an_interval(place: Path) -> None:
    folder = pytest_folder(place / ".benchmarks")
    points = points_of(folder)
    assert [each.value for each in points] == [seconds(number) for number in range(COMMITS)]
    assert {(each.low, each.high, each.unit) for each in points} == {(None, None, "seconds")}
    first = points[0]
    assert (first.benchmark, first.parameters) == ("tests/test_speed.py::test_parse[10]", {"n": "10"})
    assert (first.at, first.branch, first.project) == ("2026-01-01T12:00:00+00:00", "main", "pk")
    assert first.machine == "Linux, A Processor, 8 cores"
    assert points_of(min(folder.rglob("*.json"))) == points[:1]


MADE: list[tuple[str, Made, str]] = [
    ("asv", lambda place: asv_folder(place / "results"), "suite.time_parse"),
    ("github-action-benchmark", lambda place: script(place / "pages"), "Rust: parse"),
    ("pytest-benchmark", lambda place: pytest_folder(place / ".benchmarks"), "*test_parse*"),
]


@pytest.mark.slow_but("asv")
@pytest.mark.parametrize(("tool", "made", "name"), MADE)
def test_a_step_is_found_at_its_commit_and_marked_as_the_other_tool_s(
    tool: str, made: Made, name: str, place: Path
) -> None:
    path = made(place)
    output("runs", "import", path)
    files = [word for suffix in ("html", "csv", "svg") for word in ("-o", f"trend.{suffix}")]
    found = checked(output("history", tool, "--on", name, "--json", *files))
    [trend] = found["trends"]
    assert (found["foreign"], trend["foreign"], trend["threads"]) == (tool, tool, None)
    assert str(path) in found["sources"][0]
    [change] = trend["changes"]
    assert (change["cause"], change["ratio"]) == ("unknown", pytest.approx(1.2, rel=0.005))
    assert change["commits"] == [commit(SLOWER_FROM - 1), commit(SLOWER_FROM)]
    ends = f"--good {commit(SLOWER_FROM - 1)[:10]} --bad {commit(SLOWER_FROM)[:10]}"
    assert trend["bisect"] == [f"fairlap bisect {ends}"]
    page = Path("trend.html").read_text()
    assert ends in page
    assert "not by fairlap" in page
    assert str(path) in page
    assert Path("trend.csv").read_text().count("\n") == COMMITS + 1
    assert "svg" in Path("trend.svg").read_text()


@pytest.mark.slow_but("asv")
@pytest.mark.parametrize(("tool", "made", "name"), MADE)
def test_the_same_import_twice_adds_nothing_and_the_list_says_where_values_came_from(
    tool: str, made: Made, name: str, place: Path
) -> None:
    path = made(place)
    values = len(points_of(path))
    for _ in range(2):
        output("runs", "import", path)
        listed = checked(output("runs", "--json"))
        [source] = listed["foreign"]
        assert (listed["runs"], source["tool"], source["points"]) == ([], tool, values)
        assert source["source"] == str(path)
    assert str(path) in output("runs")
    assert f"{values:,}" in output("runs")
    output("runs", "remove", tool)
    assert "foreign" not in json.loads(output("runs", "--json"))
    assert refusal("history", tool).code == "E_NO_RUN"


def test_other_tools_are_no_part_of_the_history_of_a_model(place: Path) -> None:
    stored(place / "runs.sqlite", [daily_run(day) for day in range(9)])
    before = output("history", "mlp", "--json")
    for _, made, _ in MADE:
        output("runs", "import", made(place))
    assert output("history", "mlp", "--json") == before
    assert len(json.loads(output("runs", "--json"))["runs"]) == 9
    assert len(json.loads(output("runs", "--json"))["foreign"]) == 3


def test_options_choose_benchmarks_branches_and_dates(place: Path) -> None:
    output("runs", "import", asv_folder(place / "results"), "--project", "mine")
    trends = checked(output("history", "asv", "--json"))["trends"]
    assert [each["series"][0]["contestant"] for each in trends] == [
        "suite.peakmem_load", "suite.time_parse", "suite.time_sort(10, 'heap')", "suite.time_sort(10, 'quick')",
    ]  # fmt: skip
    assert all("mine" in each["work"] for each in trends)
    assert len(checked(output("history", "asv", "--on", "suite.time_sort", "--json"))["trends"]) == 2
    [memory] = checked(output("history", "asv", "--on", "*peakmem*", "--json"))["trends"]
    assert (memory["unit"], memory["bisect"]) == ("B", [])
    assert memory["series"][0]["points"][0]["figure"]["value"] == 50_000_000
    [late] = checked(output("history", "asv", "--on", "suite.time_parse", "--since", "2026-01-20", "--json"))["trends"]
    assert len(late["runs"]) == COMMITS - 19
    output("runs", "import", pytest_folder(place / ".benchmarks"))
    [main] = checked(output("history", "pytest-benchmark", "--branch", "main", "--json"))["trends"]
    assert len(main["runs"]) == COMMITS - 1
    assert refusal("history", "asv", "--on", "suite.time_pars").code == "E_NO_RUN"
    assert refusal("history", "asv", "--quantity", "memory_peak").code == "E_REQUEST"


def test_values_of_other_versions_of_a_benchmark_and_of_other_machines_are_left_out(place: Path) -> None:
    folder = asv_folder(place / "results")
    before = len(points_of(folder))
    listed = json.loads((folder / "benchmarks.json").read_text())
    listed["suite.time_parse"]["version"] = "v2"
    (folder / "benchmarks.json").write_text(json.dumps(listed))
    assert len(points_of(folder)) == before - COMMITS
    machine = json.loads((folder / "bench" / "machine.json").read_text())
    (folder / "bench" / "machine.json").write_text(json.dumps({**machine, "machine": "other"}))
    assert refusal("runs", "import", folder).code == "E_OTHER_TOOL"


def test_a_damaged_store_keeps_them(place: Path) -> None:
    stored(place / "runs.sqlite", [daily_run(0)])
    output("runs", "import", script(place / "pages"))
    with open_store() as store:
        before = store.ask(foreign_sources)
        damaged = keep_whole(store, a_run())
        keep_whole(store, a_run())
        with store.database(writing=True) as db:
            db.execute("UPDATE runs SET wall_s = CAST(x'ff' AS TEXT) WHERE id = ?", (damaged,))
    assert repair_store(place / "runs.sqlite").damaged is not None
    with open_store(reading=True) as store:
        assert store.ask(foreign_sources) == before


def changed(document: dict[str, Any], *path: str | int, value: object) -> bytes:
    place: Any = document
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    return json.dumps(document).encode()


FIRST = ("entries", "Rust", 0)
HOSTILE: list[tuple[str, bytes]] = [
    ("data.js", b"window.BENCHMARK_DATA = (function(){ return {}; })()"),
    ("data.js", b"window.BENCHMARK_DATA = {}"),
    ("data.js", data_js().encode() + b";fetch('https://example.com')"),
    ("data.js", b"window.BENCHMARK_DATA = " + b"[" * 200_000),
    ("data.js", b'window.BENCHMARK_DATA = {"lastUpdate": 1, "entries": ' + b'{"a":' * 100_000),
    ("data.js", b'window.BENCHMARK_DATA = {"lastUpdate": 1, "entries": {}}'),
    ("data.js", b'window.BENCHMARK_DATA = {"lastUpdate": ' + b"9" * 10_000 + b', "entries": {}}'),
    ("data.js", b"window.BENCHMARK_DATA = \xff\xfe\xfa"),
    ("data.json", changed(action_data(), *FIRST, "date", value=1e300)),
    ("data.json", changed(action_data(), *FIRST, "date", value=math.nan)),
    ("data.json", changed(action_data(), *FIRST, "date", value="today")),
    ("data.json", changed(action_data(), *FIRST, "benches", 0, "value", value="1")),
    ("data.json", changed(action_data(), *FIRST, "benches", 0, "value", value=10**400)),
    ("data.json", changed(action_data(), *FIRST, "benches", 0, "value", value=True)),
    ("data.json", changed(action_data(), *FIRST, "commit", value=None)),
    ("data.json", changed(action_data(), "entries", value={"a": 1})),
    ("run.json", b'{"machine_info": 1, "benchmarks": []}'),
    ("run.json", b'{"machine_info": {}, "benchmarks": [{}], "datetime": "2026-01-01"}'),
    ("run.json", b'{"machine_info": {}, "benchmarks": [], "datetime": "then"}'),
    (
        "run.json",
        b'{"machine_info": {}, "benchmarks": [{"name": "a", "stats": {"median": NaN}}], "datetime": "2026-01-01"}',
    ),
    ("run.json", b'{"commit_hash": "a", "results": {}, "result_columns": []}'),
]


@pytest.mark.parametrize(("name", "content"), HOSTILE)
def test_what_is_no_result_is_refused_in_a_line_and_nothing_is_stored(name: str, content: bytes) -> None:
    Path(name).write_bytes(content)
    error = refusal("runs", "import", name)
    assert error.code in ("E_OTHER_TOOL", "E_RUN_FILE")
    assert len(str(error)) < 1000
    assert "foreign" not in json.loads(output("runs", "--json"))


@pytest.mark.parametrize(
    ("name", "content", "code", "part"),
    [
        ("data.js", b"export const a = 1", "E_OTHER_TOOL", "window.BENCHMARK_DATA ="),
        ("data.js", b"window.BENCHMARK_DATA = (function(){ return {}; })()", "E_OTHER_TOOL", "column 25:"),
        ("broken.json", b'{"plan": }', "E_OTHER_TOOL", "line 1, column 10:"),
        ("cut.json", b'{"plan": {\n', "E_OTHER_TOOL", "ends too early"),
        ("data.js", b"window.BENCHMARK_DATA = {}", "E_OTHER_TOOL", "entries"),
        ("google.json", b'{"context": {}, "benchmarks": []}', "E_OTHER_TOOL", "context, benchmarks"),
        ("package.json", b'{"name": "a", "version": "1"}', "E_OTHER_TOOL", "name, version"),
        ("list.json", b"[1, 2]", "E_OTHER_TOOL", "no object"),
        ("page.json", b"<html>", "E_OTHER_TOOL", "neither JSON"),
        ("empty.json", b"", "E_OTHER_TOOL", "empty"),
        ("deep.json", b"[" * 100_000, "E_OTHER_TOOL", "JSON"),
        ("then.json", b'{"machine_info": {}, "benchmarks": [], "datetime": "then"}', "E_OTHER_TOOL", "'then'"),
        ("suite.json", b'{"schema": "fairlap.suite/1"}', "E_RUN_FILE", "suite show"),
        ("run.json", b'{"plan": {}}', "E_RUN_FILE", "run file"),
    ],
)
def test_a_file_that_is_not_what_it_seems_is_refused_by_what_it_is(
    name: str, content: bytes, code: str, part: str
) -> None:
    Path(name).write_bytes(content)
    error = refusal("runs", "import", name)
    assert (error.code, part in str(error), name in str(error)) == (code, True, True)
    assert len(str(error).splitlines()) == 1
    assert ("required field" in str(error)) == (name == "run.json")


@pytest.mark.parametrize("begin", ["", "\ufeff", "window.BENCHMARK_DATA = ", "\ufeff\n\nwindow.BENCHMARK_DATA =\n"])
def test_a_broken_file_is_refused_by_the_place_that_an_editor_shows(begin: str) -> None:
    """Lines and characters from 1; a byte order mark is none."""
    text = f'{begin}{{"lastUpdate": 1,\n "repoUrl": "\u00e4", oops}}'
    name = "data.js" if "window" in begin else "data.json"
    Path(name).write_text(text, encoding="utf-8")
    before = text.removeprefix("\ufeff").partition("oops")[0]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert f"line {line}, column {column}:" in str(refusal("runs", "import", name))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("benchmarks.json", b"[]"),
        ("benchmarks.json", b'{"suite.time_parse": {"params": 1}}'),
        ("benchmarks.json", json.dumps({"a": {"params": [[str(n) for n in range(1000)]] * 9}}).encode()),
        ("bench/machine.json", b"{}"),
        ("bench/broken.json", b"{"),
        ("bench/broken.json", b'{"commit_hash": 1, "date": 1, "params": {}, "results": {}}'),
        ("bench/broken.json", b'{"commit_hash": "a", "date": 1, "params": {}, "results": {}, "version": 3}'),
        ("bench/broken.json", b'{"commit_hash": "a", "date": 1, "params": {"machine": "bench"},'
         b' "results": {"suite.time_parse": 7}, "version": 2}'),
        ("bench/broken.json", b'{"commit_hash": "a", "date": 1, "params": {"machine": "bench"},'
         b' "results": {"suite.time_parse": {"result": [1], "stats": [{}]}}, "version": 1}'),
    ],
)  # fmt: skip
def test_one_broken_file_of_a_folder_imports_nothing_of_it(file: str, content: bytes, place: Path) -> None:
    folder = asv_folder(place / "results")
    (folder / file).write_bytes(content)
    error = refusal("runs", "import", folder)
    assert (error.code, Path(file).name in str(error)) == ("E_OTHER_TOOL", True)
    assert "foreign" not in json.loads(output("runs", "--json"))


def test_a_folder_of_nothing_links_and_pipes_holds_no_results(place: Path) -> None:
    folder = place / "results"
    folder.mkdir()
    assert refusal("runs", "import", folder).code == "E_OTHER_TOOL"
    (folder / "loop").symlink_to(folder)
    (folder / "secret.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.json")
    assert refusal("runs", "import", folder).code == "E_OTHER_TOOL"


def test_sizes_are_limited(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = asv_folder(place / "results"), script(place / "pages")
    for limit, value in (("MOST_BYTES", 1000), ("_MOST_BYTES_OF_ALL", 3000), ("_MOST_FILES", 3), ("_MOST_POINTS", 5)):
        with monkeypatch.context() as patched:
            patched.setattr(file_reading, limit, value)
            assert refusal("runs", "import", folder).code == "E_OTHER_TOOL"
            if limit != "_MOST_FILES":
                assert refusal("runs", "import", file).code == "E_OTHER_TOOL"
    assert "foreign" not in json.loads(output("runs", "--json"))


def test_names_that_would_steer_a_terminal_are_shown_as_text(place: Path) -> None:
    document = action_data()
    for each in document["entries"]["Rust"]:
        each["benches"][0]["name"] = "\x1b[2Jparse\ud800\0<script>"
    (place / "data.json").write_text(json.dumps(document))
    output("runs", "import", "data.json")
    shown = output("history", "github-action-benchmark", "--on", "*parse*", "-o", "page.html")
    assert "\x1b" not in shown
    assert "<script>" not in (place / "page.html").read_text()


def test_a_store_that_an_older_fairlap_made_and_that_cannot_be_changed_has_none(place: Path) -> None:
    stored(place / "runs.sqlite", [daily_run(0)])
    with open_store() as store, store.database(writing=True) as db:
        db.execute("DROP TABLE foreign_points")
    with open_store(reading=True) as store:
        assert store.ask(foreign_sources) == []


def test_what_fairlap_wrote_for_other_tools_is_imported_as_the_run_that_it_is(place: Path) -> None:
    own = {"machine_info": {}, "datetime": "2026-01-01", "benchmarks": [
        {"name": "a", "stats": {"median": 1.0}, "extra_info": {"samples": "fairlap-processes"}}]}  # fmt: skip
    (place / "race.pytest-benchmark.json").write_text(json.dumps(own))
    assert refusal("runs", "import", "race.pytest-benchmark.json").code == "E_OTHER_TOOL"
    assert invoke("runs", "import", "nowhere.json").exit_code != 0
