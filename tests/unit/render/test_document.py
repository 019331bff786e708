"""A document in every format: what each shows, and that a text of others is nothing but text."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from fairlap.printed_document import PrintedDocument
from fairlap.render.charts.parts.look import DARK, LIGHT, Look
from fairlap.render.document import Document, Picture, Records, Section, Table
from fairlap.render.encoders import encoded
from fairlap.render.encoders.text import text_of
from fairlap.results.column_definitions.estimate import Estimate
from hypothesis import example, given
from hypothesis import strategies as st

HOSTILE = "<script>|`[a](http://b)@c #1 www.d.com\n::error\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}"
TIMES = Table("Times", ("contestant", "time", "never"), [["jax:fast", "2.1 ms [2.0, 2.2]", ""], ["torch", "", ""]])


class Lines(PrintedDocument, frozen=True, tag="fairlap.lines/1"):
    lines: list[int | None]


def drawing(look: Look) -> str:
    return f"<svg>{look.paper}</svg>"


def document(
    *, title: str = "Runs", fact: str = "2 ranks of 1 thread.", cell: str = "x", note: str = "a, b"
) -> Document:
    sections = [
        Section("mlp · infer", [TIMES.without_empty_columns(after=2), Table("Words", ("word",), [[cell]])], [note]),
        Section("A picture", picture=Picture("described", drawing, "how to read it")),
        Section("No picture", picture=Picture("described", None, "it takes two")),
        Section("Nothing"),
    ]
    rows: list[list[object]] = [["=1", Estimate(2.0, 1.0, 3.0), {"why": "x"}], ["b", None, {}]]
    records = Records(("name", "time_ns", "absent"), rows, ("time_ns",))
    return Document(title, sections, Lines([1, None]), records, drawing, (fact,))


def written(format_name: str, **texts: str) -> str:
    return encoded(document(**texts), format_name).decode()


TEXT = """\
2 ranks of 1 thread.

mlp · infer
  contestant  time
  jax:fast    2.1 ms [2.0, 2.2]
  torch       -

  word
  x
  a, b"""
MARKDOWN = """\
### fairlap: Runs

2 ranks of 1 thread.

#### mlp · infer

| contestant | time |
| --- | --- |
| `jax:fast` | 2.1 ms [2.0, 2.2] |
| `torch` | - |

| word |
| --- |
| x |

- `a, b`
"""


def test_the_terminal_and_markdown_have_facts_tables_and_notes_and_no_pictures() -> None:
    assert text_of(document()) == TEXT
    assert written("md") == MARKDOWN  # a column is code where one of its texts could be more than text
    assert TIMES.without_empty_columns(after=3).heads == list(TIMES.heads)


@pytest.mark.parametrize(
    "text",
    ["@c", "#1", "www.d.com", "http://b", "[a](b)", "a|b", "*a*", "_a_", "~a~", "<b>", "&lt;", "GH-1", "a:b", "`"],
)
def test_what_markdown_could_take_for_more_than_text_is_code(text: str) -> None:
    assert re.search(r"^\| (`[^`]+`|<code>[^`|*_~<>@:.]+</code>) \|$", written("md", cell=f"a {text}"), re.MULTILINE)


def test_files_for_programs_have_values_an_estimate_with_its_interval_and_no_formula() -> None:
    header, first, second = csv.reader(io.StringIO(written("csv")))
    assert header == ["name", "time_ns", "time_ns_low", "time_ns_high", "absent"]
    assert first == ["'=1", "2.0", "1.0", "3.0", '{"why":"x"}']
    assert second == ["b", "", "", "", "{}"]
    assert json.loads(written("json")) == msgspec.to_builtins(document().data)
    assert written("svg") == drawing(LIGHT)


class Page(HTMLParser):
    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.texts: list[str] = []
        self.feed(written("html", **texts))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements += [tag] if tag != "wbr" else []  # where a name may break

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_has_every_text_and_pictures_for_both_themes() -> None:
    pictures = re.findall(r"svg\+xml;base64,([A-Za-z0-9+/=]+)", written("html"))
    assert [base64.b64decode(each).decode() for each in pictures] == [drawing(DARK), drawing(LIGHT)]
    page = Page()
    expected = {"Runs", "2 ranks of 1 thread.", "mlp · infer", "2.1 ms [2.0,\u00a02.2]", "–", "a, b", "it takes two"}
    assert expected <= {*page.texts}
    assert "Nothing" not in page.texts
    assert "script" not in page.elements


@given(st.text(max_size=20))
@example(HOSTILE)
def test_texts_of_others_stay_texts(text: str) -> None:
    texts = dict.fromkeys(("title", "fact", "cell", "note"), text)
    assert Page(**texts).elements == Page().elements
    shown = text_of(document(**texts))
    assert shown.count("\n") == TEXT.count("\n")
    assert not {"\x1b", "\N{RIGHT-TO-LEFT OVERRIDE}"} & {*shown}
    markdown = written("md", **texts)
    assert "<script" not in markdown
    assert markdown.count("\n| ") == MARKDOWN.count("\n| ")
