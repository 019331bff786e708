"""Names and labels come from users: whatever they are, the pages have the same elements, and the texts stay texts."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from asgi_client import request
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="needs the extra serve; `make test` installs it and runs this")

from fairlap.browse.application import application
from fairlap.browse.list_page import RunList, page_of
from fairlap.printable import visible
from fairlap.store.search import Placed, RunSummary, Wanted
from fairlap.store.store import open_store
from runs_in_store import keep_whole
from runs_to_show import ENDING, HOSTILE, SCRIPT, run_of

PIECES = [
    "<",
    ">",
    "&",
    "'",
    '"',
    "<script>",
    "</style>",
    "<!--",
    "]]>",
    "&lt;",
    "javascript:",
    "\0",
    "\ud800",
    "=",
    " ",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=6).map("".join)


class Structure(HTMLParser):
    """Elements with the names of their attributes, and where they lead; and all texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.places: list[str] = []
        self.texts: list[str] = []
        self.values: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))
        self.places += [value or "" for name, value in attrs if name in ("href", "action", "formaction", "src")]
        self.values += [value or "" for name, value in attrs if name == "value"]

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def list_of(*texts: str) -> RunList:
    run, work, contestant, data, ended_early, began_at, model, note = texts
    summary = RunSummary(
        run=run, began_at=began_at, state="finished", works=(work,), data=data, contestants=(contestant,),
        frameworks=("torch",),
        recorded_processes=1, planned_processes=2, ended_early=ended_early, fairlap=note,
        placed=(Placed(work, contestant, "1"),),
    )  # fmt: skip
    return RunList(Wanted(model, contestant, began_at, run), [summary], older=run, note=note)


@given(st.tuples(*[TEXTS] * 8))
def test_no_text_of_a_run_becomes_html_in_the_list(texts: tuple[str, ...]) -> None:
    harmless = Structure(page_of(list_of(*("x" if text else "" for text in texts))).decode())
    found = Structure(page_of(list_of(*texts)).decode())
    assert found.elements == harmless.elements
    assert found.places[0] == "data:,"  # the icon
    assert all(place.startswith("/") and not place.startswith("//") for place in found.places[1:])
    run, work, contestant, *_, model, _ = (text.encode("utf-8", "replace").decode() for text in texts)
    assert all(visible(text) in "".join(found.texts) for text in (run, work, contestant))
    assert model in found.values


def test_names_that_try_to_break_out_are_text_in_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert", reason="needs the extra report; `make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    with open_store() as store:
        run = keep_whole(store, run_of(HOSTILE))
        with store.database(writing=True) as db:
            db.execute("UPDATE works SET model = ?, label = ?", (SCRIPT, ENDING))
            db.execute("UPDATE rows SET workload = ?", (SCRIPT,))
    model = "%3Cscript%3Ealert(1)%3C/script%3E"
    for url in ("/", f"/?model={model}", f"/history?model={model}", f"/across?run={run}", f"/runs/{run}"):
        answer = request(application(), url)
        assert answer.status == 200
        page = Structure(answer.text)
        assert not any(element[0] == "img" and "onerror" in element for element in page.elements)
        assert "alert(1)" in "".join(page.texts)
        allowed = 3 if url.startswith("/runs/") else 0
        assert sum(element[0] == "script" for element in page.elements) == allowed
