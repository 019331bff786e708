"""A load on servers that stream is a run: stored, shown, exported, compared with another, and resumed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import here, refusal
from fairlap.scenarios.streams.race.stream_race import StreamRace
from machine_marks import needs
from published_schemas import checked
from stream_races import TOKENS, file_of_prompts, without_client_floor
from stream_server import StreamingServer

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

SECRET = "plain-words-that-no-pattern-knows"


@dataclass
class Stored:
    """Two runs of the same two servers, and the file and the standard output of the first one."""

    folder: Path
    store: Path
    prompts: Path
    servers: tuple[StreamingServer, StreamingServer]
    file: dict[str, Any]
    printed: dict[str, Any]

    @property
    def names(self) -> list[str]:
        return [self.servers[0].at(":key_from=KEY_OF_SERVER"), self.servers[1].at()]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("streams")
    prompts, file, store = file_of_prompts(folder), folder / "run.json", folder / "runs.sqlite"
    with (
        pytest.MonkeyPatch.context() as patch,
        StreamingServer(key=SECRET) as fast,
        StreamingServer(first_ms=40.0) as slow,
    ):
        patch.setenv("KEY_OF_SERVER", SECRET)
        without_client_floor(patch)
        patch.setenv("FAIRLAP_STORE", str(store))
        found = Stored(folder, store, prompts, (fast, slow), {}, {})
        options = ("--tokens", TOKENS, "--concurrency", 2, "--trial", "100ms", "--quiet")
        load = ("load", prompts, "--on", ",".join(found.names), *options)
        first = here(*load, "--blocks", 6, "--json", "-o", file, "--seed", 1)
        assert first.returncode == 0, first.stderr
        found.file, found.printed = checked(file.read_text()), checked(first.stdout)
        second = here(*load, "--blocks", 2, "-o", folder / "rows.csv")
        assert second.returncode == 0, second.stderr
        yield found


def printed(*arguments: object) -> Any:
    done = here(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def test_file_and_standard_output_are_the_same_run(stored: Stored) -> None:
    assert stored.file == stored.printed
    assert stored.file["plan"]["works"][0]["streams"]["tokens"] == TOKENS
    assert {row["contestant"] for row in stored.file["rows"]} == set(stored.names)
    assert [row["judged_by"] for row in stored.file["rows"]] == ["tokens per second"] * 2
    assert stored.file["rows"][1]["verdict"] == "slower"


def test_the_stored_run_is_listed_shown_and_exported_with_the_same_rows(stored: Stored) -> None:
    [newest, oldest] = printed("runs", "--json")["runs"]
    assert (oldest["run"], oldest["state"]) == (stored.file["id"], "finished")
    assert newest["run"] > oldest["run"]
    assert printed("show", oldest["run"], "--json")["rows"] == stored.file["rows"]
    assert all(name in printed("show", oldest["run"]) for name in stored.names)
    exported = printed("export", oldest["run"], "--json")
    assert len(exported["rows"] if isinstance(exported, dict) else exported) == 2


def test_when_each_token_came_is_kept_as_evidence_for_every_figure(stored: Stored) -> None:
    whole = stored.folder / "whole.json"
    printed("runs", "export", stored.file["id"], whole)
    document = json.loads(whole.read_text())
    samples = {
        (each["block"], each["contestant"], each["quantity"]): np.frombuffer(base64.b64decode(each["ns"]), "<f8")
        for each in document["samples"]
    }
    for process in document["processes"]:
        requests, counts = process["streams"]["requests"], process["streams"]["figures"]["counts"]
        key = process["block"], process["contestant"]
        request, came, tokens = (samples[(*key, f"arrivals/{name}")] for name in ("request", "came_ns", "tokens"))
        each = range(counts["requests"])
        first = np.array([came[request == number].min() for number in each])
        gaps = np.concatenate([np.diff(came[request == number]) for number in each])
        assert tokens.sum() == counts["tokens"] == TOKENS * counts["answered"] > 0
        assert first == pytest.approx(np.array(requests["first_ns"]), abs=1)
        timings = process["timings"]
        first_ns, gap_ns = timings["time_to_first_token_ns"]["p50_ns"], timings["token_gap_ns"]["p99_ns"]
        assert quantile(first - np.array(requests["from_ns"]), 0.5) == pytest.approx(first_ns, rel=1e-3)
        assert quantile(gaps, 0.99) == pytest.approx(gap_ns, rel=1e-3)


def quantile(times_ns: Any, share: float) -> float:
    """As of any process: between two times in proportion, and not at all below a nanosecond."""
    return float(np.exp(np.quantile(np.log(np.maximum(times_ns, 1.0)), share)))


def test_a_bundle_gives_the_same_figures_again_from_the_samples(stored: Stored) -> None:
    bundle = stored.folder / "evidence.fairlap"
    printed("bundle", stored.file["id"], "-o", bundle, "--no-page")
    checked_again = printed("verify", bundle, "--json")
    assert (checked_again["problems"], checked_again["code"]) == ([], "")


def test_no_secret_is_stored_or_written(stored: Stored) -> None:
    assert any(headers.get("authorization") == f"Bearer {SECRET}" for _, headers, _ in stored.servers[0].requests)
    files = [path for path in stored.folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".json", ".sqlite", ".csv"}
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


def test_two_runs_are_compared_gated_and_have_a_history(stored: Stored) -> None:
    first, second = (each["run"] for each in reversed(printed("runs", "--json")["runs"]))
    assert stored.names[1] in printed("diff", first, second)
    gated = here("gate", first, second, "--max-slowdown", "10000%", "--json")
    assert gated.returncode == 0, gated.stderr
    assert json.loads(gated.stdout)["schema"].startswith("fairlap.gate/")
    assert stored.names[0] in printed("history", "prompts.jsonl")


@pytest.mark.slow
def test_a_page_and_a_table_have_every_contestant_and_no_secret(stored: Stored) -> None:
    files = stored.folder / "page.html", stored.folder / "table.md"
    printed("show", stored.file["id"], "-o", files[0], "-o", files[1])
    for text in (file.read_text() for file in files):
        assert all(name in text.replace("<wbr>", "") for name in stored.names)
        assert "on servers" in text or "tokens per second" in text
        assert SECRET not in text


def test_an_interrupted_race_keeps_its_blocks_and_is_resumed(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    options = ("--tokens", TOKENS, "--concurrency", 2, "--trial", "20ms", "--blocks", 3, "--quiet")
    ran: list[int] = []
    run_block = StreamRace.run_block

    def interrupted(self: StreamRace, block: Any, contestants: Any) -> Any:
        if len(ran) == 1:
            raise KeyboardInterrupt
        ran.append(block.number)
        return run_block(self, block, contestants)

    with monkeypatch.context() as patch:
        patch.setattr(StreamRace, "run_block", interrupted)
        done = here("load", stored.prompts, "--on", ",".join(stored.names), *options)
    assert done.returncode == 130
    [run] = printed("runs", "--json")["runs"]
    assert run["state"] == "interrupted"
    before = printed("show", "last", "--json")["processes"]
    assert {each["block"] for each in before} == {0}
    assert here("load", "--resume", "last", "--quiet").returncode == 0
    after = printed("show", "last", "--json")["processes"]
    assert {each["block"] for each in after} == {0, 1, 2}
    assert [each for each in after if each["block"] == 0] == before


@pytest.mark.slow
def test_a_run_is_not_resumed_or_run_again_with_other_prompts(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    prompts = file_of_prompts(tmp_path, 5)
    options = ("--tokens", TOKENS, "--concurrency", 1, "--trial", "10ms", "--blocks", 1, "--quiet")
    printed("load", prompts, "--on", stored.names[1], *options)
    prompts.write_text('{"prompt": "another"}\n')
    assert refusal("rerun", "last").code == "E_PROMPTS"


def test_a_plan_is_shown_saved_and_run(stored: Stored, tmp_path: Path) -> None:
    options = ("--tokens", TOKENS, "--concurrency", 1, "--trial", "10ms", "--blocks", 1, "--quiet")
    plan, file = tmp_path / "plan.json", tmp_path / "run.json"
    before = len(stored.servers[1].requests)
    shown = printed("load", stored.prompts, "--on", stored.names[1], *options, "--dry-run", "--save-plan", plan)
    assert stored.names[1] in shown
    assert len(stored.servers[1].requests) == before
    printed("load", plan, "--quiet", "--no-store", "-o", file)
    assert checked(file.read_text())["rows"][0]["contestant"] == stored.names[1]


@pytest.mark.slow
def test_a_server_races_itself_under_two_names(stored: Stored, tmp_path: Path) -> None:
    file, before = tmp_path / "self.json", len(stored.servers[1].requests)
    load = ("--tokens", 2, "--concurrency", 1, "--trial", "10ms", "--blocks", 6, "--runs", 1)
    done = here("self-test", stored.prompts, "--on", stored.names[1], *load, "-o", file)
    document = checked(file.read_text())
    [verdict] = document["verdicts"]
    assert done.returncode == (0 if document["passed"] else 1)
    assert verdict["blocks"] == 6
    assert 0.2 < verdict["ratio"] < 5
    assert len(stored.servers[1].requests) - before > 2 * 6 * 2  # both names reach it


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("mlp", ["--tokens", 4]),
        ("mlp", ["--rate", 5]),
        ("PROMPTS", ["--tokens", 4, "--concurrency", 1, "--slowdown", "2%"]),
        ("PROMPTS", ["--tokens", 4]),
        ("PROMPTS", ["--concurrency", 1]),
    ],
)
def test_a_self_test_refuses_what_it_cannot_honour(model: str, options: list[Any], stored: Stored) -> None:
    named = stored.prompts if model == "PROMPTS" else model
    on = stored.names[1] if model == "PROMPTS" else "numpy"
    assert refusal("self-test", named, "--on", on, *options).code == "E_LOAD"
