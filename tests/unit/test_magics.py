"""``%fairlap`` in IPython: snippets as they were written, raced as functions, and in agreement with ``%timeit``."""

from __future__ import annotations

from statistics import median
from typing import Any

import fairlap
import pytest
from fairlap.errors import InvalidRequest
from fairlap.magics import raced, snippets_of_cell, snippets_of_line
from fairlap.scenarios.callables.result import InProcessComparison
from notebook_shell import Shell

QUICK = "blocks=6, seconds=0.002"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("sorted(a) ; sorted(b)", ["sorted(a)", "sorted(b)"]),
        ("'a;b'.split(';');f\"{x:;>9}\" ; [1, 2]", ["'a;b'.split(';')", 'f"{x:;>9}"', "[1, 2]"]),
        ("f() ; f()", ["f()", "f() (2)"]),
        ("  f() ; g() ;  # not h() ; i()", ["f()", "g()"]),
        ("{'a': 1}['a'] ; $x", ["{'a': 1}['a']", "$x"]),
    ],
)
def test_semicolons_separate_the_snippets_of_a_line_but_not_those_in_texts(line: str, names: list[str]) -> None:
    assert list(snippets_of_line(line)) == names


CELL = '''\
# a remark
## first
text = """
## not a heading
"""
# nor this
len(text)
## second <b>
  ## nor one that is indented
18
'''


def test_headings_name_the_snippets_of_a_cell_but_not_those_in_texts() -> None:
    found = snippets_of_cell(CELL)
    assert list(found) == ["first", "second <b>"]
    assert "## not a heading" in found["first"]
    assert found["second <b>"].split() == ["##", "nor", "one", "that", "is", "indented", "18"]


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("", None),
        ("f()", None),
        ("f(", None),
        ("'f ; g()", None),
        ("f( ; g()", None),
        ("", "f()\n"),
        ("", "## only one\nf()\n"),
        ("", "f()\n## a\nf()\n## b\nf()\n"),
        ("", "## a\nf()\n## a\nf()\n"),
        ("", "## a\n## b\nf()\n"),
        ("", "## a\nf(\n## b\nf()\n"),
        ("", "## a\nawait f()\n## b\nf()\n"),
        ("--budget 5s", "## a\nf()\n## b\nf()\n"),
        ("5", "## a\nf()\n## b\nf()\n"),
        ("nonsense=1", "## a\nf()\n## b\nf()\n"),
        ("blocks=0", "## a\nf()\n## b\nf()\n"),
    ],
)
def test_what_cannot_be_raced_is_refused_before_anything_runs(line: str, cell: str | None) -> None:
    ran: list[int] = []
    with pytest.raises(InvalidRequest) as refused:
        raced(line, cell, {"f": lambda: ran.append(1), "g": lambda: ran.append(1)})
    assert refused.value.code == "E_REQUEST"
    assert str(refused.value).count("\n") == 0
    assert ran == [] or "nonsense" in line  # which only the measurement knows of


def test_a_snippet_sees_the_users_names_and_keeps_its_own() -> None:
    namespace: dict[str, Any] = {"numbers": [3, 1, 2], "blocks_asked": 6}
    found = raced(
        "blocks=blocks_asked, seconds=0.002", "## a\nx = sorted(numbers)\nx[0]\n## b\nmin(numbers)\n", namespace
    )
    assert isinstance(found, InProcessComparison)
    assert {row.name for row in found.rows} == {"a", "b"}
    assert found.blocks == 6
    assert found.answers.compared == "each other"
    assert set(namespace) - {"__builtins__"} == {"numbers", "blocks_asked"}


def test_snippets_with_other_answers_are_not_ranked() -> None:
    found = raced(QUICK, "## right\n1 + 1\n## wrong\n3\n", {})
    assert list(found.answers.wrong) == ["wrong"]
    assert found.answers.wrong["wrong"].code == "E_OUTPUT"


def test_a_snippet_that_makes_a_coroutine_is_refused(recwarn: pytest.WarningsRecorder) -> None:
    async def work() -> int:
        return 1

    with pytest.raises(InvalidRequest) as refused:
        raced("work() ; work()", None, {"work": work})
    assert refused.value.code == "E_DEFERRED_WORK"
    assert not [each for each in recwarn if issubclass(each.category, RuntimeWarning)]


def test_the_extension_adds_one_magic_for_lines_and_cells() -> None:
    shell = Shell()
    shell.run_cell("%load_ext fairlap")
    shell.run_cell("numbers = list(range(100))")
    assert list(shell.magics) == ["fairlap"]
    found = shell.run_cell(f"%%fairlap {QUICK}\n## a\nsum(numbers)\n## b\nsum(list(numbers))\n")
    assert {row.name for row in found.rows} == {"a", "b"}


@pytest.fixture
def ipython() -> Any:
    """Start a real shell without a terminal or a history."""
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shells.InteractiveShell.clear_instance()
    shell = shells.InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.run_cell("%load_ext fairlap").raise_error()
    yield shell
    shells.InteractiveShell.clear_instance()


def test_ipython_runs_the_magic_and_shows_what_it_returns(ipython: Any) -> None:
    ipython.run_cell("numbers = list(range(300))").raise_error()
    done = ipython.run_cell("%fairlap sum(numbers) ; sum(list(numbers)) ; sum({1: n}[1] for n in numbers)")
    assert done.error_in_exec is None
    assert done.result.rows[0].name == "sum(numbers)"
    assert len(done.result.rows) == 3
    shown, _ = ipython.display_formatter.format(done.result)
    assert set(shown) == {"text/plain", "text/html"}
    assert shown["text/html"].startswith("<div")
    assert shown["text/plain"] == str(done.result)
    assigned = ipython.run_cell(f"%%fairlap {QUICK}\n## a\nsum(numbers)\n## b\nsum(list(numbers))\n")
    assert {row.name for row in assigned.result.rows} == {"a", "b"}


def test_ipython_reports_a_mistake_in_one_line(ipython: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = ipython.run_cell("%fairlap f()")
    assert type(done.error_in_exec).__name__ == "UsageError"
    shown = "".join(capsys.readouterr()).strip()
    assert shown.count("\n") == 0
    assert "E_REQUEST" in shown


@pytest.mark.sanitized
def test_it_agrees_with_timeit(ipython: Any) -> None:
    """Time a wait of a known length with both, since a busy machine changes the speed of anything else meanwhile."""
    ipython.run_cell(
        "from time import perf_counter_ns\n"
        "def wait(length_ns):\n"
        "    end_ns = perf_counter_ns() + length_ns\n"
        "    while perf_counter_ns() < end_ns:\n"
        "        pass\n"
    ).raise_error()
    timed = ipython.run_cell("%timeit -o -q -n 1 -r 300 wait(200_000)")
    found = ipython.run_cell(
        "%%fairlap blocks=8, seconds=0.02\n## short\nwait(200_000)\n## long\nwait(400_000)\n"
    ).result
    ours_ns = {row.name: median(row.block_medians_ns) for row in found.rows}
    assert ours_ns["short"] == pytest.approx(1e9 * median(timed.result.all_runs), rel=0.1)
    assert ours_ns["long"] == pytest.approx(2 * ours_ns["short"], rel=0.1)


def test_both_names_are_public() -> None:
    assert {"load_ipython_extension", "runs"} <= set(fairlap.__all__)
