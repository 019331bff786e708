"""A program that knows only docs/reference/programs.md finds, judges, explains and reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from published_schemas import checked
from scripted_client import KNOWN, Client, decision

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs/reference/programs.md").read_text()
SKILL = (TOP / "SKILL.md").read_text()
KERNELS = """
numbers = list(range(3000))

def old():
    return sorted(numbers, key=lambda each: -each)

def new():
    return sorted(numbers, reverse=True)

def broken():
    raise ValueError("no")
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    (tmp_path / "my_kernels.py").write_text(KERNELS)
    return Client(tmp_path)


def assert_only_what_the_page_names(client: Client) -> None:
    on_page = set(re.findall(r"`fairlap ([a-z]+)", PAGE))
    options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", PAGE))
    for words in client.commands:
        assert words[0] in on_page
        assert {word for word in words if word.startswith("-")} <= options, words


@pytest.mark.slow
def test_it_finds_judges_explains_and_reports(client: Client) -> None:
    models = client.ask("list", "models")["models"]
    frameworks = client.ask("list", "frameworks")["frameworks"]
    assert {"mlp", "convnet"} <= {each["name"] for each in models}
    assert all(isinstance(each["here"], bool) for each in frameworks)

    judged = client.ask("time", "my_kernels:old", "my_kernels:new", "--budget", "5s")
    assert decision(judged, "my_kernels:new") == "keep"
    assert decision(judged, "my_kernels:old") == "discard"

    raced = client.ask("compare", "--command", "a=sleep 0.01", "--command", "b=sleep 0.05", "--budget", "20s", "-q")
    reasons = {work["no_verdict_code"] for work in raced["work_results"]} - {None}
    assert reasons <= {"E_BUSY_MACHINE", "E_THROTTLED"}  # where other programs take the cores, there is no verdict
    assert decision(raced, "a") == ("undecided" if reasons else "keep")
    assert reasons <= client.explained(raced).keys()
    for document in (judged, raced):
        assert all(client.explained(document).values())

    gate = client.ask("gate", "last", "--baseline", "a", "--max-slowdown", "3%")
    assert client.statuses[-1] == gate["exit_status"] == (3 if reasons else 1)
    report = client.report("report.md")
    assert all(f"`{row['contestant']}`" in report for row in raced["rows"])
    assert_only_what_the_page_names(client)


@pytest.mark.slow
def test_it_keeps_a_change_that_is_faster_and_discards_one_that_is_not(client: Client) -> None:
    for name, loops in (("base", 3), ("faster", 1), ("slower", 6)):
        (client.folder / name).mkdir()
        (client.folder / name / "hot.py").write_text(
            f"def run():\n    for _ in range({loops}):\n        sorted(range(20000), key=lambda each: -each)\n"
        )
    for change, wanted, status in (("faster", "keep", 0), ("slower", "discard", 1)):
        both = ("--base", "base", "--change", change, "--call", "hot:run")
        judged = client.ask("judge", *both, "--gain", "2%", "--ledger", "tries.json")
        if judged["decision"] == "undecided":
            assert judged["reason"] in {"busy_machine", "too_few_blocks"}
        else:
            assert (judged["decision"], client.statuses[-1]) == (wanted, status)
    assert_only_what_the_page_names(client)


@pytest.mark.slow
def test_it_learns_from_an_error_what_to_do(client: Client) -> None:
    for arguments in (("compare", "nosuch", "--on", "torch"), ("time", "my_kernels:broken"), ("explain", "E_NONE")):
        document = client.ask(*arguments)
        assert client.statuses[-1] == 2
        assert document["error"]["hint"]
        [text] = client.explained(document).values()
        assert text


def test_the_page_names_the_schemas_that_are_published() -> None:
    published = {title_of(path) for path in (TOP / "docs/reference/schemas").iterdir()}
    assert set(re.findall(r"fairlap\.[a-z-]+/\d+", PAGE + SKILL)) <= published
    assert published >= KNOWN


def title_of(path: Path) -> str:
    document: dict[str, Any] = json.loads(path.read_text())
    return str(document["title"])


def test_the_error_on_the_page_follows_its_schema() -> None:
    [example] = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert checked(example)["error"]["code"] == "E_REQUEST"


def test_the_skill_has_the_form_that_agents_read() -> None:
    head = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.+)\n---\n\n# ", SKILL)
    assert head is not None
    assert head[1] == "fairlap"
    assert len(head[2]) <= 1024
    assert len(SKILL.splitlines()) <= 120
