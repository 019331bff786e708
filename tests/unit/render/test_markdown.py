"""Markdown for a comment: deltas first, never too long, nothing left out in silence, strangers' names harmless."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest
from fairlap.engine.measurement import Notice
from fairlap.render.files.markdown_file import MOST_CHARACTERS, encode
from fairlap.render.files.markdown_table import as_code
from fairlap.results.prices import Price
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.scenarios.process_result import Outcome
from hypothesis import given, strategies
from markdown_it import MarkdownIt
from runs_for_rows import a_run, crashed


def text_of(rows: Sequence[Row]) -> str:
    return encode(rows).decode()


def a_slower_row(**changes: Any) -> Row:
    return msgspec.structs.replace(results_of(a_run(), "r").rows[1], **changes)


def test_the_deltas_stand_before_the_table() -> None:
    lines = text_of(results_of(a_run(), "r", price=Price(3.6, "EUR")).rows).splitlines()
    assert lines[0] == "### fairlap: 1 slower, baseline `jax:fast`"
    assert lines[2].startswith("- **slower**: `torch` takes 2.00")
    assert (
        "times as long as `jax:fast` on `mlp` infer fp32 batch 4, controlled (8 blocks; minimum detectable effect"
        in lines[2]
    )
    assert lines[4] == "**`mlp` infer fp32 batch 4**, `cpu`, 1 thread, controlled, 8 blocks"
    [head, _, fast, slow] = lines[6:10]
    assert head.startswith(
        "| # | contestant | version | median time of a call | times the baseline | p99 | items/s | compile, warm |"
    )
    assert "energy" not in head
    assert fast.startswith("| 1 | `jax:fast` | `1.2.3` | 0.9989 ms [")
    assert slow.startswith("| 2 | `torch` | `1.2.3` | 2.0")
    assert "`EUR` |" in slow


def test_rows_that_learnt_other_data_are_in_other_tables() -> None:
    rows = results_of(a_run(), "r").rows
    data = "5 % of pets.csv (0123abcd)"
    others = [msgspec.structs.replace(row, train_on=data, work_id="of these data") for row in rows]
    titles = [line for line in text_of([*rows, *others]).splitlines() if line.startswith("**`mlp`")]
    assert len(titles) == 2
    assert "on `5 % of pets.csv (0123abcd)`" in titles[1]


def test_the_worst_comes_first_and_who_has_no_figure_says_why() -> None:
    run = a_run(listed="torch,jax,onnxruntime,openvino")
    for process in run.processes:
        if process.contestant == "jax":
            crashed(process)
    text = text_of(results_of(run, "r", baseline="onnxruntime").rows)
    verdicts = [line.split("**")[1] for line in text.splitlines() if line.startswith("- **")]
    assert verdicts == ["slower", "failed", "faster"]
    assert "- **failed**: `jax` on `mlp` infer fp32 batch 4, controlled: `crash: ended by SIGSEGV`" in text
    assert text.startswith("### fairlap: 1 slower, 1 failed, 1 faster, baseline `onnxruntime`\n")


def test_what_a_framework_does_not_offer_is_no_failure_and_comes_last() -> None:
    run = a_run(listed="torch,jax,onnxruntime")
    for process in run.processes:
        if process.contestant == "torch":
            process.outcome, process.message, process.timings, process.errors = (
                "unsupported",
                "it has no mode grad",
                {},
                [],
            )
    lines = text_of(results_of(run, "r").rows).splitlines()
    assert lines[0] == "### fairlap: 1 slower, 1 unsupported, baseline `onnxruntime`"
    assert lines[3].startswith("- **unsupported**: `torch` on `mlp`")
    assert lines[3].endswith(", controlled: `unsupported: it has no mode grad`")


@pytest.mark.parametrize("finished", [0, 8])
@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_outcome_is_counted_and_has_its_line(outcome: Outcome, finished: int) -> None:
    row = a_slower_row()
    absent = row.absent | {"verdict": "why", "ratio": "why"}
    changed = {"outcome": outcome, "processes_finished": finished, "verdict": None, "ratio": None, "absent": absent}
    lines = text_of([msgspec.structs.replace(row, **changed)]).splitlines()
    assert lines[0].startswith("### fairlap: 1 ")
    assert sum(line.startswith("- **") for line in lines) == 1


def test_few_blocks_are_no_verdict_and_no_rows_are_reported() -> None:
    assert "### fairlap: 1 inconclusive" in text_of(results_of(a_run(blocks=3), "r").rows)
    assert text_of([]) == "### fairlap: nothing was compared\n\n"


def warned(*said: list[str]) -> Sequence[Row]:
    """Contestants who say this in turn, each in one of its processes."""
    names = [f"torch:{number}" for number in range(len(said))]
    run = a_run(blocks=max(map(len, said)), listed=",".join(names))
    for process in run.processes:
        own = said[names.index(process.contestant)]
        process.warnings = [
            Notice(f"W_{text.split()[-1].upper()}", text) for text in own[process.block : process.block + 1]
        ]
    return results_of(run, "r-1").rows


def warnings_in(rows: Sequence[Row]) -> list[str]:
    _, _, below = text_of(rows).partition("*Warnings*, the first of each kind:\n\n")
    return below.splitlines()


def test_warnings_that_differ_in_their_figures_are_one_and_those_of_all_come_first() -> None:
    away = [f"the kernel took the core away {times} times; something else runs" for times in ("17", "2,837")]
    moved = [f"the thread moved to another core {times}; pin it" for times in ("once", "4 times")]
    rows = warned([moved[0], away[0], moved[1]], [away[1], away[0]], [away[1], "the disk was waited for"])
    assert warnings_in(rows) == [
        f"- `{away[1]}` (all)",
        f"- `{moved[0]}` (`torch:0`)",
        "- `the disk was waited for` (`torch:2`)",
    ]


def test_a_comment_has_five_kinds_of_warnings_and_says_how_many_more_there_are() -> None:
    kinds = [f"trouble {letter}" for letter in "abcdefg"]
    assert warnings_in(warned(kinds)) == [
        *(f"- `{kind}`" for kind in kinds[:5]),
        "- 2 further kinds; `fairlap show r-1` lists them all",
    ]
    assert (
        warnings_in(warned(kinds[:1], kinds[:1], kinds[:1], kinds[:1], ["other"]))[0]
        == "- `trouble a` (4 of 5 contestants)"
    )


def test_without_warnings_there_is_no_word_of_them() -> None:
    assert "Warning" not in text_of([row for row in warned([], ["x"]) if not row.warnings])


@pytest.mark.parametrize("name", ["<img src=x>", "# heading", "line\n- item", "@everyone", "`tick`"])
def test_a_warning_is_text_and_nothing_else(name: str) -> None:
    rows = [a_slower_row(warnings=[Notice("W_X", name)]), a_slower_row(contestant=name, warnings=[])]
    page = rendered(text_of(rows)).rpartition("<ul>")[2]
    assert page.count("<li>") == 1
    assert "<img" not in page
    assert "<h1" not in page


def test_modes_are_shown_in_the_place_of_the_median() -> None:
    run = a_run(blocks=12)
    for number, process in enumerate(process for process in run.processes if process.contestant == "torch"):
        if number % 2:
            figure = process.timings["wall_ns"]
            process.timings["wall_ns"] = msgspec.structs.replace(figure, p50_ns=3 * figure.p50_ns)
    assert "ms in 50 %, 6.0" in text_of(results_of(run, "r").rows)


@pytest.mark.slow_but(first=1)
@pytest.mark.parametrize("count", [100, 1000])
def test_a_comment_is_never_too_long_and_what_is_left_out_is_counted(count: int) -> None:
    baseline, slower = results_of(a_run(), "r").rows
    message = "|".join("<@&>" * 100)
    many = [msgspec.structs.replace(slower, contestant=f"torch:{n}", message=message) for n in range(count)]
    text = text_of([baseline, *many])
    assert len(text) <= MOST_CHARACTERS
    left_out = [line for line in text.splitlines() if "left out" in line]
    shown = sum(line.startswith("- **slower**") for line in text.splitlines())
    assert left_out[0] == f"*{count - shown:,} further rows left out to fit the comment: {count - shown} slower.*"
    in_table = sum(line.startswith("| 2 |") for line in text.splitlines())
    assert (count - in_table > 0) == (len(left_out) == 2)
    if len(left_out) == 2:
        assert f"{count - in_table} slower" in left_out[1]


def rendered(text: str) -> str:
    page: str = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return page


HOSTILE = [
    "<script>alert(1)</script>",
    "a|b",
    "a\\|b",
    "`tick`",
    "``two``|",
    "[x](javascript:alert(1))",
    "![x](https://elsewhere.invalid/x.png)",
    "@everyone",
    "#1",
    "line\nbreak\n\n# heading",
    "*bold* __both__ ~~gone~~",
    "&lt;b&gt;",
    "</code><img src=x onerror=alert(1)>",
    "\\",
    "Ünïcode 漢字 🏁",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strangers_name_is_text_and_nothing_else(name: str) -> None:
    page = rendered(text_of([a_slower_row(contestant=name, message=name, version=name)]))
    for tag in ("<script", "<img", "<a ", "<h1", "<strong>bold", "<s>"):
        assert tag not in page
    cells = page.partition("<tbody>")[2].split("<td>")[1:]
    assert len(cells) == len(page.partition("<tbody>")[0].split("<th>")) - 1
    shown = html.unescape(cells[1].partition("</td>")[0])
    expected = " ".join(name.splitlines()[0].split())
    assert shown.removeprefix("<code>").removesuffix("</code>") == expected


@given(strategies.text())
def test_no_text_breaks_out_of_its_place_in_a_table(text: str) -> None:
    page = rendered(f"| a | b |\n| --- | --- |\n| {as_code(text)} | end |\n")
    assert page.count("<td>") == 2
    assert page.count("<code>") == page.count("</code>") <= 1
    inside = page.partition("<td>")[2].partition("</td>")[0]
    assert "<" not in inside.removeprefix("<code>").removesuffix("</code>")
    assert "<td>end</td>" in page


def test_what_a_search_found_is_next_to_the_name_and_mixed_divisions_come_before_any_figure() -> None:
    fast, slow = results_of(a_run(), "r").rows
    warning = Notice("W_MIXED_DIVISIONS", "settings of torch:best were found by a search")
    best = msgspec.structs.replace(
        fast, division="best", found_settings={"variant": "compile", "threads": "1"}, warnings=[warning]
    )
    lines = text_of([best, msgspec.structs.replace(slow, warnings=[warning])]).splitlines()
    assert lines[2] == "> `settings of torch:best were found by a search`"
    assert "| best settings |" in text_of([best])
    assert "| `variant compile, threads 1` |" in text_of([best])
    assert "best settings" not in text_of([fast, slow])
    at_default = msgspec.structs.replace(best, found_settings={})
    assert "| `default` |" in text_of([at_default])
